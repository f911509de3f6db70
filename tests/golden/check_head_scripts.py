"""Does a head in training compute the same as when it is used, and does convert_head.py keep what it converts? Run it
by hand; it takes seconds:

    pip install torch transformers safetensors numpy
    python tests/golden/check_head_scripts.py

Uses a tiny random target and a random head. One side is three unrolled steps of scripts/training/train_head.py for
two conversations at once. The other side is the file that it saves, run row by row as a draft runs: rows with true
features for the committed tokens, then a chain of guesses, each from its parent's output, in plain float32 numpy.
Prints the largest difference of the logits at every guess of every step, relative to their size. The training
computes in bfloat16, so some hundredths are right; a wrong row, mask or position gives more. Then it converts
pickles: heads of each kind keep every bit and lose their prefix; a file that is not a head, or that would run
something, is refused.
"""
import os, pathlib, subprocess, sys, tempfile
import numpy as np
import torch
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForCausalLM

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts/training"
sys.path.insert(0, str(SCRIPTS))
import train_head

HIDDEN, VOCAB, DRAFTED, STEPS, BOUND = 32, 96, 40, 3, 0.05
CONFIG = {"hidden_size": HIDDEN, "target_hidden_size": HIDDEN, "intermediate_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2,
          "head_dim": 12, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "vocab_size": VOCAB, "draft_vocab_size": DRAFTED}


class AtWork:
    """The head's file. Its cache has a row for each row that it was given."""

    def __init__(self, folder, embed):
        self.t = {n: t.float().numpy() for n, t in load_file(folder + "/model.safetensors").items()}
        self.embed, self.keys, self.values = embed, [], []

    def norm(self, x, name): return x / np.sqrt((x * x).mean() + CONFIG["rms_norm_eps"]) * self.t[name + ".weight"]

    def turn(self, x, position):
        half = x.shape[1] // 2
        angle = position * CONFIG["rope_theta"] ** (-np.arange(half) / half)
        a, b = x[:, :half], x[:, half:]
        return np.concatenate((a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)), 1)

    def row(self, feature, token, position):
        """Returns (logits, output) of one row. A true feature is three layers wide, a guessed one as wide as the head."""
        t, D, at = self.t, CONFIG["head_dim"], "midlayer."
        f = t["fc.weight"] @ feature if len(feature) == 3 * HIDDEN else feature
        both = np.concatenate((self.norm(self.embed[token], at + "input_layernorm"), self.norm(f, at + "hidden_norm")))
        q, k, v = ((t[f"{at}self_attn.{n}_proj.weight"] @ both).reshape(-1, D) for n in "qkv")
        self.keys.append(self.turn(k, position)), self.values.append(v)
        out = []
        for i, one in enumerate(self.turn(q, position)):
            kv = i // (CONFIG["num_attention_heads"] // CONFIG["num_key_value_heads"])
            p = np.exp(np.array([one @ key[kv] for key in self.keys]) * D ** -0.5)
            out.append((p / p.sum()) @ np.array([value[kv] for value in self.values]))
        x = f + t[at + "self_attn.o_proj.weight"] @ np.concatenate(out)
        y = self.norm(x, at + "post_attention_layernorm")
        gate = t[at + "mlp.gate_proj.weight"] @ y
        x = x + t[at + "mlp.down_proj.weight"] @ (gate / (1 + np.exp(-gate)) * (t[at + "mlp.up_proj.weight"] @ y))
        return t["lm_head.weight"] @ self.norm(x, "norm"), x


def chain(folder, embed, c, committed):
    """Returns the logits of a chain of guesses after `committed` rows with true features. The conversation's own tokens
    are drafted."""
    work = AtWork(folder, embed)
    for i in range(committed): logits, x = work.row(c["features"][i].float().numpy(), c["ids"][i + 1], i)
    told = [logits]
    for i in range(committed, committed + STEPS - 1):
        logits, x = work.row(x, c["ids"][i + 1], i)
        told.append(logits)
    return told


class Hostile:
    def __reduce__(self): return os.system, ("echo hostile pickle ran",)


def convert(content, name, config="{}"):
    """Returns (exit code, output, tensors) of convert_head.py for a pickle."""
    with tempfile.TemporaryDirectory() as folder:
        torch.save(content, f"{folder}/{name}")
        if config: pathlib.Path(folder, "config.json").write_text(config)
        r = subprocess.run([sys.executable, SCRIPTS / "convert_head.py", folder, folder + "/out"], capture_output=True, text=True)
        return r.returncode, r.stdout + r.stderr, None if r.returncode else load_file(folder + "/out/model.safetensors")


def check_conversion():
    eagle = {"fc.weight": torch.randn(4, 12).half(), "norm.weight": torch.randn(4).bfloat16(), "d2t": torch.arange(5), "t2d": torch.ones(9, dtype=torch.bool)}
    medusa = {"0.0.linear.weight": torch.randn(4, 4), "0.0.linear.bias": torch.randn(4), "0.1.weight": torch.randn(9, 4)}
    for kind, name in (eagle, "pytorch_model.bin"), (medusa, "medusa_lm_head.pt"):
        for prefix in "", "module.":
            code, said, got = convert({prefix + n: t for n, t in kind.items()}, name)
            assert code == 0 and got.keys() == kind.keys(), said
            assert all(torch.equal(got[n], t) and got[n].dtype == t.dtype for n, t in kind.items())
    for content, config, says in ({"other": torch.ones(1)}, "{}", "no head"), ([1, 2], "{}", "not a table"), (eagle, None, "config.json is missing"):
        code, said, _ = convert(content, "pytorch_model.bin", config)
        assert code != 0 and says in said and "Traceback" not in said, said
    code, said, _ = convert(Hostile(), "pytorch_model.bin")
    assert code != 0 and "hostile pickle ran" not in said and "Traceback" not in said, said


@torch.no_grad()
def check_training():
    torch.manual_seed(1)
    target = LlamaForCausalLM(LlamaConfig(hidden_size=HIDDEN, vocab_size=VOCAB, num_hidden_layers=1, num_attention_heads=4, intermediate_size=48))
    drafted = torch.randperm(VOCAB)[:DRAFTED].sort().values
    head = train_head.Head(CONFIG, target, drafted)
    for p in head.parameters(): p.copy_(torch.randn_like(p) * (0.3 if p.dim() == 2 else 0.1) + (p.dim() == 1))
    head.scale.copy_(torch.rand(3 * HIDDEN) + 0.5)
    conversations = [{"ids": torch.randint(0, VOCAB, (n,)), "features": torch.randn(n, 3 * HIDDEN).bfloat16(),
                      "last": torch.randn(n, HIDDEN).bfloat16(), "choice": torch.randint(0, VOCAB, (n,)), "answer": a} for n, a in ((14, 5), (19, 11))]
    batch = train_head.Batch(conversations, [c["answer"] - 1 for c in conversations])
    steps = [torch.nn.functional.linear(head.norm(x), head.lm_head.weight).numpy() for x in head.unroll(batch, STEPS)]
    worst, at = [0.0] * STEPS, 0
    with tempfile.TemporaryDirectory() as folder:
        head.save(folder)
        stored = load_file(folder + "/model.safetensors")
        assert (stored["d2t"] + torch.arange(DRAFTED)).tolist() == drafted.tolist() == stored["t2d"].nonzero()[:, 0].tolist()
        for c in conversations:
            first, rows = c["answer"] - 1, len(c["ids"]) - 1
            for base in range(first, rows - STEPS + 1):
                for s, logits in enumerate(chain(folder, head.embed.float().numpy(), c, base + 1)):
                    off = np.abs(steps[s][at + base - first + s] - logits).max() / np.abs(logits).max()
                    worst[s] = max(worst[s], float(off))
            at += rows - first
    print("largest difference, step by step:", ", ".join(f"{w:.4f}" for w in worst))
    assert max(worst) < BOUND


check_conversion()
check_training()
