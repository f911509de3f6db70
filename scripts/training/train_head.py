"""Trains a draft head for a Llama, Mistral, Qwen or GPT-NeoX checkpoint on the target's own answers and features. PyTorch, on a CPU.

    python train_head.py answers TARGET WORK --prompts PROMPTS.jsonl --held HELD_OUT.jsonl [--minutes 30]
    python train_head.py features TARGET WORK [--layers 2,4,6]
    python train_head.py train TARGET WORK --prompts PROMPTS.jsonl --out OUT [--minutes 50] [--layers 2,4,6]
    python train_head.py train TARGET WORK --prompts PROMPTS.jsonl --out OUT --kind block [--depth 1] [--block 8] [--fall 4] [--markov 64]

TARGET is a folder in Hugging Face's layout or a GGUF file. `answers` has dtrun answer the prompts ({"prompt": ...} per line, in the chat
template if there is one). `features` writes the target's features along the answers (head_data.py; 4.6 KB per token for a model 576
wide). `train` trains a head on them. It writes OUT (config.json and model.safetensors in bf16) and a checkpoint every 4 minutes of wall
time (--every) and at the end, and reports every 4 minutes of training. Each part continues where an earlier run stopped, and may run at
the same time as the part before it: an epoch uses the data that exists. To continue a head, give the same options and more minutes; the
learning rate falls to 0 at their end. Minutes are processor time divided by --threads. Features are the inputs of layer 2, of the middle
layer and of the third from the end; --layers replaces them (the number of layers means the last one's output). --vocabulary-of HEAD
takes the draft vocabulary of another head, --start-from HEAD also those of its tensors that have the same names and shapes (for a block
head of an EAGLE-3 head: `fc`, norms and the output).

--kind eagle3 (the default): one layer, in the layout of SafeAILab's and SpecForge's heads. --kind block: a causal block head
(block_head.py), in DFlash's layout; --depth is its number of layers, --block its number of rows. With --markov RANK it is DSpark's, in
DeepSpec's layout.

What the EAGLE-3 head learns. Row i has the target's features of token i and the embedding of token i + 1, and guesses token i + 2. The
loss is the cross-entropy with the target's distribution over the draft vocabulary. When drafting, only the first guess has true
features. The head is therefore unrolled: row i of step s gets the output of row i - 1 of step s - 1 instead, and sees the rows that it
would see in a tree: true ones up to i - s, then one of each step. Guesses along the prompts are learned too, from the end of the chat
template's first words on (without a template: all). Guesses whose right answer is known to be missing from the draft vocabulary are
left out.

Features differ a lot in size from channel to channel. Training divides each channel by its root mean square, and the file's `fc`
includes that division.
"""
import argparse, json, math, os, pathlib, time
import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors import safe_open
import block_head, head_data, head_parts
from head_parts import Loss, linear, what_to_learn

ROWS = 2048  # guesses of the first step in a batch
GUESSES = 4  # that a report tells of; of a block head, it also tells of all


class Layer(nn.Module):
    """The modules of the head's layer under their published names."""

    def __init__(self, c):
        super().__init__()
        H, q, kv = c["hidden_size"], c["num_attention_heads"] * c["head_dim"], c["num_key_value_heads"] * c["head_dim"]
        self.input_layernorm, self.hidden_norm, self.post_attention_layernorm = (nn.RMSNorm(H, c["rms_norm_eps"]) for _ in range(3))
        self.self_attn = nn.ModuleDict({"q_proj": linear(2 * H, q), "k_proj": linear(2 * H, kv), "v_proj": linear(2 * H, kv), "o_proj": linear(q, H)})
        self.mlp = nn.ModuleDict({"gate_proj": linear(H, c["intermediate_size"]), "up_proj": linear(H, c["intermediate_size"]),
                                  "down_proj": linear(c["intermediate_size"], H)})


class Head(head_parts.Head):
    def __init__(self, config, target, drafted, dropout, unroll, alone):
        """unroll: the steps after the first; alone: the part of the training that has none."""
        super().__init__(config, target, drafted, dropout)
        self.midlayer, self.steps, self.alone, self.guesses = Layer(config), unroll, alone, GUESSES
        self.initialize(target)

    def heads(self, x, n, positions=None):
        x = x.float().view(len(x), n, -1)
        return x if positions is None else self.rotated(x, positions)

    def unroll(self, batch, steps):
        """What each step puts out at the batch's guessing rows, step by step; of step s, each conversation's first s rows mean nothing."""
        c, a, mlp = self.config, self.midlayer.self_attn, self.midlayer.mlp
        n, kv, multiply = self.n, self.kv, self.multiplier()
        shared = lambda k: k.repeat_interleave(n // kv, 1)  # heads that share keys
        e = self.midlayer.input_layernorm(F.embedding(batch.tokens, self.embed).float())
        f = multiply(self.fc, batch.features / self.scale).float()
        both = self.drop(torch.cat((e, self.midlayer.hidden_norm(f)), -1).bfloat16())
        keys = batch.as_keys(shared(self.heads(multiply(a.k_proj, both), kv, batch.positions)).bfloat16())
        values = batch.as_keys(shared(self.heads(multiply(a.v_proj, both), kv)).bfloat16())
        guess, later = batch.guess, []  # later: keys and values of the steps after the first
        e, f, both, positions = e[guess], f[guess], both[guess], batch.positions[guess]
        for s in range(steps):
            if s:
                f = x.roll(1, 0)
                both = self.drop(torch.cat((e, self.midlayer.hidden_norm(f)), -1).bfloat16())
                later.append((shared(self.heads(multiply(a.k_proj, both), kv, positions)), shared(self.heads(multiply(a.v_proj, both), kv))))
            q = self.heads(multiply(a.q_proj, both), n, positions) * c["head_dim"] ** -0.5
            q_rows = batch.as_queries(q.bfloat16())
            scores = (q_rows @ keys.transpose(-1, -2)).float().masked_fill(~batch.sees(s), float("-inf"))
            own = [(q * k.roll(s - j, 0)).sum(-1) for j, (k, _) in enumerate(later, 1)]
            if own: scores = torch.cat((scores, batch.as_queries(torch.stack(own, -1))), -1)
            p = scores.softmax(-1)
            M = keys.shape[2]
            out = batch.from_queries(p[..., :M].bfloat16() @ values).float()
            if own:
                weights = batch.from_queries(p[..., M:])
                for j, (_, v) in enumerate(later, 1): out = out + weights[..., j - 1:j] * v.roll(s - j, 0)
            x = f + multiply(a.o_proj, out.flatten(1)).float()
            y = self.midlayer.post_attention_layernorm(x)
            x = x + multiply(mlp.down_proj, F.silu(multiply(mlp.gate_proj, y)) * multiply(mlp.up_proj, y)).float()
            yield x

    def batch(self, conversations, first, rng): return Batch(conversations, [first] * len(conversations))

    def loss(self, batch, output, done):
        """The loss, its first step's value, and the number of guesses. done: which part of the training is over."""
        steps = 1 + int(max(0.0, (done - self.alone) / (1 - self.alone)) * self.steps)  # the first guess alone, then more and more
        wanted, choice, known = what_to_learn(self, output, batch.last, batch.choice)
        w, loss, value, at = self.lm_head.weight.bfloat16(), 0, 0.0, torch.arange(len(choice))
        for s, x in enumerate(self.unroll(batch, steps)):
            weights = (known & (batch.step >= s)).float()
            one = Loss.apply(self.drop(self.norm(x).bfloat16()), w, wanted, choice, at, weights / weights.sum())
            if s == 0: value = one.item()
            loss = loss + 0.8 ** s * one
        return loss, value, len(batch.guess)

    def right(self, c):
        """For each step, whether the guess of the unrolling that starts at each token of the answer is the target's choice."""
        batch, w = Batch([c], [c["answer"] - 1]), self.lm_head.weight.bfloat16()
        steps = [self.drafted[F.linear(self.norm(x).bfloat16(), w).argmax(-1)] == batch.choice for x in self.unroll(batch, GUESSES)]
        return [same[s:].tolist() for s, same in enumerate(steps)]

    def tensors(self):
        return {**super().tensors(), "t2d": torch.zeros(self.config["vocab_size"], dtype=torch.bool).index_fill(0, self.drafted, True)}


class Batch:
    """Conversations end to end; their guessing rows, from `first` on, likewise, and padded where attention needs it."""

    def __init__(self, conversations, first):
        cut = lambda name, a, b: torch.cat([c[name][a:b and len(c[name]) + b] for c in conversations])
        rows = torch.tensor([len(c["ids"]) - 1 for c in conversations])
        first = torch.tensor(first)
        self.features, self.tokens = cut("features", 0, -1), cut("ids", 1, None).long()
        self.last = torch.cat([c["last"][1 + a:] for c, a in zip(conversations, first.tolist())])
        self.choice = torch.cat([c["choice"][1 + a:] for c, a in zip(conversations, first.tolist())]).long()
        self.positions = torch.cat([torch.arange(n) for n in rows.tolist()])
        starts, self.lengths = rows.cumsum(0) - rows, rows - first
        column = torch.arange(int(rows.max()))
        self.is_key = column < rows[:, None]
        self.is_query = column[:int(self.lengths.max())] < self.lengths[:, None]
        self.guess = torch.cat([torch.arange(s + a, s + n) for s, a, n in zip(starts.tolist(), first.tolist(), rows.tolist())])
        self.step = torch.cat([torch.arange(n) for n in self.lengths.tolist()])  # how far from the first a guess is
        self.reach = first[:, None] + torch.arange(self.is_query.shape[1])  # the row of each query

    def padded(self, x, mask): return x.new_zeros(*mask.shape, *x.shape[1:]).index_put((mask,), x).transpose(1, 2)
    def as_keys(self, x): return self.padded(x, self.is_key)
    def as_queries(self, x): return self.padded(x, self.is_query)
    def from_queries(self, x): return x.transpose(1, 2)[self.is_query]

    def sees(self, s):
        """(conversations, 1, queries, keys): true rows up to i - s. Row 0 always, so that no padding divides by zero."""
        key = torch.arange(self.is_key.shape[1])
        return ((key <= self.reach[:, :, None] - s) | (key == 0))[:, None]


def batches(head, paths, rng):
    """One epoch. A batch has conversations of similar lengths."""
    all = list(head_data.conversations(paths))
    first = next(i for i, same in enumerate(zip(*(c["ids"].tolist() for c in all))) if len(set(same)) > 1)  # the template's words end
    all = [all[i] for i in torch.randperm(len(all), generator=rng).tolist()]
    for i in range(0, len(all), 128):
        groups, count = [[]], 0
        for c in sorted(all[i:i + 128], key=lambda c: len(c["ids"])):
            n = len(c["ids"]) - first
            if count + n > ROWS: groups, count = groups + [[]], 0
            groups[-1].append(c)
            count += n
        for j in torch.randperm(len(groups), generator=rng).tolist(): yield head.batch(groups[j], first, rng)


@torch.no_grad()
def report(head, paths):
    """Returns what chains of guesses along the target's own text bring: for each guess of the longest chain, the share that was accepted
    among those that were reached; and the tokens per pass of chains of GUESSES, and of the longest."""
    all = [head.right(c) for c in head_data.conversations(paths)]
    tokens = []
    for length in sorted({min(GUESSES, head.guesses), head.guesses}):
        reached, accepted, passes, total = [0] * length, [0] * length, 0, 0
        for right in all:
            i = 0
            while i + length <= len(right[0]):
                n = 0
                while n < length and right[n][i]: n += 1
                for k in range(length):
                    reached[k] += n >= k
                    accepted[k] += n > k
                passes, total, i = passes + 1, total + n + 1, i + n + 1
        tokens.append(round(total / max(passes, 1), 2))
    return [round(100 * a / max(b, 1), 1) for a, b in zip(accepted, reached)], tokens


def draft_vocabulary(folder, prompts, tokenizer, size, vocab):
    """The tokens most frequent in the answers, all prompts' counting too, a third as much; and the share of the answers that they are."""
    own = torch.tensor([i for path in pathlib.Path(folder).glob("*.jsonl") for line in open(path) for i in json.loads(line)["tokens"]])
    asked = torch.tensor([i for line in open(prompts, encoding="utf-8") for i in tokenizer(json.loads(line)["prompt"])["input_ids"]])
    answers = torch.bincount(own, minlength=vocab).float()
    drafted = (answers + torch.bincount(asked, minlength=vocab) / 3).topk(size).indices.sort().values
    return drafted, float(answers[drafted].sum() / answers.sum())


def feature_scale(paths):
    f = torch.cat([c["features"][c["answer"]:] for c in head_data.conversations(paths)]).float()
    return f.square().mean(0).sqrt().clamp(min=1e-6)


def config_of(target, layers, o, size, mask):
    t = target.config
    heads = o.heads or t.num_attention_heads
    norm = head_data.name_of_norm(head_data.final_norm(target).weight)
    common = {"dtrun_target": {"name": os.path.basename(os.path.normpath(t.name_or_path)), "final_norm": norm},
              "hidden_act": "silu", "hidden_size": t.hidden_size, "intermediate_size": o.inter or t.intermediate_size,
              "num_attention_heads": heads, "num_key_value_heads": o.kv_heads or getattr(t, "num_key_value_heads", heads),
              "head_dim": getattr(t, "head_dim", None) or t.hidden_size // t.num_attention_heads, "rms_norm_eps": getattr(t, "rms_norm_eps", 1e-5),
              "rope_theta": t.rope_parameters["rope_theta"], "max_position_embeddings": t.max_position_embeddings, "vocab_size": t.vocab_size,
              "draft_vocab_size": size, "tie_word_embeddings": False, "torch_dtype": "bfloat16"}
    if o.kind == "block": return block_head.config_of(common, target, layers, o, mask)
    return {"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama", **common, "target_hidden_size": t.hidden_size,
            "num_hidden_layers": 1, "eagle_aux_hidden_state_layer_ids": layers}


def train(target, tokenizer, layers, answers, held, o):
    minutes, checkpoint = o.minutes or 50, o.work + ("/block.pt" if o.kind == "block" else "/train.pt")
    state = torch.load(checkpoint) if os.path.exists(checkpoint) else {"minutes": 0.0, "updates": 0, "rows": 0}
    if "drafted" in state: drafted = state["drafted"]
    elif o.vocabulary_of or o.start_from:
        with safe_open((o.vocabulary_of or o.start_from) + "/model.safetensors", "pt") as f: drafted = f.get_tensor("d2t") + torch.arange(len(f.get_tensor("d2t")))
    else:
        drafted, share = draft_vocabulary(answers, o.prompts, tokenizer, o.vocabulary, target.config.vocab_size)
        print(f"draft vocabulary: {o.vocabulary} tokens, {100 * share:.1f} % of the answers'", flush=True)
    if o.kind == "block":
        mask = state.get("mask") or o.mask or block_head.unused_token(tokenizer, set(drafted.tolist()))
        state["mask"] = mask
        head = block_head.BlockHead(config_of(target, layers, o, len(drafted), mask), target, drafted, o.dropout, o.fall)
    else: head = Head(config_of(target, layers, o, len(drafted), None), target, drafted, o.dropout, o.unroll, o.alone)
    is_matrix = lambda n, p: p.dim() == 2 and n not in ("lm_head.weight", "markov_head.markov_w2.weight")  # these have rows of their own for ids
    matrices, others = ([p for n, p in head.named_parameters() if is_matrix(n, p) == of] for of in (True, False))
    optimizers = [torch.optim.Muon(matrices, lr=o.rate, weight_decay=0.0, adjust_lr_fn="match_rms_adamw"),
                  torch.optim.AdamW(others, lr=o.rate, betas=(0.9, 0.98), weight_decay=0.0)]
    if "drafted" in state:
        head.load_state_dict(state["head"])
        for p, s in zip(optimizers, state["optimizers"]): p.load_state_dict(s)
    else:
        head.scale.copy_(feature_scale(head_data.shards(answers)[:4]))
        if o.start_from: print("started from", ", ".join(head.start_from(o.start_from)), flush=True)
    print(f"{sum(p.numel() for p in head.parameters()) / 1e6:.2f} M parameters, layers {layers}", flush=True)
    output = target.get_output_embeddings().weight[drafted]
    rng, start, before = torch.Generator().manual_seed(state["updates"]), time.process_time(), state["minutes"]
    saved, reported, loss_sum, count = time.time(), before, 0.0, 0

    def save():
        head.save(o.out)
        new = {**state, "drafted": drafted, "head": head.state_dict(), "optimizers": [p.state_dict() for p in optimizers]}
        torch.save(new, checkpoint + ".part")
        os.replace(checkpoint + ".part", checkpoint)

    def tell():
        head.eval()
        guesses, tokens = report(head, held)
        head.train()
        print(f"minute {state['minutes']:.1f}: {state['updates']} updates, {state['rows']} rows, loss {loss_sum / max(count, 1):.3f}, "
              f"held out: guesses accepted {guesses} %, {' and '.join(map(str, tokens))} tokens a pass", flush=True)

    while state["minutes"] < minutes:
        for batch in batches(head, head_data.shards(answers), rng):
            done = state["minutes"] / minutes
            if done >= 1: break
            rate = o.rate * min(1, (state["updates"] + 1) / 20) * (1 - done)
            for p in optimizers:
                for group in p.param_groups: group["lr"] = rate
                p.zero_grad(set_to_none=True)
            loss, value, rows = head.loss(batch, output, done)
            loss_sum, count = loss_sum + value, count + 1
            loss.backward()
            nn.utils.clip_grad_norm_(others, 1.0)
            for p in optimizers: p.step()
            state["updates"] += 1
            state["rows"] += rows
            state["minutes"] = before + (time.process_time() - start) / 60 / o.threads
            if time.time() - saved > 60 * o.every:
                save()
                saved = time.time()
            if state["minutes"] - reported > o.every:
                tell()
                reported, loss_sum, count = state["minutes"], 0.0, 0
    save()
    tell()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("part", choices=["answers", "features", "train"]), ap.add_argument("target"), ap.add_argument("work")
    ap.add_argument("--kind", choices=["eagle3", "block"], default="eagle3")
    for name in "prompts", "held", "out", "vocabulary-of", "start-from": ap.add_argument("--" + name)
    for name, value in ("minutes", None), ("every", 4.0), ("rate", 2e-3), ("alone", 0.5), ("fall", 4.0), ("dropout", 0.1): ap.add_argument("--" + name, type=float, default=value)
    for name, value in (("tokens", 256), ("context", 1024), ("warm", 3), ("vocabulary", 8192), ("unroll", 3), ("threads", 2),
                        ("heads", 0), ("kv-heads", 0), ("inter", 0), ("depth", 1), ("block", 8), ("mask", 0), ("markov", 0)):
        ap.add_argument("--" + name, type=int, default=value)
    ap.add_argument("--dtrun", default="dtrun"), ap.add_argument("--layers", type=lambda s: [int(i) for i in s.split(",")])
    o = ap.parse_args()
    answers, held = o.work + "/answers", o.work + "/held"
    torch.set_num_threads(o.threads), torch.manual_seed(1)
    target, tokenizer = head_data.open_target(o.target, o.work)
    if o.part == "answers":
        chat = tokenizer.chat_template is not None
        head_data.write_answers(o.dtrun, o.target, o.held, held, math.inf, o.tokens, 0, 2 * o.context, o.threads, chat)
        head_data.write_answers(o.dtrun, o.target, o.prompts, answers, o.minutes or 30, o.tokens, o.warm, o.context, o.threads, chat)
        return
    n = target.config.num_hidden_layers
    layers = o.layers or [2, n // 2, n - 3]  # that EAGLE-3 taps where a configuration says nothing
    if o.part == "features":
        for folder in held, answers: head_data.write_features(target, layers, folder)
    else: train(target, tokenizer, layers, answers, head_data.shards(held), o)


if __name__ == "__main__": main()
