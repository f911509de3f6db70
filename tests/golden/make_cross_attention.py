"""Make heads/cross_attention.json: what Gemma 4's assistants guess after the nodes of trees, computed by transformers'
Gemma4AssistantForCausalLM (f32), for tiny random assistants of tiny random targets. Run it from anywhere, with
torch, transformers >= 5.24, numpy and gguf installed:

    python tests/golden/make_cross_attention.py

The file has the format of make_heads.py's. The assistant is called as SinglePositionMultiTokenCandidateGenerator
calls it: a node's row gets the target's scaled embedding of its token, and the feature of the row before it (for the
root: the target's, of the last committed row), at the root's position, and the keys and values of exactly the
committed rows.
"""
import json, pathlib
import torch
from transformers import Gemma4AssistantConfig, Gemma4AssistantForCausalLM
from make_families import formula, model_of, numbers_of, set_weights, weights_of
import make_heads
from make_heads import NearTie, Tree, run

OUT = pathlib.Path(__file__).resolve().parent / "heads/cross_attention.json"
make_heads.NEAR = 0.003  # GPUs do not run these
TEXT = {"architectures": ["Gemma4ForCausalLM"], "model_type": "gemma4_text", "rms_norm_eps": 1e-06, "tie_word_embeddings": True,
        "hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 128, "use_bidirectional_attention": None, "eos_token_id": 0,
        "bos_token_id": 0, "pad_token_id": 0, "attention_k_eq_v": False}
NO_KEYS = {"hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0, "enable_moe_block": False, "use_double_wide_mlp": False}
ROTATIONS = {"full_attention": {"rope_type": "proportional", "rope_theta": 50000.0, "partial_rotary_factor": 0.6},
             "sliding_attention": {"rope_type": "default", "rope_theta": 7000.0}}


def kinds(letters): return [{"w": "sliding_attention", "g": "full_attention"}[letter] for letter in letters]


def both(**sizes): return {**TEXT, **sizes, "rope_parameters": ROTATIONS}


HEADS = {"head_dim": 20, "global_head_dim": 32, "num_key_value_heads": 2, "num_global_key_value_heads": 1, "attention_k_eq_v": True,
         "vocab_size": 107, "sliding_window": 8}
SHARED = {"head_dim": 16, "global_head_dim": 24, "num_key_value_heads": 1, "vocab_size": 93, "sliding_window": 5}
CASES = {
    "gemma4 assistant": {
        "n": 23, "dtype": "BF16", "wide": 2,
        "target": both(**HEADS, num_hidden_layers=6, hidden_size=60, num_attention_heads=4, intermediate_size=70, final_logit_softcapping=8.0,
                       hidden_size_per_layer_input=0, num_kv_shared_layers=0, layer_types=kinds("wwgwwg")),
        "text": both(**{**HEADS, **NO_KEYS}, num_hidden_layers=3, hidden_size=36, num_attention_heads=2, intermediate_size=50,
                     final_logit_softcapping=8.0, num_kv_shared_layers=3, layer_types=kinds("wwg"))},
    "gemma4 assistant, of a target whose last layers share keys, too": {
        "n": 44, "dtype": "F32", "wide": 1,
        "target": both(**SHARED, num_hidden_layers=6, hidden_size=52, num_attention_heads=3, intermediate_size=50,
                       vocab_size_per_layer_input=93, hidden_size_per_layer_input=12, num_kv_shared_layers=2, use_double_wide_mlp=True,
                       layer_types=kinds("wggwwg")),
        "text": both(**{**SHARED, **NO_KEYS}, num_hidden_layers=4, hidden_size=64, num_attention_heads=2, intermediate_size=30,
                     num_kv_shared_layers=4, layer_types=kinds("wgwg"))},
}


class CrossAttentionTree(Tree):
    def __init__(self, head, streams, tokens):
        self.head, self.nodes, self.rows = head, [(-1, tokens[-1])], {}
        self.feature, self.position = streams[len(tokens) - 2][0], len(tokens) - 1
        self.keys = head.target.model(torch.tensor([tokens[:-1]]), return_shared_kv_states=True, use_cache=False).shared_kv_states
        assert {k.shape[2] for k, _ in self.keys.values()} == {self.position}

    def draft(self, u):
        if u in self.rows: return self.rows[u][1]
        parent, token = self.nodes[u]
        if u: self.draft(parent)
        feature = self.rows[parent][0] if u else self.feature
        pair = torch.cat([self.head.target.get_input_embeddings()(torch.tensor([token]))[0], feature])
        out = self.head.model(inputs_embeds=pair[None, None], position_ids=torch.tensor([[self.position]]), shared_kv_states=dict(self.keys))
        self.rows[u] = out.last_hidden_state[0, 0], out.logits[0, 0]
        return self.rows[u][1]


class CrossAttention:
    tree = CrossAttentionTree

    def __init__(self, spec, target):
        self.target, self.ids = target, list(range(spec["text"]["vocab_size"]))
        self.config = {"architectures": ["Gemma4AssistantForCausalLM"], "model_type": "gemma4_assistant", "tie_word_embeddings": True,
                       "backbone_hidden_size": spec["target"]["hidden_size"], "use_ordered_embeddings": False, "text_config": spec["text"]}
        self.model = Gemma4AssistantForCausalLM._from_config(Gemma4AssistantConfig(**self.config), attn_implementation="eager").float().eval()
        self.listed = fill(self.model, spec["dtype"], spec["wide"])


def fill(model, dtype, wide):
    """Sets all weights by formula, and returns them as golden files list them. wide: powers of two that spread logits
    further."""
    tensors, listed = {}, []
    for key, p in weights_of(model):
        a, base, e = numbers_of(key, list(p.shape), True, True, False)
        how = a, base, e - wide * (key == "model.norm.weight")
        tensors[key] = formula(key, list(p.shape), *how)
        listed.append([key, dtype, list(p.shape), *how])
    set_weights(model, tensors)
    return listed


def make(name, spec):
    model = model_of(spec["target"])
    listed = fill(model, "F32", 1)
    head = CrossAttention(spec, model)
    for seed in range(200):
        try: prompt, iterations = run(spec, model, head, seed, spec["n"])
        except NearTie: continue
        break
    print(name, len(prompt), seed)
    return {"name": name, "target": {"config": spec["target"], "shards": 1, "tensors": listed},
            "head": {"config": head.config, "shards": 1, "tensors": head.listed}, "read": "gemma4_assistant, final norm",
            "prompt": prompt, "iterations": iterations}


if __name__ == "__main__":
    with torch.no_grad(): cases = [make(*case) for case in CASES.items()]
    OUT.write_text("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
