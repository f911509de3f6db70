"""Make the logits/ of families that have more with their experts than an MLP's place: what transformers (f32, CPU, eager attention)
computes for tiny gpt-oss models, from Hugging Face's files (MXFP4 as published, and others) and from GGUF files. Run it
from anywhere, with what make_families.py needs, which says of the files what is the same here:

    python tests/golden/make_experts.py [NAME ...]
"""
import sys
import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as T
from make_families import COMMON, as_files_have, formula, model_of, numbers_of, set_weights, weights_of, write_bytes
from make_logits import OUT, ROOT, make, random_cases
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

GPT_OSS = {"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "rms_norm_eps": 1e-05, "tie_word_embeddings": False}
YARN = {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0}
MXFP4 = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router", "lm_head"]}
# config.json as it is written, in the spellings in use; "_": how the files are laid out
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
# tensor types in turn, quantized with gguf-py; the tokenizer is that of write_bytes
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
ARCHITECTURES = {"gpt_oss": "gpt-oss"}


def is_of_experts(key): return ".experts." in key


def size_of(key, shape):
    """Deviation of random numbers: a clamp must cut some of gpt-oss's gates."""
    if "bias" in key or "sinks" in key: return 0.5
    if "norm" in key: return 0.2
    if "embed" in key: return 1
    return (6 if "gate_up_proj" in key else 0.4 if "experts.down_proj" in key else 3 if "lm_head" in key else 1.5) / shape[-1] ** 0.5


# ---- folders ----

def in_folder(spec, layout, key, shape):
    """A parameter's tensors, each with its numbers' formula, and the parameter."""
    dtype = layout["dtype"]
    if layout.get("mxfp4") and is_of_experts(key) and not key.endswith("bias"):
        n, cols, rows = shape
        e = round(np.log2(size_of(key, [cols]) / 3)) + 127  # the numbers of four bits have a deviation of 3
        listed = [[f"{key}_blocks", "U8", [n, rows, cols // 32, 16], 127, 127, 0], [f"{key}_scales", "U8", [n, rows, cols // 32], 1, e, 0]]
        codes, scales = (torch.from_numpy(formula(name, size, *how).astype(np.uint8)) for name, _, size, *how in listed)
        return listed, convert_moe_packed_tensors(codes, scales, dtype=torch.float32).numpy()
    listed, numbers = [], np.empty(shape, np.float32)
    for name, part_shape, part in as_files_have(spec, spec["model_type"] == "gpt_oss", key, shape):
        how = numbers_of(key, part_shape, spec["tie_word_embeddings"], False, False)
        if is_of_experts(key) and "bias" not in key: how = 127, 0, round(np.log2(73 / size_of(key, part_shape)))
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
    set_weights(model, tensors)
    make(name, model, random_cases(seed, spec["vocab_size"], layout["lengths"]), 24, config=spec, shards=layout.get("shards", 1), tensors=listed)


# ---- GGUF ----

def write_keys(writer, spec):
    writer.add_context_length(spec["max_position_embeddings"])
    writer.add_embedding_length(spec["hidden_size"])
    writer.add_block_count(spec["num_hidden_layers"])
    writer.add_feed_forward_length(spec["intermediate_size"])
    writer.add_head_count(spec["num_attention_heads"])
    writer.add_head_count_kv(spec["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(spec["rms_norm_eps"])
    writer.add_rope_freq_base(float(spec["rope_theta"]))
    writer.add_key_length(spec["head_dim"])
    writer.add_value_length(spec["head_dim"])
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


def in_file(spec, key, shape):
    """Names, as the converter has them before gguf-py's map, and shapes of a parameter's tensors; how the parameter is made of them."""
    if spec["model_type"] == "gpt_oss" and is_of_experts(key):
        bias = key.endswith("bias")
        name = key.replace("_bias", ".bias") if bias else key + ".weight"
        turned = shape if bias else [shape[0], shape[2], shape[1]]  # outputs first
        def back(x): return x if bias else x.swapaxes(1, 2)
        if "down_proj" in key: return [(name, turned)], lambda parts: back(parts[0])
        half = [turned[0], turned[1] // 2, *turned[2:]]
        return ([(name.replace("gate_up", part), half) for part in ("gate", "up")],
                lambda parts: back(np.stack(parts, 2).reshape(turned)))  # rows of gates and ups take turns
    return [(key + ".weight" if key.endswith("sinks") else key, shape)], lambda parts: parts[0]


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
            x = rng.standard_normal(shape) * size_of(key, shape) + ("norm" in key)
            kind, which = "F32", "experts" if is_of_experts(key) else "types"
            if len(shape) > 1 and "bias" not in key and "router" not in key:  # the converter keeps the others in F32
                kind = layout[which][turn[which] % len(layout[which])]
                turn[which] += 1
            data = gguf.quants.quantize(np.ascontiguousarray(x.reshape(-1, shape[-1]), np.float32), T[kind])
            writer.add_tensor(names.get_name(where, try_suffixes=(".weight", ".bias")), data.reshape(*shape[:-1], -1), raw_dtype=T[kind])
            parts.append(gguf.quants.dequantize(data, T[kind]).reshape(shape))
        tensors[key] = np.ascontiguousarray(joined(parts), np.float32)
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file(), writer.close()
    set_weights(model, tensors)
    make(name, model, random_cases(seed, spec["vocab_size"], layout["lengths"]), 24, model=str((OUT / name / "model.gguf").relative_to(ROOT)))


def main(names):
    for seed, (name, spec) in enumerate(FOLDERS.items()):
        if not names or name in names: make_folder(seed, name, spec)
    for seed, (name, spec) in enumerate(FILES.items()):
        if not names or name in names: make_file(seed, name, spec)


if __name__ == "__main__": main(sys.argv[1:])
