"""Writes a pair of checkpoints of given shapes, Pythia's or Llama's, whose agreement is chosen: larger pairs without a download, for
benchmarks. Their text means nothing, and results on them are always labelled synthetic.

    python make_synthetic_pair.py --target pythia-410m --draft pythia-70m --agreement 0.8 --second 0.1 --seed 1 OUT

needs torch and safetensors, and writes OUT/synthetic-410m and OUT/synthetic-70m (F16 safetensors, config.json, tokenizer.json; llama-1b
becomes OUT/synthetic-llama-1b). Whatever the shape, ids are those of Pythia's tokenizer, so that any two make a pair.
With several agreements, one target and a draft for each: OUT/synthetic-70m-0.7, ...

How. A random permutation of the ids, one full cycle, says which token follows which. Output embeddings are random rows, nearly
orthogonal. The input embedding of x points at the rows of three candidates, so far that their probabilities are p1 > p2 > p3,
with a random p1 for every token. The target's first candidate is x's successor; the draft has it first with probability p1, second
with p2, third with p3, otherwise not at all, so its confidence is calibrated. p1 is `agreement` on average, p2 + p3 is `second`.
The layers are random, of a scale at which every operation matters, and shift each logit by NOISE or so, each model's in its own
way and with the context: so neither follows the permutation exactly. What was reached, along a text that does, is measured,
printed, and written to synthetic.json in the draft's folder.
"""
import argparse, collections, json, math, pathlib, shutil
import torch
import torch.nn.functional as F
from safetensors.torch import save_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
Shape = collections.namedtuple("Shape", "layers hidden heads kv_heads inter vocab")


def neox(layers, hidden, heads, vocab): return Shape(layers, hidden, heads, heads, 4 * hidden, vocab)


SHAPES = {
    "pythia-14m": neox(6, 128, 4, 50304), "pythia-70m": neox(6, 512, 8, 50304), "pythia-160m": neox(12, 768, 12, 50304),
    "pythia-410m": neox(24, 1024, 16, 50304), "pythia-1b": neox(16, 2048, 8, 50304), "pythia-1.4b": neox(24, 2048, 16, 50304),
    "pythia-2.8b": neox(32, 2560, 32, 50304), "pythia-6.9b": neox(32, 4096, 32, 50432), "pythia-12b": neox(36, 5120, 40, 50688),
    "llama-15m": Shape(6, 288, 6, 2, 768, 50304), "llama-135m": Shape(30, 576, 9, 3, 1536, 50304),
    "llama-1b": Shape(16, 2048, 32, 8, 8192, 50304), "llama-3b": Shape(28, 3072, 24, 8, 8192, 50304),
}
SPECIAL, IDS = 2, 50277  # ids below SPECIAL are never generated: nothing ends the text; the tokenizer has IDS ids
NOISE = 0.3  # what the layers add to a logit: its standard deviation
LEAST, MOST = 0.3, 0.99  # bounds of a token's p1
TARGET = 0.75, 0.15  # means of p1 and p2 + p3 in the target: sometimes near enough for its layers to choose another


class Neox:
    """A parallel residual, LayerNorm, biases, a quarter of a head rotates."""
    embed, unembed, norm, rotates = "gpt_neox.embed_in.weight", "embed_out.weight", "gpt_neox.final_layer_norm", 4

    @staticmethod
    def config(s):
        return {"architectures": ["GPTNeoXForCausalLM"], "hidden_act": "gelu", "layer_norm_eps": 1e-05, "model_type": "gpt_neox",
                "rotary_emb_base": 10000, "rotary_pct": 0.25, "use_parallel_residual": True}

    @staticmethod
    def layer(s, i, add, add_norm):
        at = f"gpt_neox.layers.{i}."
        for name in ("input_layernorm", "post_attention_layernorm"): add_norm(at + name, True)
        add(at + "attention.query_key_value", 3 * s.hidden, s.hidden, 1.5, True)  # scores of a few units: attention has favourites
        add(at + "attention.dense", s.hidden, s.hidden, 1.0, True)
        add(at + "mlp.dense_h_to_4h", s.inter, s.hidden, 1.0, True)
        add(at + "mlp.dense_4h_to_h", s.hidden, s.inter, 1.0, True)

    @staticmethod
    def run(s, i, tensors, h):
        t = part_of(tensors, f"gpt_neox.layers.{i}.")
        linear = lambda name, x: F.linear(x, t[name + ".weight"], t[name + ".bias"])
        norm = lambda name: F.layer_norm(h, (s.hidden,), t[name + ".weight"], t[name + ".bias"], 1e-5)
        qkv = linear("attention.query_key_value", norm("input_layernorm"))
        q, k, v = qkv.view(*h.shape[:2], s.heads, -1).transpose(1, 2).chunk(3, -1)
        attention = linear("attention.dense", attend(s, q, k, v, Neox.rotates))
        return h + attention + linear("mlp.dense_4h_to_h", F.gelu(linear("mlp.dense_h_to_4h", norm("post_attention_layernorm"))))

    @staticmethod
    def last_norm(s, tensors, h):
        return F.layer_norm(h, h.shape[1:], tensors[Neox.norm + ".weight"].float(), tensors[Neox.norm + ".bias"].float(), 1e-5)


class Llama:
    """A sequential residual, RMSNorm, a gate, groups of heads, no biases, whole heads rotate."""
    embed, unembed, norm, rotates = "model.embed_tokens.weight", "lm_head.weight", "model.norm", 1

    @staticmethod
    def config(s):
        return {"architectures": ["LlamaForCausalLM"], "hidden_act": "silu", "rms_norm_eps": 1e-05, "model_type": "llama",
                "num_key_value_heads": s.kv_heads, "rope_theta": 10000.0}

    @staticmethod
    def layer(s, i, add, add_norm):
        at, keys = f"model.layers.{i}.", s.hidden // s.heads * s.kv_heads
        for name in ("input_layernorm", "post_attention_layernorm"): add_norm(at + name, False)
        for name, rows, scale in (("q", s.hidden, 1.5), ("k", keys, 1.5), ("v", keys, 1.0), ("o", s.hidden, 1.0)):
            add(f"{at}self_attn.{name}_proj", rows, s.hidden, scale, False)
        for name in ("gate", "up"): add(f"{at}mlp.{name}_proj", s.inter, s.hidden, 1.0, False)
        add(at + "mlp.down_proj", s.hidden, s.inter, 1.0, False)

    @staticmethod
    def run(s, i, tensors, h):
        t = part_of(tensors, f"model.layers.{i}.")
        linear = lambda name, x: F.linear(x, t[name + "_proj.weight"])
        x = F.rms_norm(h, (s.hidden,), t["input_layernorm.weight"], 1e-5)
        q, k, v = (linear("self_attn." + name, x).view(*h.shape[:2], n, -1).transpose(1, 2)
                   for name, n in (("q", s.heads), ("k", s.kv_heads), ("v", s.kv_heads)))
        h = h + linear("self_attn.o", attend(s, q, *(x.repeat_interleave(s.heads // s.kv_heads, 1) for x in (k, v)), Llama.rotates))
        x = F.rms_norm(h, (s.hidden,), t["post_attention_layernorm.weight"], 1e-5)
        return h + linear("mlp.down", F.silu(linear("mlp.gate", x)) * linear("mlp.up", x))

    @staticmethod
    def last_norm(s, tensors, h): return F.rms_norm(h, h.shape[1:], tensors[Llama.norm + ".weight"].float(), 1e-5)


def family(name): return Llama if name.startswith("llama") else Neox


def part_of(tensors, prefix):
    """In f32: one layer in memory at a time."""
    return {name.removeprefix(prefix): x.float() for name, x in tensors.items() if name.startswith(prefix)}


def config(name):
    s = SHAPES[name]
    return {**family(name).config(s), "bos_token_id": 0, "eos_token_id": 0, "hidden_size": s.hidden, "initializer_range": 0.02,
            "intermediate_size": s.inter, "max_position_embeddings": 2048, "num_attention_heads": s.heads, "num_hidden_layers": s.layers,
            "tie_word_embeddings": False, "torch_dtype": "float16", "use_cache": True, "vocab_size": s.vocab}


def successors(vocab, rng):
    """One cycle through all ids that may be generated; every other id leads into it."""
    order = SPECIAL + torch.randperm(IDS - SPECIAL, generator=rng)
    after = order[torch.randint(len(order), (vocab,), generator=rng)]
    after[order] = order.roll(-1)
    return after


def random_layers(name, rng):
    s, tensors = SHAPES[name], {}

    def add(name, rows, cols, scale, bias):
        tensors[name + ".weight"] = (torch.randn(rows, cols, generator=rng) * (scale / math.sqrt(cols))).half()
        if bias: tensors[name + ".bias"] = (0.1 * torch.randn(rows, generator=rng)).half()

    def add_norm(name, bias):
        tensors[name + ".weight"] = (1 + 0.1 * torch.randn(s.hidden, generator=rng)).half()
        if bias: tensors[name + ".bias"] = (0.1 * torch.randn(s.hidden, generator=rng)).half()

    for i in range(s.layers): family(name).layer(s, i, add, add_norm)
    return tensors


def candidates(after, agreement, second, guesses, rng):
    """[vocab, 3] ids and [vocab, 3] their probabilities. guesses: the successor's rank is random, otherwise it is the first."""
    vocab = len(after)
    power = (MOST - LEAST) / (agreement - LEAST) - 1  # so that the mean of LEAST + (MOST - LEAST) u^power is the agreement
    p1 = LEAST + (MOST - LEAST) * torch.rand(vocab, generator=rng) ** power
    rest = second / (1 - agreement) * (1 - p1)
    p = torch.stack([p1, torch.minimum(rest * 2 / 3, p1), rest / 3], 1)
    ids = SPECIAL + torch.randint(IDS - SPECIAL, (vocab, 3), generator=rng)
    rank = (torch.rand(vocab, 1, generator=rng) > p.cumsum(1)).sum(1) if guesses else torch.zeros(vocab, dtype=torch.long)
    has = rank < 3
    ids[has.nonzero()[:, 0], rank[has]] = after[has]
    return ids, p


def embeddings(shape, ids, p, rng):
    """Input rows of norm 1 and output rows, such that the candidates' logits after a norm are those of their probabilities."""
    hidden, vocab = shape.hidden, shape.vocab
    size = 1.0  # the norm of an output row: the least at which an input row of norm 1 can have all three logits
    for _ in range(20):
        background = math.log(vocab) + size**2 / 2  # log of the sum of exp over all other ids, whose logits are normal
        logits = p.log() + background - (1 - p.sum(1, keepdim=True)).log()
        size = logits.norm(dim=1).max().item() / (0.97 * math.sqrt(hidden))
    unembed = F.normalize(torch.randn(vocab, hidden, generator=rng), dim=1) * size
    embed = F.normalize(torch.randn(vocab, hidden, generator=rng), dim=1)
    for some in torch.arange(vocab).split(4096):
        rows = unembed[ids[some]]  # [n, 3, hidden]
        both = torch.cat([rows, embed[some].unsqueeze(1)], 1)
        # The combination of candidate rows with the wanted products, and of what is orthogonal to them up to norm 1.
        gram = rows @ rows.transpose(1, 2) + 1e-4 * size**2 * torch.eye(3)  # a candidate may have been drawn twice
        wanted = (logits[some] / math.sqrt(hidden)).unsqueeze(2)
        aim = (torch.linalg.solve(gram, wanted).transpose(1, 2) @ rows).squeeze(1)
        along = torch.linalg.solve(gram, rows @ both[:, 3].unsqueeze(2)).transpose(1, 2) @ rows
        free = F.normalize(both[:, 3] - along.squeeze(1), dim=1)
        embed[some] = aim + free * (1 - aim.square().sum(1, keepdim=True)).clamp(min=0).sqrt()
    return embed, unembed


def rotate(x, n):
    """Rotary positions for [batch, heads, time, dim]: the first n numbers of a head, in split halves."""
    angle = torch.arange(x.shape[2])[:, None] * 10000.0 ** (-torch.arange(0, n, 2) / n)
    angle = torch.cat([angle, angle], 1)
    turned, rest = x[..., :n], x[..., n:]
    half = torch.cat([-turned[..., n // 2:], turned[..., : n // 2]], -1)
    return torch.cat([turned * angle.cos() + half * angle.sin(), rest], -1)


def attend(s, q, k, v, part):
    n = s.hidden // s.heads // part
    mixed = F.scaled_dot_product_attention(rotate(q, n), rotate(k, n), v, is_causal=True)
    return mixed.transpose(1, 2).flatten(2)


def run_layers(tensors, name, h):
    """What the layers make of the embeddings [batch, time, hidden], in f32."""
    for i in range(SHAPES[name].layers): h = family(name).run(SHAPES[name], i, tensors, h)
    return h


def make_model(name, ids, p, text, rng):
    shape, kind = SHAPES[name], family(name)
    tensors = random_layers(name, rng)
    embed, unembed = embeddings(shape, ids, p, rng)
    share = NOISE / unembed[0].norm()  # of a hidden state's length: what the layers may add to it
    x = embed[text[:1]] * math.sqrt(shape.hidden) / share
    added = (run_layers(tensors, name, x) - x).norm(dim=2).mean()
    tensors[kind.embed] = (embed * added / share).half()
    tensors[kind.unembed] = unembed.half()
    tensors[kind.norm + ".weight"] = ((1 + share**2).sqrt() * torch.ones(shape.hidden)).half()  # what it takes away
    if kind is Neox: tensors[kind.norm + ".bias"] = torch.zeros(shape.hidden).half()
    return tensors


def predict(tensors, name, text):
    """The three best ids after each position of [batch, time] and the best one's probability: [positions, 3], [positions]."""
    kind = family(name)
    h = run_layers(tensors, name, tensors[kind.embed][text].float()).flatten(0, 1)
    unembed = tensors[kind.unembed].float()
    best, confidence = [], []
    for rows in kind.last_norm(SHAPES[name], tensors, h).split(256):
        logits = rows @ unembed.T
        top = logits.topk(3, dim=1)
        best.append(top.indices)
        confidence.append((top.values[:, 0] - logits.logsumexp(1)).exp())
    return torch.cat(best), torch.cat(confidence)


def measure(draft, name, text, choice):
    """How the draft's guesses along the text meet the target's choice."""
    best, confidence = predict(draft, name, text)
    hit = best == choice[:, None]
    measured = {"positions": len(choice), "agreement": hit[:, 0].float().mean().item(),
                "second": hit[:, 1:].any(1).float().mean().item(), "confidence": confidence.mean().item(), "bins": []}
    for low, high in ((0, 0.5), (0.5, 0.7), (0.7, 0.9), (0.9, 1.01)):
        some = (confidence >= low) & (confidence < high)
        if some.any():
            measured["bins"].append({"n": int(some.sum()), "confidence": confidence[some].mean().item(),
                                     "agreement": hit[some, 0].float().mean().item()})
    return measured


def save(tensors, name, folder, about):
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config(name), indent=2) + "\n")
    (folder / "synthetic.json").write_text(json.dumps(about, indent=1) + "\n")
    shutil.copy(ROOT / "tests/data/gpt-neox/tokenizer.json", folder / "tokenizer.json")
    print(f"wrote {folder}")


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description="write a synthetic pair of Pythia's or Llama's shapes with a chosen agreement")
    parser.add_argument("--target", choices=SHAPES, default="pythia-410m")
    parser.add_argument("--draft", choices=SHAPES, default="pythia-70m")
    parser.add_argument("--agreement", type=float, nargs="+", default=[0.8], help="P(the draft's first choice is the target's)")
    parser.add_argument("--second", type=float, default=0.1, help="P(the draft's second or third choice is the target's)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--positions", type=int, default=2048, help="over which the agreement is measured")
    parser.add_argument("out", type=pathlib.Path)
    options = parser.parse_args()
    for a in options.agreement:
        if not LEAST < a < MOST or options.second < 0 or a + options.second >= 1:
            parser.error(f"agreement {a}: expected more than {LEAST}, less than {MOST}, and with --second less than 1")

    def generator(stream):  # each part has its own numbers, so that one target serves every draft of a seed
        return torch.Generator().manual_seed(1000 * options.seed + stream)

    after = successors(max(SHAPES[options.target].vocab, SHAPES[options.draft].vocab), generator(0))
    text = SPECIAL + torch.randint(IDS - SPECIAL, (max(1, options.positions // 128), 1), generator=generator(1))
    while text.shape[1] < 128:
        text = torch.cat([text, after[text[:, -1:]]], 1)

    def make(name, agreement, second, guesses, stream):
        rng = generator(stream)
        ids, p = candidates(after[: SHAPES[name].vocab], agreement, second, guesses, rng)
        return make_model(name, ids, p, text, rng)

    short = lambda name: "synthetic-" + name.removeprefix("pythia-")
    asked = {key: value for key, value in vars(options).items() if key not in ("out", "positions")}
    target = make(options.target, *TARGET, False, 2)
    choice = predict(target, options.target, text)[0][:, 0]
    follows = (choice == after[text].flatten()).float().mean().item()
    print(f"{options.target}: the successor is its first choice at {follows:.3f} of {len(choice)} positions")
    save(target, options.target, options.out / short(options.target), {"synthetic": True, **asked, "follows": follows})
    del target
    for agreement in options.agreement:
        draft = make(options.draft, min(agreement / follows, 0.999 * MOST), options.second, True, 3)
        measured = measure(draft, options.draft, text, choice)
        print(f"{options.draft}, agreement {agreement}, second {options.second}: reached {measured['agreement']:.3f} and "
              f"{measured['second']:.3f}, mean confidence {measured['confidence']:.3f}")
        for b in measured["bins"]:
            print(f"  of {b['n']:5d} positions of mean confidence {b['confidence']:.3f} agree {b['agreement']:.3f}")
        suffix = f"-{agreement:g}" if len(options.agreement) > 1 else ""
        save(draft, options.draft, options.out / (short(options.draft) + suffix),
             {"synthetic": True, **asked, "agreement": agreement, "measured": measured})


if __name__ == "__main__":
    main()
