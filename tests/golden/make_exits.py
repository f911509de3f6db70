"""Make heads/exits.json: like make_heads.py's golden.json, for early exits, which are not heads: the target's first
layers, its final norm and its output. Each is computed by transformers (f32) as a model with that number of layers
and the target's weights. Run it from anywhere, with torch and transformers installed:

    python tests/golden/make_exits.py

A case has no files of a head: "exit" is the number of layers that draft.
"""
import json
import torch
from make_families import formula, model_of, numbers_of, set_weights
from make_heads import NEOX, NearTie, Tree, run, target
import make_heads

OUT = make_heads.OUT.parent / "exits.json"
OLMO = {"architectures": ["Olmo3ForCausalLM"], "model_type": "olmo3", "num_hidden_layers": 4, "hidden_size": 48, "num_attention_heads": 4,
        "num_key_value_heads": 2, "intermediate_size": 60, "vocab_size": 101, "rms_norm_eps": 1e-06, "tie_word_embeddings": False,
        "hidden_act": "silu", "max_position_embeddings": 128, "sliding_window": 9, "rope_theta": 500000.0, "eos_token_id": 2,
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"]}
CASES = {
    "exit, one of six layers": {"exit": 1, "n": 12, "target": target(40, 5, 1, 6, 97)},
    "exit, five of six layers": {"exit": 5, "n": 33, "target": target(48, 4, 2, 6, 89)},
    "exit, parallel layers with biases": {"exit": 2, "n": 21, "target": NEOX},
    "exit, windows and norms behind the blocks": {"exit": 3, "n": 30, "target": OLMO},
}


class ExitTree(Tree):
    def __init__(self, head, streams, tokens):
        self.head, self.tokens, self.nodes, self.said = head, tokens, [(-1, tokens[-1])], {}

    def path(self, u): return self.path(self.nodes[u][0]) + [self.nodes[u][1]] if u else []

    def draft(self, u):
        if u not in self.said: self.said[u] = self.head.model(torch.tensor([self.tokens + self.path(u)])).logits[0, -1]
        return self.said[u]


class Exit:
    tree = ExitTree

    def __init__(self, spec, tensors):
        n, config = spec["exit"], {**spec["target"], "num_hidden_layers": spec["exit"]}
        if "layer_types" in config: config["layer_types"] = config["layer_types"][:n]
        self.model, self.ids = model_of(config), list(range(config["vocab_size"]))
        left = {key for key, _ in self.model.named_parameters()}
        set_weights(self.model, {key: x for key, x in tensors.items() if key in left})


def make(name, spec):
    config, tensors, listed = {**spec["target"]}, {}, []
    model = model_of(config)
    for key, p in model.named_parameters():
        shape = list(p.shape)
        how = numbers_of(key, shape, False, False, False)
        tensors[key] = formula(key, shape, *how)
        listed.append([key, "F32", shape, *how])
    set_weights(model, tensors)
    head = Exit(spec, tensors)
    for seed in range(100):
        try: prompt, iterations = run(spec, model, head, seed, spec["n"])
        except NearTie: continue
        break
    print(name, len(prompt), seed)
    return {"name": name, "target": {"config": config, "shards": 1, "tensors": listed}, "exit": spec["exit"], "prompt": prompt,
            "iterations": iterations}


if __name__ == "__main__":
    with torch.no_grad(): cases = [make(*case) for case in CASES.items()]
    OUT.write_text("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
