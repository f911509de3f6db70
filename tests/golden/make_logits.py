"""Make logits/: what Hugging Face transformers computes (f32, CPU, eager attention) for the bundled pair and for tiny
random GPT-NeoX models with awkward shapes. Run it from anywhere, with torch, transformers, tokenizers, safetensors
and numpy installed:

    python tests/golden/make_logits.py [NAME ...]

Each logits/NAME/ gets golden.json and golden.bin. golden.json has the model's folder relative to the repository's
root and, for each case, the input ids, the positions whose logits are stored, the greedy continuation, and the
oracle's margin between its two best tokens at each step. golden.bin has those logits: f32, little endian,
[case][position][vocabulary]. The random models' checkpoints are in the same folders and are written only if they do
not exist, so that golden files can be made again with other versions for the same weights.
"""
import json, pathlib, sys
import numpy as np
import torch
import transformers
from safetensors.torch import save_file
from tokenizers import Tokenizer

transformers.utils.logging.disable_progress_bar()
ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "tests/golden/logits"
PROMPTS = ["wikitext2/01", "wikitext2/09", "novels/02", "novels/13", "novels/20"]

# config.json as it is written, with the key names in use; "_": the layout of the file
RANDOM = {
    "head80": {
        "_": {"dtype": torch.float16, "lengths": [3, 29]},
        "hidden_size": 160, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 168, "vocab_size": 151,
        "hidden_act": "gelu", "rope_parameters": {"rope_theta": 10000, "partial_rotary_factor": 0.25, "rope_type": "default"},
        "attention_bias": True, "tie_word_embeddings": True, "use_parallel_residual": True, "layer_norm_eps": 1e-05,
        "max_position_embeddings": 96, "dtype": "float16", "eos_token_id": [0, 7]},
    "sequential": {
        "_": {"dtype": torch.bfloat16, "lengths": [1, 40], "shards": 2},
        "hidden_size": 72, "num_attention_heads": 3, "num_hidden_layers": 2, "intermediate_size": 100, "vocab_size": 509,
        "hidden_act": "gelu_new", "rotary_pct": 0.25, "rotary_emb_base": 500, "use_parallel_residual": False,
        "tie_word_embeddings": False, "layer_norm_eps": 0.001, "max_position_embeddings": 100, "torch_dtype": "bfloat16",
        "rope_scaling": None, "eos_token_id": 0},
    "vocab1031": {
        "_": {"dtype": torch.bfloat16, "lengths": [5, 33], "head": "lm_head"},
        "hidden_size": 40, "num_attention_heads": 5, "num_hidden_layers": 3, "intermediate_size": 90, "vocab_size": 1031,
        "hidden_act": "gelu", "rotary_pct": 1.0, "partial_rotary_factor": 1.0, "rotary_emb_base": 10000, "rope_theta": 10000,
        "tie_word_embeddings": False, "max_position_embeddings": 128, "torch_dtype": "bfloat16", "eos_token_id": None},
    "nobias": {
        "_": {"dtype": torch.float32, "lengths": [2, 36], "masks": True},
        "hidden_size": 56, "num_attention_heads": 7, "num_hidden_layers": 2, "intermediate_size": 45, "vocab_size": 101,
        "hidden_act": "gelu_fast", "rotary_pct": 0.5, "rotary_emb_base": 10000, "attention_bias": False,
        "use_parallel_residual": True, "tie_word_embeddings": False, "layer_norm_eps": 1e-05, "max_position_embeddings": 64,
        "torch_dtype": "float32", "bos_token_id": 0, "eos_token_id": 0},
}


def save(tensors, path):
    save_file(tensors, path, metadata={"format": "pt"})
    path.chmod(0o644)


def random_checkpoint(folder, spec, seed):
    """Sets weights with a scale at which every part of a layer moves the logits, and logits spread over several units."""
    layout = spec.pop("_")
    folder.mkdir(parents=True)
    config = {"architectures": ["GPTNeoXForCausalLM"], "model_type": "gpt_neox", **spec}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    generator = torch.Generator().manual_seed(seed)
    model = transformers.GPTNeoXForCausalLM(transformers.AutoConfig.from_pretrained(folder))
    tensors = {}
    for name, p in model.named_parameters():
        if name in ("embed_out.weight", "lm_head.weight"):  # transformers has used both names; real Pythia files have the former
            name = layout.get("head", "embed_out") + ".weight"
        x = torch.randn(p.shape, generator=generator)
        if "norm" in name: x = 0.2 * x + (1 if name.endswith("weight") else 0)
        elif name.endswith("bias"): x = 0.3 * x
        elif name in ("embed_out.weight", "lm_head.weight") or spec["tie_word_embeddings"] and "embed_in" in name: x = x * 3 / p.shape[1] ** 0.5
        elif "embed_in" not in name: x = x * 1.5 / p.shape[1] ** 0.5
        tensors[name] = x.to(layout["dtype"])
    if layout.get("masks"):  # real Pythia files contain these in addition to the weights
        n = spec["max_position_embeddings"]
        for i in range(spec["num_hidden_layers"]):
            at = f"gpt_neox.layers.{i}.attention."
            tensors[at + "bias"] = torch.tril(torch.ones(1, 1, n, n, dtype=torch.bool if i % 2 else torch.uint8))
            tensors[at + "masked_bias"] = torch.tensor(-1e9)
            tensors[at + "rotary_emb.inv_freq"] = torch.ones(2)
    shards = layout.get("shards", 1)
    if shards == 1:
        save(tensors, folder / "model.safetensors")
        return
    names = sorted(tensors)
    file = {n: f"model-{i % shards + 1:05d}-of-{shards:05d}.safetensors" for i, n in enumerate(names)}
    for f in sorted(set(file.values())):
        save({n: tensors[n] for n in names if file[n] == f}, folder / f)
    size = sum(t.numel() * t.element_size() for t in tensors.values())
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": size}, "weight_map": file}, indent=1) + "\n")


@torch.no_grad()
def run(model, ids, n_greedy):
    """Returns the logits of all positions of ids, the greedy continuation, and the margin of each of its tokens."""
    out = model(input_ids=torch.tensor([ids]), use_cache=True)
    logits, last, greedy, margins = out.logits[0], out.logits[0, -1], [], []
    while len(greedy) < n_greedy:
        best = torch.topk(last, 2)
        greedy.append(int(best.indices[0]))
        margins.append(float(best.values[0] - best.values[1]))
        out = model(input_ids=torch.tensor([greedy[-1:]]), past_key_values=out.past_key_values, use_cache=True)
        last = out.logits[0, -1]
    return logits.numpy(), greedy, margins


def load(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


def make(name, oracle, cases, n_greedy, **more):
    """Writes logits/NAME/golden.*. `more` is added to golden.json: where the model is, or how to make it."""
    kept, listed = [], []
    for title, ids in cases:
        logits, greedy, margins = run(oracle, ids, n_greedy)
        n = len(ids)
        positions = sorted({0, n // 3, 2 * n // 3, n - 1})
        kept.append(logits[positions])
        listed.append({"name": title, "ids": ids, "positions": positions, "greedy": greedy, "margins": [round(m, 6) for m in margins]})
    (OUT / name).mkdir(parents=True, exist_ok=True)
    kept = np.concatenate(kept)
    kept.astype("<f4").tofile(OUT / name / "golden.bin")
    golden = {**more, "vocab": int(kept.shape[1]), "cases": listed,
              "made_with": {"transformers": transformers.__version__, "torch": torch.__version__}}
    (OUT / name / "golden.json").write_text(json.dumps(golden).replace('{"name"', '\n{"name"') + "\n")
    smallest = min(m for c in listed for m in c["margins"])
    print(f"{name}: logits {kept.min():.2f} .. {kept.max():.2f}, deviation {kept.std():.2f}, smallest margin {smallest:.5f}, "
          f"distinct greedy tokens {[len(set(c['greedy'])) for c in listed]}")


def random_cases(seed, vocab, lengths):
    rng = np.random.default_rng(seed)
    return [(f"random {n}", rng.integers(0, vocab, n).tolist()) for n in lengths]


def main(names):
    torch.manual_seed(0)
    for name in ["mini-target", "mini-draft"]:
        if names and name not in names: continue
        folder = ROOT / "models" / name
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        texts = [(p, (ROOT / f"scripts/prompts/{p}.txt").read_bytes().decode()) for p in PROMPTS]
        make(name, load(folder), [(p, tokenizer.encode(t).ids) for p, t in texts], 64, model=str(folder.relative_to(ROOT)))
    for seed, (name, spec) in enumerate(RANDOM.items()):
        if names and name not in names: continue
        folder = OUT / name
        lengths = spec["_"]["lengths"]
        if not (folder / "config.json").exists(): random_checkpoint(folder, dict(spec), seed)
        make(name, load(folder), random_cases(seed, spec["vocab_size"], lengths), 24, model=str(folder.relative_to(ROOT)))


if __name__ == "__main__": main(sys.argv[1:])
