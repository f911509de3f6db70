"""Make the logits/ of families that have more for their experts than an MLP has: what transformers (f32, CPU, eager
attention) computes for tiny gpt-oss, GLM-4.5 and Gemma 4 models, from Hugging Face's files (MXFP4 as published, and
others) and from GGUF files. Run it from anywhere; it needs what make_families.py needs, which also describes the
common parts of the files:

    python tests/golden/make_experts.py [NAME ...]
"""
import sys
import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as T
from make_families import COMMON, GEMMA4_ROTATIONS, as_files_have, formula, is_gemma, model_of, numbers_of, write_bytes, write_gemma4
from make_logits import OUT, ROOT, make, random_cases
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

GPT_OSS = {"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "rms_norm_eps": 1e-05, "tie_word_embeddings": False}
GLM = {"architectures": ["Glm4MoeForCausalLM"], "model_type": "glm4_moe", "rms_norm_eps": 1e-05, "num_nextn_predict_layers": 1}
GEMMA4 = {"architectures": ["Gemma4ForCausalLM"], "model_type": "gemma4_text", "rms_norm_eps": 1e-06, "tie_word_embeddings": True,
          "hidden_activation": "gelu_pytorch_tanh", "enable_moe_block": True, "hidden_size_per_layer_input": 0, "num_kv_shared_layers": 0}
YARN = {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0}
MXFP4 = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "lm_head"]}
# config.json as it is written, with the key names in use; "_": the layout of the files
FOLDERS = {
    "gpt_oss": {
        "_": {"dtype": "BF16", "lengths": [3, 61], "mxfp4": True, "shards": 2}, **GPT_OSS, "quantization_config": MXFP4,
        "num_hidden_layers": 4, "hidden_size": 96, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 20,
        "intermediate_size": 64, "vocab_size": 107, "max_position_embeddings": 2048, "initial_context_length": 64,
        "num_local_experts": 11, "num_experts_per_tok": 4, "experts_per_token": 4, "sliding_window": 24, "swiglu_limit": 7.0,
        "layer_types": ["sliding_attention", "full_attention"] * 2, "rope_theta": 150000,
        "rope_scaling": {**YARN, "original_max_position_embeddings": 64, "truncate": False}, "eos_token_id": [1, 2]},
    "gpt_oss_plain": {
        "_": {"dtype": "BF16", "lengths": [1, 50]}, **GPT_OSS,
        "num_hidden_layers": 3, "hidden_size": 52, "num_attention_heads": 5, "num_key_value_heads": 5, "head_dim": 14,
        "intermediate_size": 30, "vocab_size": 89, "max_position_embeddings": 131072, "num_local_experts": 5, "num_experts_per_tok": 1,
        "sliding_window": 9, "eos_token_id": 2},
    "gpt_oss_open": {
        "_": {"dtype": "F32", "lengths": [2, 40]}, **GPT_OSS, "attention_bias": False,
        "num_hidden_layers": 2, "hidden_size": 40, "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 16,
        "intermediate_size": 33, "vocab_size": 83, "max_position_embeddings": 64, "num_local_experts": 3, "num_experts_per_tok": 3,
        "sliding_window": 7, "layer_types": ["full_attention", "full_attention"],
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}, "eos_token_id": 2},
}
# GLM-4.5's files contain tensors of a layer that predicts further tokens, which transformers also leaves out
FOLDERS |= {
    "glm4_moe": {
        "_": {"dtype": "BF16", "lengths": [3, 61], "further": True}, **GLM, "num_hidden_layers": 4, "hidden_size": 72,
        "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 20, "attention_bias": True, "use_qk_norm": True,
        "intermediate_size": 90, "vocab_size": 107, "max_position_embeddings": 128, "rope_theta": 1000000, "partial_rotary_factor": 0.5,
        "n_routed_experts": 11, "num_experts_per_tok": 4, "n_shared_experts": 1, "moe_intermediate_size": 27, "n_group": 1, "topk_group": 1,
        "first_k_dense_replace": 1, "norm_topk_prob": True, "routed_scaling_factor": 2.5, "tie_word_embeddings": False, "eos_token_id": [1, 2]},
    "glm4_moe_one": {
        "_": {"dtype": "F32", "lengths": [1, 40]}, **GLM, "num_hidden_layers": 3, "hidden_size": 50, "num_attention_heads": 5,
        "num_key_value_heads": 1, "head_dim": 24, "intermediate_size": 31, "vocab_size": 89, "max_position_embeddings": 96,
        "n_routed_experts": 6, "num_experts_per_tok": 1, "n_shared_experts": 3, "moe_intermediate_size": 19, "first_k_dense_replace": 2,
        "norm_topk_prob": False, "routed_scaling_factor": 1.0, "tie_word_embeddings": True, "eos_token_id": 2},
}
FOLDERS |= {
    "gemma4_experts": {
        "_": {"dtype": "BF16", "lengths": [3, 61]}, **GEMMA4, "num_hidden_layers": 6, "hidden_size": 60, "num_attention_heads": 4,
        "num_key_value_heads": 2, "head_dim": 20, "global_head_dim": 32, "num_global_key_value_heads": 1, "attention_k_eq_v": True,
        "intermediate_size": 70, "vocab_size": 107, "max_position_embeddings": 128, "sliding_window": 24, "final_logit_softcapping": 8.0,
        "num_experts": 11, "top_k_experts": 3, "moe_intermediate_size": 27, "eos_token_id": [1, 3]},
    "gemma4_experts_one": {
        "_": {"dtype": "F32", "lengths": [1, 40]}, **GEMMA4, "num_hidden_layers": 3, "hidden_size": 36, "num_attention_heads": 3,
        "num_key_value_heads": 1, "head_dim": 16, "global_head_dim": 24, "intermediate_size": 40, "vocab_size": 81,
        "max_position_embeddings": 96, "sliding_window": 7, "num_experts": 4, "top_k_experts": 1, "moe_intermediate_size": 50,
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention"], "eos_token_id": 1},
}
# tensor types, used alternately, quantized with gguf-py; the tokenizer is that of write_bytes
FILES = {
    "gguf_gpt_oss": {
        "_": {"types": ["Q8_0", "MXFP4", "F16"], "experts": ["MXFP4"], "lengths": [3, 61]}, **GPT_OSS,
        "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32,
        "intermediate_size": 64, "vocab_size": 258, "max_position_embeddings": 2048, "num_local_experts": 7, "num_experts_per_tok": 4,
        "sliding_window": 24, "rope_theta": 150000, "rope_scaling": {**YARN, "original_max_position_embeddings": 64, "truncate": True}},
    "gguf_gpt_oss_one": {
        "_": {"types": ["F32", "Q8_0"], "experts": ["Q8_0", "MXFP4", "F16"], "lengths": [2, 45]}, **GPT_OSS,
        "num_hidden_layers": 3, "hidden_size": 64, "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 32,
        "intermediate_size": 32, "vocab_size": 258, "max_position_embeddings": 256, "num_local_experts": 4, "num_experts_per_tok": 1,
        "sliding_window": 11, "rope_theta": 10000, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}},
}
FILES |= {
    "gguf_glm4_moe": {
        "_": {"types": ["Q8_0", "F16", "Q4_0"], "experts": ["Q4_0", "Q8_0", "Q5_0"], "lengths": [3, 61], "further": True}, **GLM,
        "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "attention_bias": True,
        "use_qk_norm": True, "intermediate_size": 96, "vocab_size": 258, "max_position_embeddings": 256, "rope_theta": 1000000,
        "partial_rotary_factor": 0.5, "n_routed_experts": 9, "num_experts_per_tok": 3, "n_shared_experts": 1, "moe_intermediate_size": 32,
        "first_k_dense_replace": 1, "norm_topk_prob": True, "routed_scaling_factor": 1.5, "tie_word_embeddings": False},
    "gguf_glm4_moe_plain": {
        "_": {"types": ["Q8_0", "F32"], "experts": ["F16", "MXFP4"], "lengths": [2, 45]}, **GLM, "num_nextn_predict_layers": 0,
        "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 16,
        "intermediate_size": 32, "vocab_size": 258, "max_position_embeddings": 256, "rope_theta": 10000,
        "partial_rotary_factor": 0.25, "n_routed_experts": 5, "num_experts_per_tok": 2, "n_shared_experts": 2, "moe_intermediate_size": 32,
        "first_k_dense_replace": 0, "norm_topk_prob": False, "routed_scaling_factor": 1.0, "tie_word_embeddings": True},
}
FILES |= {
    "gguf_gemma4_experts": {
        "_": {"types": ["Q8_0", "F16", "Q4_0"], "experts": ["Q4_0", "Q8_0"], "lengths": [3, 57]}, **GEMMA4, "num_hidden_layers": 6,
        "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "global_head_dim": 32,
        "num_global_key_value_heads": 1, "attention_k_eq_v": True, "intermediate_size": 96, "vocab_size": 258,
        "max_position_embeddings": 256, "sliding_window": 24, "final_logit_softcapping": 8.0, "num_experts": 7, "top_k_experts": 3,
        "moe_intermediate_size": 32, "rope_parameters": GEMMA4_ROTATIONS},
}
ARCHITECTURES = {"gemma4_text": "gemma4", "gpt_oss": "gpt-oss", "glm4_moe": "glm4moe"}


def is_of_experts(key): return ".experts." in key
def is_correction(key): return "e_score_correction" in key
def is_scale(key): return key.endswith(("layer_scalar", "router.scale", "per_expert_scale"))


def weights_of(model):
    """Returns parameters, and buffers that are weights, too."""
    return [*model.named_parameters(), *((n, b) for n, b in model.named_buffers() if is_correction(n) or is_scale(n))]


def set_weights(model, tensors):
    with torch.no_grad():
        for name, p in weights_of(model): p.copy_(torch.from_numpy(tensors.pop(name)))
    assert not tensors, tensors.keys()


def size_of(spec, key, shape):
    """The standard deviation of random numbers: a clamp must cut some of gpt-oss's gates."""
    if is_correction(key): return 0.1
    if "bias" in key or "sinks" in key: return 0.5
    if "norm" in key or is_scale(key): return 0.2
    if "embed" in key: return 3 / shape[-1] ** 0.5 / 8 if is_gemma(spec) else 1
    wide = 6 if spec["model_type"] == "gpt_oss" else 1.5
    return (wide if "gate_up_proj" in key else 1 if "experts.down_proj" in key and wide < 6 else 0.4 if "experts.down_proj" in key
            else 3 if "lm_head" in key else 1.5) / shape[-1] ** 0.5


# ---- folders ----

def in_folder(spec, layout, key, shape):
    """Returns a parameter's tensors, each with the formula of its numbers, and the parameter."""
    dtype = layout["dtype"]
    if layout.get("mxfp4") and is_of_experts(key) and not key.endswith("bias"):
        n, cols, rows = shape
        e = round(np.log2(size_of(spec, key, [cols]) / 3)) + 127  # numbers of four bits have a standard deviation of 3
        listed = [[f"{key}_blocks", "U8", [n, rows, cols // 32, 16], 127, 127, 0], [f"{key}_scales", "U8", [n, rows, cols // 32], 1, e, 0]]
        codes, scales = (torch.from_numpy(formula(name, size, *how).astype(np.uint8)) for name, _, size, *how in listed)
        return listed, convert_moe_packed_tensors(codes, scales, dtype=torch.float32).numpy()
    listed, numbers = [], np.empty(shape, np.float32)
    for name, part_shape, part in as_files_have(spec, spec["model_type"] != "glm4_moe", key, shape):
        how = numbers_of(key, part_shape, spec["tie_word_embeddings"], is_gemma(spec), False)
        if is_scale(key): how = 40, 100, 7
        if is_correction(key): dtype, how = "F32", (50, 0, 8)
        if is_of_experts(key) and "bias" not in key: how = 127, 0, round(np.log2(73 / size_of(spec, key, part_shape)))
        numbers[part] = formula(name, part_shape, *how)
        listed.append([name, dtype, part_shape, *how])
    return listed, numbers


def make_folder(seed, name, spec):
    spec = {**COMMON, **spec}
    layout = spec.pop("_")
    model = model_of({k: v for k, v in spec.items() if k != "quantization_config"})
    tensors, listed = {}, []
    for key, p in weights_of(model):
        its, tensors[key] = in_folder(spec, layout, key, list(p.shape))
        listed += its
    if layout.get("further"): listed.append([f"model.layers.{spec['num_hidden_layers']}.eh_proj.weight", layout["dtype"], [8, 16], 9, 0, 0])
    set_weights(model, tensors)
    make(name, model, random_cases(seed, spec["vocab_size"], layout["lengths"]), 24, config=spec, shards=layout.get("shards", 1), tensors=listed)


# ---- GGUF ----

def write_keys(writer, spec):
    if is_gemma(spec):
        write_gemma4(writer, spec)
        writer.add_expert_count(spec["num_experts"])
        writer.add_expert_used_count(spec["top_k_experts"])
        writer.add_expert_feed_forward_length(spec["moe_intermediate_size"])
        return
    writer.add_context_length(spec["max_position_embeddings"])
    writer.add_embedding_length(spec["hidden_size"])
    further = spec.get("num_nextn_predict_layers", 0)  # the converter counts these layers too
    writer.add_block_count(spec["num_hidden_layers"] + further)
    writer.add_feed_forward_length(spec["intermediate_size"])
    writer.add_head_count(spec["num_attention_heads"])
    writer.add_head_count_kv(spec["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(spec["rms_norm_eps"])
    writer.add_rope_freq_base(float(spec["rope_theta"]))
    writer.add_key_length(spec["head_dim"])
    writer.add_value_length(spec["head_dim"])
    if spec["model_type"] == "glm4_moe": return write_glm(writer, spec, further)
    writer.add_expert_count(spec["num_local_experts"])
    writer.add_expert_used_count(spec["num_experts_per_tok"])
    writer.add_sliding_window(spec["sliding_window"])
    writer.add_expert_feed_forward_length(spec["intermediate_size"])
    scaling = spec.get("rope_scaling")
    if scaling:
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(scaling["factor"])
        writer.add_rope_scaling_orig_ctx_len(scaling["original_max_position_embeddings"])
        writer.add_rope_scaling_yarn_beta_fast(scaling["beta_fast"])
        writer.add_rope_scaling_yarn_beta_slow(scaling["beta_slow"])


def write_glm(writer, spec, further):
    writer.add_rope_dimension_count(int(spec["head_dim"] * spec["partial_rotary_factor"]))
    writer.add_expert_count(spec["n_routed_experts"])
    writer.add_expert_used_count(spec["num_experts_per_tok"])
    writer.add_expert_feed_forward_length(spec["moe_intermediate_size"])
    writer.add_expert_shared_count(spec["n_shared_experts"])
    writer.add_leading_dense_block_count(spec["first_k_dense_replace"])
    writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    writer.add_expert_weights_scale(spec["routed_scaling_factor"])
    writer.add_expert_weights_norm(spec["norm_topk_prob"])
    if further: writer.add_nextn_predict_layers(further)


def in_file(spec, key, shape):
    """Returns the names (as the converter has them before gguf-py's map) and shapes of a parameter's tensors, and how
    the parameter is made from them."""
    if spec["model_type"] == "gpt_oss" and is_of_experts(key):
        bias = key.endswith("bias")
        name = key.replace("_bias", ".bias") if bias else key + ".weight"
        turned = shape if bias else [shape[0], shape[2], shape[1]]  # outputs first
        def back(x): return x if bias else x.swapaxes(1, 2)
        if "down_proj" in key: return [(name, turned)], lambda parts: back(parts[0])
        half = [turned[0], turned[1] // 2, *turned[2:]]
        return ([(name.replace("gate_up", part), half) for part in ("gate", "up")],
                lambda parts: back(np.stack(parts, 2).reshape(turned)))  # rows of gates and ups alternate
    if key.endswith("router.scale"): return [(key.replace("router.scale", "router.proj.scale"), shape)], lambda parts: parts[0]
    if key.endswith("per_expert_scale"): return [(key.replace("router.per_expert_scale", "experts.down_proj.scale"), shape)], lambda parts: parts[0]
    if key.endswith("gate_up_proj") and not is_gemma(spec):
        half = [shape[0], shape[1] // 2, shape[2]]
        return [(key.replace("gate_up", part) + ".weight", half) for part in ("gate", "up")], lambda parts: np.concatenate(parts, 1)
    if is_correction(key): return [(key.replace("_correction_bias", "_correction.bias"), shape)], lambda parts: parts[0]
    return [(key if key.endswith((".weight", ".bias")) else key + ".weight", shape)], lambda parts: parts[0]


def make_file(seed, name, spec):
    spec = {**COMMON, **spec}
    layout = spec.pop("_")
    arch = ARCHITECTURES[spec["model_type"]]
    names = gguf.get_tensor_name_map(next(a for a, n in gguf.MODEL_ARCH_NAMES.items() if n == arch), spec["num_hidden_layers"])
    rng, model, tensors, turn = np.random.default_rng(seed), model_of(spec), {}, {"types": 0, "experts": 0}
    (OUT / name).mkdir(exist_ok=True)
    writer = gguf.GGUFWriter(OUT / name / "model.gguf", arch)
    write_keys(writer, spec), write_bytes(writer)
    for key, p in weights_of(model):
        pieces, joined = in_file(spec, key, list(p.shape))
        parts = []
        for where, shape in pieces:
            x = rng.standard_normal(shape) * size_of(spec, key, shape) + ("norm" in key or is_scale(key))
            kind, which = "F32", "experts" if is_of_experts(key) else "types"
            if len(shape) > 1 and "bias" not in key and "router" not in key and ".gate." not in key:  # the converter stores the others in F32
                kind = layout[which][turn[which] % len(layout[which])]
                turn[which] += 1
            data = gguf.quants.quantize(np.ascontiguousarray(x.reshape(-1, shape[-1]), np.float32), T[kind])
            writer.add_tensor(names.get_name(where, try_suffixes=(".weight", ".bias", ".scale")), data.reshape(*shape[:-1], -1), raw_dtype=T[kind])
            parts.append(gguf.quants.dequantize(data, T[kind]).reshape(shape))
        tensors[key] = np.ascontiguousarray(joined(parts), np.float32)
    if layout.get("further"): writer.add_tensor(f"blk.{spec['num_hidden_layers']}.nextn.eh_proj.weight", np.ones((8, 16), np.float32))
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file(), writer.close()
    set_weights(model, tensors)
    make(name, model, random_cases(seed, spec["vocab_size"], layout["lengths"]), 24, model=str((OUT / name / "model.gguf").relative_to(ROOT)))


def main(names):
    for seed, (name, spec) in enumerate(FOLDERS.items()):
        if not names or name in names: make_folder(seed, name, spec)
    for seed, (name, spec) in enumerate(FILES.items()):
        if not names or name in names: make_file(seed, name, spec)


if __name__ == "__main__": main(sys.argv[1:])
