"""Train an EAGLE-3 head for a Llama, Mistral, Qwen or GPT-NeoX checkpoint: one layer that guesses on from the target's own features. PyTorch, on a CPU.

    python train_head.py answers TARGET WORK --prompts PROMPTS.jsonl --held HELD_OUT.jsonl [--minutes 30]
    python train_head.py features TARGET WORK [--layers 2,4,6]
    python train_head.py train TARGET WORK --prompts PROMPTS.jsonl --out OUT [--minutes 50] [--layers 2,4,6]

TARGET is a folder in Hugging Face's layout or a GGUF file. First dtrun has it answer the prompts ({"prompt": ...} a line, wrapped in its
chat template if it has one), then its features along the answers are kept (head_data.py; 3.5 KB a token for a model 576 wide), then a
head learns from those. OUT gets config.json and model.safetensors (bf16), in the layout of SafeAILab's and SpecForge's heads, at every
report and at the end. Every part continues where an earlier run was stopped, and may run at the same time as the part before it: an
epoch uses the data that exists. Minutes of training are processor time: waiting for other programs does not count. Features are what enters layers 2,
half of them, and all but 3, or, for a target of few layers, those given (its number of layers: what leaves the last).

What is learned. Row i has the target's features of token i and the embedding of token i + 1, and guesses token i + 2 as the target
would: a cross-entropy with the target's distribution over the draft vocabulary. Since at work only the
first guess has true features, the head is unrolled: row i of step s gets what row i - 1 of step s - 1 put out in their place, and sees
the rows that it would see in a tree: true ones up to i - s, then one of each step. Guesses along the prompts are
learned too, from where the chat template's first words end (without one: all); those whose right answer is known not to be in the draft
vocabulary are not.

Features differ a lot in size from channel to channel. Training divides each by its root mean square, and the file's `fc` has that in it.
"""
import argparse, json, math, os, pathlib, time
import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file
import head_data

ROWS = 2048  # guesses of the first step in a batch
CHUNK = 512  # of them whose logits exist at once
DROPPED = 0.1  # of what the heads, and the output, read: the answers are few and seen often
GUESSES = 4  # that a report tells of


class Layer(nn.Module):
    """The modules of the head's layer under their published names."""

    def __init__(self, c):
        super().__init__()
        linear = lambda n_in, n_out: nn.Linear(n_in, n_out, bias=False)
        H, q, kv = c["hidden_size"], c["num_attention_heads"] * c["head_dim"], c["num_key_value_heads"] * c["head_dim"]
        self.input_layernorm, self.hidden_norm, self.post_attention_layernorm = (nn.RMSNorm(H, c["rms_norm_eps"]) for _ in range(3))
        self.self_attn = nn.ModuleDict({"q_proj": linear(2 * H, q), "k_proj": linear(2 * H, kv), "v_proj": linear(2 * H, kv), "o_proj": linear(q, H)})
        self.mlp = nn.ModuleDict({"gate_proj": linear(H, c["intermediate_size"]), "up_proj": linear(H, c["intermediate_size"]),
                                  "down_proj": linear(c["intermediate_size"], H)})


class Head(nn.Module):
    def __init__(self, c, target, drafted):
        """drafted: ids of the draft vocabulary, ascending. The output starts as the target's."""
        super().__init__()
        self.config, self.drafted, self.embed = c, drafted, target.get_input_embeddings().weight.detach()
        self.fc, self.midlayer = nn.Linear(3 * c["target_hidden_size"], c["hidden_size"], bias=False), Layer(c)
        self.norm, self.lm_head = nn.RMSNorm(c["hidden_size"], c["rms_norm_eps"]), nn.Linear(c["hidden_size"], len(drafted), bias=False)
        for p in self.parameters():
            if p.dim() == 2: nn.init.normal_(p, 0, p.shape[1] ** -0.5)
        for p in self.midlayer.self_attn.o_proj.weight, self.midlayer.mlp.down_proj.weight: nn.init.normal_(p, 0, 0.2 * p.shape[1] ** -0.5)
        with torch.no_grad():  # less sure than the target, at first
            self.lm_head.weight.copy_(target.get_output_embeddings().weight[drafted])
            self.norm.weight.copy_(0.3 * head_data.final_norm(target).weight)
        D = c["head_dim"]
        self.register_buffer("inverse", 1.0 / c["rope_theta"] ** (torch.arange(0, D, 2).float() / D), persistent=False)
        self.register_buffer("scale", torch.ones(3 * c["target_hidden_size"]))

    def heads(self, x, n, positions=None):
        x = x.float().view(len(x), n, -1)
        if positions is None: return x
        angles, (a, b) = torch.outer(positions.float(), self.inverse).repeat(1, 2)[:, None], x.chunk(2, -1)
        return x * angles.cos() + torch.cat((-b, a), -1) * angles.sin()

    def unroll(self, batch, steps):
        """What each step puts out at the batch's guessing rows, step by step; of step s, each conversation's first s rows mean nothing."""
        c, a, mlp = self.config, self.midlayer.self_attn, self.midlayer.mlp
        n, kv = c["num_attention_heads"], c["num_key_value_heads"]
        low = {m: m.weight.bfloat16() for m in self.modules() if isinstance(m, nn.Linear)}
        linear = lambda m, x: F.linear(x.bfloat16(), low[m])
        shared = lambda k: k.repeat_interleave(n // kv, 1)  # heads that share keys
        e = self.midlayer.input_layernorm(F.embedding(batch.tokens, self.embed).float())
        f = linear(self.fc, batch.features / self.scale).float()
        drop = lambda x: F.dropout(x, DROPPED, self.training)
        both = drop(torch.cat((e, self.midlayer.hidden_norm(f)), -1).bfloat16())
        keys = batch.as_keys(shared(self.heads(linear(a.k_proj, both), kv, batch.positions)).bfloat16())
        values = batch.as_keys(shared(self.heads(linear(a.v_proj, both), kv)).bfloat16())
        guess, later = batch.guess, []  # later: keys and values of the steps after the first
        e, f, both, positions = e[guess], f[guess], both[guess], batch.positions[guess]
        for s in range(steps):
            if s:
                f = x.roll(1, 0)
                both = drop(torch.cat((e, self.midlayer.hidden_norm(f)), -1).bfloat16())
                later.append((shared(self.heads(linear(a.k_proj, both), kv, positions)), shared(self.heads(linear(a.v_proj, both), kv))))
            q = self.heads(linear(a.q_proj, both), n, positions) * c["head_dim"] ** -0.5
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
            x = f + linear(a.o_proj, out.flatten(1)).float()
            y = self.midlayer.post_attention_layernorm(x)
            x = x + linear(mlp.down_proj, F.silu(linear(mlp.gate_proj, y)) * linear(mlp.up_proj, y)).float()
            yield x

    def tensors(self):
        t = {name: p.detach() for name, p in self.named_parameters()}
        t["fc.weight"] = t["fc.weight"] / self.scale
        t = {name: p.bfloat16().contiguous() for name, p in t.items()}
        t["d2t"] = self.drafted - torch.arange(len(self.drafted))
        t["t2d"] = torch.zeros(self.config["vocab_size"], dtype=torch.bool).index_fill(0, self.drafted, True)
        return t

    def save(self, folder):
        os.makedirs(folder, exist_ok=True)
        save_file(self.tensors(), folder + "/model.safetensors.part")
        with open(folder + "/config.json", "w") as f: f.write(json.dumps(self.config, indent=2) + "\n")
        os.replace(folder + "/model.safetensors.part", folder + "/model.safetensors")


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


class Loss(torch.autograd.Function):
    """The gradient of cross-entropies with given distributions, weighted; the value is of their choices, as a report tells it. The logits of
    a few rows exist at a time."""

    @staticmethod
    def forward(ctx, x, w, wanted, choice, weights):
        total, gx, gw = 0.0, torch.empty_like(x), torch.zeros(w.shape)
        for i in range(0, len(x), CHUNK):
            s = slice(i, i + CHUNK)
            p = (x[s] @ w.t()).softmax(-1)
            total -= (p.gather(1, choice[s, None])[:, 0].float().clamp(min=1e-9).log() * weights[s]).sum()
            p.sub_(wanted[s]).mul_(weights[s, None].bfloat16())
            gx[s] = p @ w
            gw += p.t() @ x[s]
        ctx.save_for_backward(gx, gw.bfloat16())
        return total

    @staticmethod
    def backward(ctx, grad):
        gx, gw = ctx.saved_tensors
        return gx * grad, gw * grad, None, None, None


def what_to_learn(head, output, batch):
    """(rows, draft vocabulary): the target's distribution; the likeliest; and which rows' choice is in that vocabulary, as far as it is
    known. output: the drafted rows of the target's output matrix."""
    index = torch.full((head.config["vocab_size"],), -1).index_copy(0, head.drafted, torch.arange(len(head.drafted)))
    wanted = torch.empty(len(batch.last), len(output), dtype=torch.bfloat16)
    for i in range(0, len(wanted), CHUNK): torch.softmax(F.linear(batch.last[i:i + CHUNK], output), -1, out=wanted[i:i + CHUNK])
    return wanted, wanted.argmax(-1), (batch.choice < 0) | (index[batch.choice] >= 0)


def batches(paths, rng):
    """One epoch. Conversations of like lengths are put together."""
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
        for j in torch.randperm(len(groups), generator=rng).tolist(): yield Batch(groups[j], [first] * len(groups[j]))


@torch.no_grad()
def report(head, paths):
    """Guesses along the target's own text, as a chain of GUESSES would make them: share accepted of each that was reached; tokens a pass."""
    reached, right, passes, tokens = [0] * GUESSES, [0] * GUESSES, 0, 0
    for c in head_data.conversations(paths):
        batch = Batch([c], [c["answer"] - 1])
        w = head.lm_head.weight.bfloat16()
        ok = [(head.drafted[F.linear(head.norm(x).bfloat16(), w).argmax(-1)] == batch.choice).tolist() for x in head.unroll(batch, GUESSES)]
        i = 0
        while i + GUESSES <= len(batch.choice):
            n = 0
            while n < GUESSES and ok[n][i + n]: n += 1
            for k in range(GUESSES):
                reached[k] += n >= k
                right[k] += n > k
            passes, tokens, i = passes + 1, tokens + n + 1, i + n + 1
    return [round(100 * a / max(b, 1), 1) for a, b in zip(right, reached)], round(tokens / max(passes, 1), 2)


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


def config_of(target, layers, o):
    t = target.config
    heads = o.heads or t.num_attention_heads
    norm = head_data.name_of_norm(head_data.final_norm(target).weight)
    return {"architectures": ["LlamaForCausalLMEagle3"], "model_type": "llama",
            "dtrun_target": {"name": os.path.basename(os.path.normpath(t.name_or_path)), "final_norm": norm},
            "hidden_act": "silu", "hidden_size": t.hidden_size, "target_hidden_size": t.hidden_size, "intermediate_size": o.inter or t.intermediate_size, "num_hidden_layers": 1,
            "num_attention_heads": heads, "num_key_value_heads": o.kv_heads or getattr(t, "num_key_value_heads", heads),
            "head_dim": getattr(t, "head_dim", None) or t.hidden_size // t.num_attention_heads, "rms_norm_eps": getattr(t, "rms_norm_eps", 1e-5),
            "rope_theta": t.rope_parameters["rope_theta"], "max_position_embeddings": t.max_position_embeddings, "vocab_size": t.vocab_size,
            "draft_vocab_size": o.vocabulary, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
            "eagle_aux_hidden_state_layer_ids": layers}


def train(target, tokenizer, layers, answers, held, o):
    minutes = o.minutes or 50
    state = torch.load(o.work + "/train.pt") if os.path.exists(o.work + "/train.pt") else {"minutes": 0.0, "updates": 0, "rows": 0}
    if "drafted" in state: drafted = state["drafted"]
    else:
        drafted, share = draft_vocabulary(answers, o.prompts, tokenizer, o.vocabulary, target.config.vocab_size)
        print(f"draft vocabulary: {o.vocabulary} tokens, {100 * share:.1f} % of the answers'", flush=True)
    config = config_of(target, layers, o)
    head = Head(config, target, drafted)
    matrices = [p for n, p in head.named_parameters() if p.dim() == 2 and n != "lm_head.weight"]
    others = [p for n, p in head.named_parameters() if p.dim() == 1 or n == "lm_head.weight"]
    optimizers = [torch.optim.Muon(matrices, lr=o.rate, weight_decay=0.0, adjust_lr_fn="match_rms_adamw"),
                  torch.optim.AdamW(others, lr=o.rate, betas=(0.9, 0.98), weight_decay=0.0)]
    if "drafted" in state:
        head.load_state_dict(state["head"])
        for p, s in zip(optimizers, state["optimizers"]): p.load_state_dict(s)
    else: head.scale.copy_(feature_scale(head_data.shards(answers)[:4]))
    print(f"{sum(p.numel() for p in head.parameters()) / 1e6:.2f} M parameters, layers {layers}", flush=True)
    output = target.get_output_embeddings().weight[drafted]
    rng, start, before = torch.Generator().manual_seed(state["updates"]), time.process_time(), state["minutes"]
    reported, loss_sum, count = time.time(), 0.0, 0

    def tell():
        head.eval()
        guesses, tokens = report(head, held)
        head.train()
        print(f"minute {state['minutes']:.1f}: {state['updates']} updates, {state['rows']} rows, loss {loss_sum / max(count, 1):.3f}, "
              f"held out: guesses accepted {guesses} %, {tokens} tokens a pass", flush=True)
        head.save(o.out)
        new = {**state, "drafted": drafted, "head": head.state_dict(), "optimizers": [p.state_dict() for p in optimizers]}
        torch.save(new, o.work + "/train.pt.part")
        os.replace(o.work + "/train.pt.part", o.work + "/train.pt")

    while state["minutes"] < minutes:
        for batch in batches(head_data.shards(answers), rng):
            done = state["minutes"] / minutes
            if done >= 1: break
            steps = 1 + int(max(0.0, (done - o.alone) / (1 - o.alone)) * o.unroll)  # the first guess alone, then more and more
            rate = o.rate * min(1, (state["updates"] + 1) / 20) * (1 - done)
            for p in optimizers:
                for group in p.param_groups: group["lr"] = rate
                p.zero_grad(set_to_none=True)
            with torch.no_grad(): wanted, choice, known = what_to_learn(head, output, batch)
            w, loss = head.lm_head.weight.bfloat16(), 0
            for s, x in enumerate(head.unroll(batch, steps)):
                weights = (known & (batch.step >= s)).float()
                one = Loss.apply(F.dropout(head.norm(x).bfloat16(), DROPPED), w, wanted, choice, weights / weights.sum())
                if s == 0: loss_sum, count = loss_sum + one.item(), count + 1
                loss = loss + 0.8 ** s * one
            loss.backward()
            nn.utils.clip_grad_norm_(others, 1.0)
            for p in optimizers: p.step()
            state["updates"] += 1
            state["rows"] += len(batch.guess)
            state["minutes"] = before + (time.process_time() - start) / 60 / o.threads
            if time.time() - reported > 60 * o.every:
                tell()
                reported, loss_sum, count = time.time(), 0.0, 0
    tell()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("part", choices=["answers", "features", "train"]), ap.add_argument("target"), ap.add_argument("work")
    for name in "prompts", "held", "out": ap.add_argument("--" + name)
    for name, value in ("minutes", None), ("every", 4.0), ("rate", 2e-3), ("alone", 0.5): ap.add_argument("--" + name, type=float, default=value)
    for name, value in (("tokens", 256), ("context", 1024), ("warm", 3), ("vocabulary", 8192), ("unroll", 3), ("threads", 2),
                        ("heads", 0), ("kv-heads", 0), ("inter", 0)):
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
