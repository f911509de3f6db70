"""Make heads/mtp.json: like make_heads.py's golden.json, for the MTP layers in the files of Qwen3.5 and GLM-4.5.
transformers leaves these layers out. They are computed here in PyTorch (f32), following vLLM (qwen3_5_mtp.py,
qwen3_next_mtp.py) and SGLang (glm4_moe_nextn.py). Run it from anywhere, with torch and transformers installed:

    python tests/golden/make_mtp.py

A case has no files of a head: "own" means that the layer is in the target's files. With "file" these are a GGUF file
next to mtp.json, as llama.cpp's converter writes it (this needs the gguf package as well): the layer that drafts
comes after the others and is counted with them.
"""
import json
import gguf
import numpy as np
import torch
import make_experts
from make_experts import is_correction, set_weights, weights_of
from make_families import formula, model_of, numbers_of, adds_one, write_bytes, write_keys
from widen_gguf import value_heads
from make_heads import NearTie, Tree, rms, run
import make_heads

OUT = make_heads.OUT.parent / "mtp.json"


def target(**sizes):
    moe = "Moe" if "num_experts" in sizes else ""
    return {"architectures": [f"Qwen3_5{moe}ForCausalLM"], "model_type": f"qwen3_5_{moe.lower()}{moe and '_'}text", "hidden_act": "silu", "rms_norm_eps": 1e-06,
            "max_position_embeddings": 160, "linear_conv_kernel_dim": 4, "full_attention_interval": 4, "attn_output_gate": True,
            "mtp_num_hidden_layers": 1, "eos_token_id": 0, "tie_word_embeddings": False,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25}, **sizes}


def glm(**sizes):
    return {"architectures": ["Glm4MoeForCausalLM"], "model_type": "glm4_moe", "hidden_act": "silu", "rms_norm_eps": 1e-05, "max_position_embeddings": 160,
            "attention_bias": True, "use_qk_norm": True, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1, "norm_topk_prob": True,
            "routed_scaling_factor": 1.5, "num_nextn_predict_layers": 1, "eos_token_id": 0, "tie_word_embeddings": False, "rope_theta": 10000.0,
            "partial_rotary_factor": 0.5, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}, **sizes}


CASES = {
    "mtp": {"n": 40, "target": target(
        hidden_size=48, num_attention_heads=4, num_key_value_heads=2, head_dim=16, num_hidden_layers=4, intermediate_size=60, vocab_size=89,
        linear_key_head_dim=16, linear_value_head_dim=16, linear_num_key_heads=2, linear_num_value_heads=4)},
    "mtp, past the first base": {"n": 94, "target": target(
        hidden_size=40, num_attention_heads=2, num_key_value_heads=1, head_dim=24, num_hidden_layers=5, intermediate_size=52, vocab_size=71,
        linear_key_head_dim=32, linear_value_head_dim=16, linear_num_key_heads=1, linear_num_value_heads=3)},
    "mtp, GGUF": {"n": 30, "file": "mtp.gguf", "target": target(
        hidden_size=32, num_attention_heads=2, num_key_value_heads=1, head_dim=16, num_hidden_layers=4, intermediate_size=40, vocab_size=258,
        linear_key_head_dim=16, linear_value_head_dim=16, linear_num_key_heads=1, linear_num_value_heads=2)},
    "mtp, experts": {"n": 35, "target": target(
        hidden_size=44, num_attention_heads=3, num_key_value_heads=1, head_dim=16, num_hidden_layers=4, vocab_size=83,
        num_experts=7, num_experts_per_tok=3, moe_intermediate_size=18, shared_expert_intermediate_size=23,
        linear_key_head_dim=16, linear_value_head_dim=16, linear_num_key_heads=2, linear_num_value_heads=2)},
    "mtp, experts, GGUF": {"n": 30, "file": "mtp_moe.gguf", "target": target(
        hidden_size=32, num_attention_heads=2, num_key_value_heads=1, head_dim=16, num_hidden_layers=4, vocab_size=258,
        num_experts=5, num_experts_per_tok=2, moe_intermediate_size=16, shared_expert_intermediate_size=32,
        linear_key_head_dim=16, linear_value_head_dim=16, linear_num_key_heads=1, linear_num_value_heads=2)},
    "mtp, GLM": {"n": 38, "own_ends": True, "target": glm(
        hidden_size=44, num_attention_heads=3, num_key_value_heads=1, head_dim=20, num_hidden_layers=3, intermediate_size=60, vocab_size=83,
        n_routed_experts=7, num_experts_per_tok=3, moe_intermediate_size=18, n_shared_experts=1)},
    "mtp, GLM, GGUF": {"n": 30, "file": "mtp_glm.gguf", "own_ends": True, "target": glm(
        hidden_size=32, num_attention_heads=2, num_key_value_heads=1, head_dim=16, num_hidden_layers=2, intermediate_size=40, vocab_size=258,
        n_routed_experts=5, num_experts_per_tok=2, moe_intermediate_size=16, n_shared_experts=2)},
}
NEXTN = {"fc": "nextn.eh_proj", "pre_fc_norm_embedding": "nextn.enorm", "pre_fc_norm_hidden": "nextn.hnorm", "norm": "nextn.shared_head_norm"}


class Mtp:
    tree, gated, plus = Tree, 2, True
    def name_of(self, name): return "mtp." + name
    def further_shapes(self): return {}
    def embedding(self): return self.target.get_input_embeddings().weight
    def output(self): return self.target.get_output_embeddings().weight
    def biased(self, name, x): return x

    def __init__(self, spec, model):
        self.c, self.target, self.t, self.listed, self.own_ends = spec["target"], model, {}, [], spec.get("own_ends")
        self.spec = {}
        c, H = self.c, self.c["hidden_size"]
        self.D, self.ids = c["head_dim"], list(range(c["vocab_size"]))
        self.A, self.G = c["num_attention_heads"] * self.D, c["num_key_value_heads"] * self.D
        for name, shape in {"fc.weight": [H, 2 * H], "pre_fc_norm_embedding.weight": [H], "pre_fc_norm_hidden.weight": [H], "norm.weight": [H],
                            "layers.0.input_layernorm.weight": [H], "layers.0.post_attention_layernorm.weight": [H],
                            "layers.0.self_attn.q_proj.weight": [self.gated * self.A, H], "layers.0.self_attn.k_proj.weight": [self.G, H],
                            "layers.0.self_attn.v_proj.weight": [self.G, H], "layers.0.self_attn.o_proj.weight": [H, self.A], **self.further_shapes(),
                            "layers.0.self_attn.q_norm.weight": [self.D], "layers.0.self_attn.k_norm.weight": [self.D], **self.mlp_shapes()}.items():
            there = self.name_of(name)
            how = (50, 0, 8) if is_correction(name) else numbers_of(there, shape, False, False, self.plus)
            self.t[name] = torch.from_numpy(formula(there, shape, *how))
            self.listed.append([there, "F32", shape, *how])

    def mlp_shapes(self):
        c, H, mlp = self.c, self.c["hidden_size"], "layers.0.mlp."
        def dense(name, I): return {f"{mlp}{name}gate_proj.weight": [I, H], f"{mlp}{name}up_proj.weight": [I, H], f"{mlp}{name}down_proj.weight": [H, I]}
        if "num_experts" not in c: return dense("", c["intermediate_size"])
        n, E = c["num_experts"], c["moe_intermediate_size"]
        return {mlp + "gate.weight": [n, H], mlp + "experts.gate_up_proj": [n, 2 * E, H], mlp + "experts.down_proj": [n, H, E],
                mlp + "shared_expert_gate.weight": [1, H], **dense("shared_expert.", c["shared_expert_intermediate_size"])}

    def mlp(self, n):
        t, c, name = self.t, self.c, "layers.0.mlp."
        def gated(gate, up, down): return down @ (torch.nn.functional.silu(gate @ n) * (up @ n))
        def dense(name): return gated(*(t[f"{name}{part}_proj.weight"] for part in ("gate", "up", "down")))
        if "num_experts" not in c: return dense(name)
        p, ids = torch.softmax(t[name + "gate.weight"] @ n, 0).topk(c["num_experts_per_tok"])
        y = sum(w * gated(*t[name + "experts.gate_up_proj"][e].chunk(2), t[name + "experts.down_proj"][e]) for w, e in zip(p / p.sum(), ids))
        return y + torch.sigmoid(t[name + "shared_expert_gate.weight"] @ n) * dense(name + "shared_expert.")

    def from_target(self, streams): return streams[0]

    def normed(self, x, name): return rms(x, self.plus + self.t[name + ".weight"], self.c["rms_norm_eps"])

    def rotated(self, x, position):
        n = int(self.D * self.c["rope_parameters"]["partial_rotary_factor"])
        angle = position / (self.c["rope_parameters"]["rope_theta"] ** (torch.arange(0, n, 2, dtype=torch.float64) / n))
        cos, sin = torch.cat([angle.cos()] * 2).float(), torch.cat([angle.sin()] * 2).float()
        a = x[..., :n]
        return torch.cat([a * cos + torch.cat([-a[..., n // 2:], a[..., :n // 2]], -1) * sin, x[..., n:]], -1)

    def row(self, f, token, position, keys):
        t, c, layer = self.t, self.c, "layers.0."
        e = self.embedding()[token]
        x = t["fc.weight"] @ torch.cat([self.normed(e, "pre_fc_norm_embedding"), self.normed(f, "pre_fc_norm_hidden")])
        n = self.normed(x, layer + "input_layernorm")
        q, k, v = (self.biased(layer + f"self_attn.{part}_proj.bias", t[layer + f"self_attn.{part}_proj.weight"] @ n) for part in "qkv")
        q, *gate = q.view(c["num_attention_heads"], self.gated, self.D).unbind(1)
        k, v = k.view(-1, self.D), v.view(-1, self.D)
        q = self.rotated(self.normed(q, layer + "self_attn.q_norm"), position)
        k = self.rotated(self.normed(k, layer + "self_attn.k_norm"), position)
        seen = keys + [(k, v)]
        group = c["num_attention_heads"] // c["num_key_value_heads"]
        K = torch.stack([s[0] for s in seen]).repeat_interleave(group, 1)
        W = torch.stack([s[1] for s in seen]).repeat_interleave(group, 1)
        p = torch.softmax(torch.einsum("hd,nhd->hn", q, K) * self.D ** -0.5, -1)
        y = torch.einsum("hn,nhd->hd", p, W)
        if gate: y = y * torch.sigmoid(gate[0])
        x = x + t[layer + "self_attn.o_proj.weight"] @ y.reshape(-1)
        x = x + self.mlp(self.normed(x, layer + "post_attention_layernorm"))
        out = self.normed(x, "norm")
        return out, self.output() @ out, (k, v)


class Glm(Mtp):
    """The layer of GLM-4.5, as in SGLang's glm4_moe_nextn.py. It may have its own embedding and output."""
    gated, plus = 1, 0

    def name_of(self, name):
        there = {"fc.": "eh_proj.", "pre_fc_norm_embedding.": "enorm.", "pre_fc_norm_hidden.": "hnorm.", "norm.": "shared_head.norm.",
                 "head.": "shared_head.head."}
        before = next((b for b in there if name.startswith(b)), None)
        name = there[before] + name.removeprefix(before) if before else name.removeprefix("layers.0.")
        return f"model.layers.{self.c['num_hidden_layers']}.{name}"

    def further_shapes(self):
        ends = {name: [self.c["vocab_size"], self.c["hidden_size"]] for name in ("embed_tokens.weight", "head.weight")} if self.own_ends else {}
        return {f"layers.0.self_attn.{part}_proj.bias": [self.A if part == "q" else self.G] for part in "qkv"} | ends

    def mlp_shapes(self):
        c, H, mlp = self.c, self.c["hidden_size"], "layers.0.mlp."
        n, E, S = c["n_routed_experts"], c["moe_intermediate_size"], c["moe_intermediate_size"] * c["n_shared_experts"]
        return {mlp + "gate.weight": [n, H], mlp + "gate.e_score_correction_bias": [n], mlp + "experts.gate_up_proj": [n, 2 * E, H],
                mlp + "experts.down_proj": [n, H, E], **{f"{mlp}shared_experts.{part}_proj.weight": [S, H] for part in ("gate", "up")},
                mlp + "shared_experts.down_proj.weight": [H, S]}

    def embedding(self): return self.t["embed_tokens.weight"] if self.own_ends else super().embedding()
    def output(self): return self.t["head.weight"] if self.own_ends else super().output()
    def biased(self, name, x): return x + self.t[name]

    def mlp(self, n):
        t, c, name = self.t, self.c, "layers.0.mlp."
        def gated(gate, up, down): return down @ (torch.nn.functional.silu(gate @ n) * (up @ n))
        p = torch.sigmoid(t[name + "gate.weight"] @ n)
        ids = (p + t[name + "gate.e_score_correction_bias"]).topk(c["num_experts_per_tok"]).indices
        w = p[ids] / (p[ids].sum() + 1e-20) * c["routed_scaling_factor"]
        y = sum(x * gated(*t[name + "experts.gate_up_proj"][e].chunk(2), t[name + "experts.down_proj"][e]) for x, e in zip(w, ids))
        return y + gated(*(t[f"{name}shared_experts.{part}_proj.weight"] for part in ("gate", "up", "down")))


def apart(tensors):
    """Separates the gates and ups of experts, as the converter does."""
    for key, x in tensors.items():
        if not key.endswith("gate_up_proj"): yield key + ".weight" * key.endswith("down_proj"), x
        else: yield from ((key.replace("gate_up", part) + ".weight", half) for part, half in zip(("gate", "up"), np.split(x, 2, 1)))


def write(spec, tensors, head):
    c, layers = spec["target"], spec["target"]["num_hidden_layers"]
    is_glm = c["model_type"] == "glm4_moe"
    arch = gguf.MODEL_ARCH.GLM4_MOE if is_glm else gguf.MODEL_ARCH.QWEN35MOE if "num_experts" in c else gguf.MODEL_ARCH.QWEN35
    writer = gguf.GGUFWriter(make_heads.OUT.parent / spec["file"], gguf.MODEL_ARCH_NAMES[arch])
    if is_glm: make_experts.write_keys(writer, c)
    else: write_keys(writer, {**c, "num_hidden_layers": layers + 1}), writer.add_nextn_predict_layers(1)
    write_bytes(writer)
    names = gguf.get_tensor_name_map(arch, layers + 1)
    for key, x in apart({**tensors, **{head.name_of(k): v.numpy() for k, v in head.t.items()}}):
        part = key.removeprefix("mtp.").removesuffix(".weight")
        if key.startswith("mtp.") and part in NEXTN: where = f"blk.{layers}.{NEXTN[part]}.weight"
        else:
            key = key.replace("mtp.layers.0.", f"model.layers.{layers}.")
            key = key.replace("_correction_bias", "_correction.bias")
            where = names.get_name(key.replace("dt_bias", "dt_proj.bias"), try_suffixes=(".weight", ".bias")) or names.get_name(key)
        if key.endswith("A_log"): x = -np.exp(x)
        if "norm" in key and adds_one(c, key): x = x + 1
        if "conv1d" in key: x = x[:, 0]
        if "shared_expert_gate" in key: x = x[0]  # the shape that llama-quantize leaves
        if "linear_attn" in key: x = value_heads(c, key, x, False)
        matrix = x.ndim > 1 and "conv1d" not in key and "mlp.gate." not in key
        writer.add_tensor(where, np.ascontiguousarray(x).astype(np.float16 if matrix else np.float32))
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file(), writer.close()


def make(name, spec):
    config, tensors, listed = {**spec["target"]}, {}, []
    model = model_of(config)
    for key, p in weights_of(model):
        shape = list(p.shape)
        how = (50, 0, 8) if is_correction(key) else numbers_of(key, shape, False, False, adds_one(config, key))
        tensors[key] = formula(key, shape, *how)
        listed.append([key, "F32", shape, *how])
    set_weights(model, {**tensors})
    head = (Glm if config["model_type"] == "glm4_moe" else Mtp)(spec, model)
    for seed in range(100):
        try: prompt, iterations = run(spec, model, head, seed, spec["n"])
        except NearTie: continue
        break
    print(name, len(prompt), seed)
    files = {"target": {"config": config, "shards": 1, "tensors": listed + head.listed}}
    if "file" in spec:
        write(spec, tensors, head)
        files = {"file": spec["file"]}
    return {"name": name, **files, "own": True,
            "read": "mtp, final norm", "prompt": prompt, "iterations": iterations}


if __name__ == "__main__":
    with torch.no_grad(): cases = [make(*case) for case in CASES.items()]
    OUT.write_text("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
