"""Writes a checkpoint's folder as an F16 GGUF file without a tokenizer, for llama.cpp. Only ids go in and out."""
import json
from . import fail


def write_keys(writer, config, neox):
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(hidden)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    if neox:
        writer.add_rope_dimension_count(int(config["rotary_pct"] * (hidden // heads)))
        writer.add_parallel_residual(config["use_parallel_residual"])
        writer.add_layer_norm_eps(config["layer_norm_eps"])
    else:
        writer.add_head_count_kv(config.get("num_key_value_heads", heads))
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
        writer.add_rope_freq_base(config.get("rope_theta", 10000.0))
        if config.get("head_dim"):
            writer.add_key_length(config["head_dim"])
            writer.add_value_length(config["head_dim"])


def rearranged(config, name, x):
    """Arranges rows as llama.cpp needs them: for GPT-NeoX all q, all k, all v; in Llama's q and k the halves of a head
    alternate."""
    heads = config["num_attention_heads"]
    if "query_key_value" in name: return x.reshape(heads, 3, x.shape[0] // heads // 3, *x.shape[1:]).swapaxes(0, 1).reshape(x.shape)
    if config["model_type"] not in ("llama", "mistral") or not ("q_proj" in name or "k_proj" in name): return x
    if "k_proj" in name: heads = config.get("num_key_value_heads", heads)
    return x.reshape(heads, 2, x.shape[0] // heads // 2, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def write_gguf(folder, path):
    """Supports Llama, Mistral, Qwen2, Qwen3 and GPT-NeoX, without scaled rotation."""
    import gguf, numpy as np
    from safetensors import safe_open

    config = json.loads((folder / "config.json").read_text())
    arch = {"gpt_neox": "gptneox", "mistral": "llama"}.get(config["model_type"], config["model_type"])
    if config.get("rope_scaling"): fail("the checkpoint has rope_scaling, which is not supported; give its GGUF file as --target")
    writer = gguf.GGUFWriter(path, arch)
    write_keys(writer, config, arch == "gptneox")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_tokenizer_model("no_vocab")
    writer.add_vocab_size(config["vocab_size"])
    names = gguf.get_tensor_name_map(next(a for a, n in gguf.MODEL_ARCH_NAMES.items() if n == arch), config["num_hidden_layers"])
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, "np") as tensors:
            for name in tensors.keys():
                where = names.get_name(name, try_suffixes=(".weight", ".bias"))
                if where:  # otherwise it is a mask or the like
                    x = rearranged(config, name, tensors.get_tensor(name))
                    writer.add_tensor(where, np.ascontiguousarray(x, np.float16 if x.ndim == 2 else np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
