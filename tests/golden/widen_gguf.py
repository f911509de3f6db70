"""Loads a GGUF file as the transformers model (f32, CPU, eager attention) from which it was converted, with its blocks
widened by gguf-py: the oracle of check_checkpoint.py. Supports Llama, Qwen2, Qwen3, GPT-NeoX, SmolLM3, Granite, OLMo
2 and 3, Phi-3, Gemma 2 and 3."""
import gguf
import numpy as np
import torch
import transformers


ZIPPED = ["llama", "mixtral", "granite", "smollm3"]
LARGEST = {"gemma2": 46, "gemma3": 62}  # layers of the models whose attention scale uses hidden / heads numbers


def put_back(weights, heads):
    """Undoes llama.cpp's converter, which zips the halves of every head of the architecture llama's queries and keys."""
    return weights.reshape(heads, weights.shape[0] // heads // 2, 2, *weights.shape[1:]).swapaxes(1, 2).reshape(weights.shape)


def parts_together(qkv, heads):
    """Undoes the converter's separation of GPT-NeoX's queries, keys and values."""
    return qkv.reshape(3, heads, -1, *qkv.shape[1:]).swapaxes(0, 1).reshape(qkv.shape)


def value_heads(spec, name, x, back):
    """llama.cpp's converter separates the value heads of linear attention that share a key head: first the first of
    each, then the second. This does the same or, with `back`, undoes it."""
    key_heads, heads = spec["linear_num_key_heads"], spec["linear_num_value_heads"]
    if name.endswith("linear_attn.norm.weight"): return x
    at = 2 * key_heads * spec["linear_key_head_dim"] if "in_proj_qkv" in name or "conv1d" in name else 0
    axis = 1 if "out_proj" in name else 0
    order = [heads // key_heads, key_heads] if back else [key_heads, heads // key_heads]
    rest = np.moveaxis(x, axis, 0)[at:]
    rest = rest.reshape(*order, -1, *rest.shape[1:]).swapaxes(0, 1).reshape(rest.shape)
    return np.moveaxis(np.concatenate([np.moveaxis(x, axis, 0)[:at], rest]), 0, axis)


def restored(model_type, name, weights, heads, kv_heads):
    if "query_key_value" in name: return parts_together(weights, heads)
    if model_type not in ZIPPED or not ("q_proj" in name or "k_proj" in name): return weights
    return put_back(weights, kv_heads if "k_proj" in name else heads)


def config_of(key):
    arch = key("general.architecture")
    def own(name, default=None): return key(f"{arch}.{name}", default)
    spec = {"hidden_size": own("embedding_length"), "num_hidden_layers": own("block_count"), "intermediate_size": own("feed_forward_length"),
            "num_attention_heads": own("attention.head_count"), "max_position_embeddings": own("context_length")}
    if arch == "gptneox":
        heads = spec["hidden_size"] // spec["num_attention_heads"]
        return "gpt_neox", {**spec, "rotary_pct": own("rope.dimension_count") / heads, "layer_norm_eps": own("attention.layer_norm_epsilon"),
                            "use_parallel_residual": own("use_parallel_residual", True), "hidden_act": "gelu"}
    spec |= {"num_key_value_heads": own("attention.head_count_kv", spec["num_attention_heads"]), "rope_theta": own("rope.freq_base", 10000.0),
             "rms_norm_eps": own("attention.layer_norm_rms_epsilon"), "hidden_act": "silu", "use_sliding_window": False}
    if own("attention.key_length"): spec["head_dim"] = own("attention.key_length")
    scaling = own("rope.scaling.type", "none")
    if scaling != "none": spec["rope_scaling"] = {"rope_type": scaling, "factor": own("rope.scaling.factor")}
    if scaling == "yarn":
        spec["rope_scaling"] |= {"original_max_position_embeddings": own("rope.scaling.original_context_length"),
                                 "attention_factor": own("rope.scaling.yarn_attn_factor"), "beta_fast": own("rope.scaling.yarn_beta_fast", 32.0),
                                 "beta_slow": own("rope.scaling.yarn_beta_slow", 1.0)}
    return further(arch, spec, own)


def further(arch, spec, own):
    """Returns the settings that a family has in addition to those of all, and its name in transformers."""
    head = spec.get("head_dim", spec["hidden_size"] // spec["num_attention_heads"])
    if arch in ("smollm3", "phi3"): spec["pad_token_id"] = 0  # its id is outside of a small vocabulary
    if arch == "granite":
        spec |= {"embedding_multiplier": own("embedding_scale", 1.0), "residual_multiplier": own("residual_scale", 1.0),
                 "attention_multiplier": own("attention.scale", 0.0) or head ** -0.5, "logits_scaling": own("logit_scale", 1.0)}
    if arch in ("phi3", "olmo2", *LARGEST): spec["sliding_window"] = own("attention.sliding_window")
    if arch == "phi3":
        spec["partial_rotary_factor"] = own("rope.dimension_count", head) / head
        spec["original_max_position_embeddings"] = own("rope.scaling.original_context_length", spec["max_position_embeddings"])
    if arch in LARGEST:
        scalar = spec["hidden_size"] // spec["num_attention_heads"] if spec["num_hidden_layers"] == LARGEST[arch] else head
        spec |= {"query_pre_attn_scalar": scalar, "attn_logit_softcapping": own("attn_logit_softcapping"),
                 "final_logit_softcapping": own("final_logit_softcapping")}
    if arch == "gemma3": spec["rope_local_base_freq"] = own("rope.freq_base_swa", 10000.0)
    pattern = own("attention.sliding_window_pattern")
    if isinstance(pattern, list): spec["layer_types"] = ["sliding_attention" if local else "full_attention" for local in pattern]
    if arch == "olmo2" and spec["sliding_window"]: arch = "olmo3"
    return {"gemma3": "gemma3_text"}.get(arch, arch), spec


@torch.no_grad()
def widened(path):
    reader = gguf.GGUFReader(path)
    def key(name, default=None):
        field = reader.get_field(name)
        return field.contents() if field else default
    model_type, spec = config_of(key)
    tensors = {t.name: t for t in reader.tensors}
    spec["vocab_size"] = int(tensors["token_embd.weight"].shape[1])
    spec["tie_word_embeddings"] = "output.weight" not in tensors
    config = transformers.AutoConfig.for_model(model_type, **spec)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager", dtype=torch.float32).eval()
    arch = next(a for a, n in gguf.MODEL_ARCH_NAMES.items() if n == key("general.architecture"))
    names = gguf.get_tensor_name_map(arch, spec["num_hidden_layers"])
    plus = 1 if model_type.startswith("gemma") else 0  # the converter has added it to the weights of norms
    for name, p in model.named_parameters():
        t = tensors.pop(names.get_name(name, try_suffixes=(".weight", ".bias")))
        x = restored(model_type, name, gguf.quants.dequantize(t.data, t.tensor_type), spec["num_attention_heads"], spec.get("num_key_value_heads"))
        if "norm" in name: x = x - plus
        p.copy_(torch.from_numpy(np.ascontiguousarray(x, np.float32).reshape(p.shape)))
    factors = tensors.pop("rope_freqs.weight", None)
    if factors is not None: model.model.rotary_emb.inv_freq /= torch.from_numpy(np.array(factors.data))
    assert not tensors, f"unused tensors: {sorted(tensors)}"
    return model
