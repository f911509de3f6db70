"""Make the rest of logits/: what transformers (f32, CPU, eager attention) computes for tiny Llama, Mistral, Qwen2,
Qwen3 and GPT-NeoX models, from Hugging Face's files and from GGUF files. Run it from anywhere, with torch,
transformers, safetensors, gguf 0.19.0 and numpy installed:

    python tests/golden/make_families.py [NAME ...]

make_logits.py describes golden.json and golden.bin. In addition:
- The models of FOLDERS have no weights in the source tree, since their widths are those of real models. golden.json has
  config.json ("config"), the number of shards, and for each tensor its name, type, shape and the numbers a, base and e:
  element i is (base + k) * 2^-e, where k in -a..a is the i-th number of a splitmix64 generator that starts from the
  FNV-1a hash of the name. Numbers have at most 8 bits, so they are exact in every type.
  tests/unit/formula_checkpoint.h writes the files.
- The models of FILES are logits/NAME/model.gguf: written by gguf-py, or random blocks of a type to which it cannot
  quantize. The oracle computes with the numbers that gguf-py decodes from the blocks, with rows put back where the
  converter moved them.
"""
import copy, json, pathlib, sys
import gguf
import numpy as np
import torch
import transformers
from gguf import GGMLQuantizationType as T
from make_logits import OUT, ROOT, make, random_cases
from widen_gguf import ZIPPED, restored, value_heads

COMMON = {"hidden_act": "silu", "num_hidden_layers": 2}
# config.json as it is written, with the key names in use; "_": the layout of the files
FOLDERS = {
    "llama576": {
        "_": {"dtype": "F16", "lengths": [3, 41]}, "architectures": ["LlamaForCausalLM"], "model_type": "llama",
        "hidden_size": 576, "num_attention_heads": 9, "num_key_value_heads": 3, "intermediate_size": 80, "vocab_size": 131,
        "rms_norm_eps": 1e-05, "tie_word_embeddings": True, "max_position_embeddings": 256, "rope_theta": 500000.0,
        "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                         "original_max_position_embeddings": 32}, "eos_token_id": [1, 2]},
    "llama_biases": {
        "_": {"dtype": "BF16", "lengths": [2, 37]}, "architectures": ["LlamaForCausalLM"], "model_type": "llama",
        "hidden_size": 60, "num_attention_heads": 5, "intermediate_size": 75, "vocab_size": 109, "rms_norm_eps": 1e-06,
        "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": False, "max_position_embeddings": 64, "eos_token_id": 2},
    "mistral": {
        "_": {"dtype": "BF16", "lengths": [1, 39], "shards": 2}, "architectures": ["MistralForCausalLM"], "model_type": "mistral",
        "hidden_size": 90, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 28, "intermediate_size": 130,
        "vocab_size": 203, "rms_norm_eps": 1e-05, "sliding_window": 64, "tie_word_embeddings": False,
        "max_position_embeddings": 512, "rope_theta": 1000000.0, "eos_token_id": 2},
    "qwen2_896": {
        "_": {"dtype": "F32", "lengths": [4, 40]}, "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2",
        "hidden_size": 896, "num_attention_heads": 14, "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 157,
        "rms_norm_eps": 1e-06, "tie_word_embeddings": True, "max_position_embeddings": 128, "use_sliding_window": False,
        "sliding_window": 16, "max_window_layers": 1, "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0},
        "eos_token_id": 3},
    "qwen3": {
        "_": {"dtype": "F16", "lengths": [3, 44]}, "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3",
        "hidden_size": 84, "num_attention_heads": 6, "num_key_value_heads": 3, "head_dim": 32, "intermediate_size": 100,
        "vocab_size": 211, "rms_norm_eps": 1e-06, "tie_word_embeddings": False, "max_position_embeddings": 160,
        "rope_theta": 10000, "rope_scaling": {"type": "linear", "factor": 4.0}, "eos_token_id": 3},
    "qwen2_yarn": {
        "_": {"dtype": "F16", "lengths": [3, 47]}, "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2",
        "hidden_size": 72, "num_attention_heads": 6, "num_key_value_heads": 2, "intermediate_size": 88, "vocab_size": 101,
        "rms_norm_eps": 1e-06, "tie_word_embeddings": True, "max_position_embeddings": 128, "rope_theta": 10000.0,
        "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}, "eos_token_id": 3},
    "llama_yarn": {
        "_": {"dtype": "F32", "lengths": [2, 44]}, "architectures": ["LlamaForCausalLM"], "model_type": "llama",
        "hidden_size": 80, "num_attention_heads": 5, "num_key_value_heads": 5, "intermediate_size": 72, "vocab_size": 97,
        "rms_norm_eps": 1e-06, "tie_word_embeddings": False, "max_position_embeddings": 256,
        "rope_parameters": {"rope_type": "yarn", "rope_theta": 5000.0, "factor": 8.0, "original_max_position_embeddings": 32,
                            "beta_fast": 16.0, "beta_slow": 0.5, "mscale": 0.8, "mscale_all_dim": 0.4, "truncate": False},
        "eos_token_id": 2},
    "smollm3": {
        "_": {"dtype": "BF16", "lengths": [3, 41]}, "architectures": ["SmolLM3ForCausalLM"], "model_type": "smollm3",
        "num_hidden_layers": 5, "hidden_size": 60, "num_attention_heads": 6, "num_key_value_heads": 2, "intermediate_size": 84,
        "vocab_size": 107, "rms_norm_eps": 1e-06, "tie_word_embeddings": True, "max_position_embeddings": 128,
        "rope_theta": 50000.0, "eos_token_id": 2, "pad_token_id": 1},
    "smollm3_biases": {
        "_": {"dtype": "F16", "lengths": [1, 39]}, "architectures": ["SmolLM3ForCausalLM"], "model_type": "smollm3",
        "num_hidden_layers": 3, "hidden_size": 48, "num_attention_heads": 3, "num_key_value_heads": 1, "intermediate_size": 50,
        "vocab_size": 83, "rms_norm_eps": 1e-05, "tie_word_embeddings": False, "max_position_embeddings": 96, "attention_bias": True,
        "mlp_bias": True, "no_rope_layers": [0, 1, 0], "use_sliding_window": True, "sliding_window": 7,
        "layer_types": ["full_attention", "sliding_attention", "sliding_attention"], "rope_theta": 2000000.0, "eos_token_id": 2,
        "pad_token_id": 1},
    "granite": {
        "_": {"dtype": "F16", "lengths": [3, 41]}, "architectures": ["GraniteForCausalLM"], "model_type": "granite",
        "num_hidden_layers": 3, "hidden_size": 84, "num_attention_heads": 6, "num_key_value_heads": 2, "intermediate_size": 92,
        "vocab_size": 103, "rms_norm_eps": 1e-05, "tie_word_embeddings": True, "max_position_embeddings": 96, "rope_theta": 10000.0,
        "embedding_multiplier": 12.0, "attention_multiplier": 0.125, "residual_multiplier": 0.22, "logits_scaling": 3.0,
        "eos_token_id": 0},
    "granite_biases": {
        "_": {"dtype": "BF16", "lengths": [2, 35]}, "architectures": ["GraniteForCausalLM"], "model_type": "granite",
        "num_hidden_layers": 2, "hidden_size": 40, "num_attention_heads": 5, "num_key_value_heads": 5, "intermediate_size": 50,
        "vocab_size": 71, "rms_norm_eps": 1e-06, "tie_word_embeddings": False, "max_position_embeddings": 64, "attention_bias": True,
        "mlp_bias": True, "embedding_multiplier": 2.0, "attention_multiplier": 0.3, "residual_multiplier": 0.7,
        "logits_scaling": 0.5, "eos_token_id": 0},
    "olmo2": {
        "_": {"dtype": "BF16", "lengths": [3, 41]}, "architectures": ["Olmo2ForCausalLM"], "model_type": "olmo2",
        "num_hidden_layers": 3, "hidden_size": 60, "num_attention_heads": 5, "num_key_value_heads": 1, "intermediate_size": 70,
        "vocab_size": 109, "tie_word_embeddings": False, "max_position_embeddings": 96, "rope_theta": 500000.0, "eos_token_id": 2},
    "olmo2_heads": {
        "_": {"dtype": "F16", "lengths": [1, 70]}, "architectures": ["Olmo2ForCausalLM"], "model_type": "olmo2",
        "num_hidden_layers": 2, "hidden_size": 96, "num_attention_heads": 6, "num_key_value_heads": 3, "intermediate_size": 64,
        "vocab_size": 89, "rms_norm_eps": 1e-06, "tie_word_embeddings": True, "attention_bias": True,
        "max_position_embeddings": 128, "eos_token_id": 2},
    "olmo3": {
        "_": {"dtype": "F16", "lengths": [3, 53]}, "architectures": ["Olmo3ForCausalLM"], "model_type": "olmo3",
        "num_hidden_layers": 5, "hidden_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 60,
        "vocab_size": 101, "rms_norm_eps": 1e-06, "tie_word_embeddings": False, "max_position_embeddings": 128, "sliding_window": 9,
        "rope_theta": 500000, "rope_scaling": {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 16,
                                               "attention_factor": 1.2079441541679836, "beta_fast": 32, "beta_slow": 1},
        "eos_token_id": 2},
    "phi3": {
        "_": {"dtype": "BF16", "lengths": [3, 60]}, "architectures": ["Phi3ForCausalLM"], "model_type": "phi3",
        "num_hidden_layers": 2, "hidden_size": 96, "num_attention_heads": 3, "num_key_value_heads": 3, "intermediate_size": 70,
        "vocab_size": 113, "rms_norm_eps": 1e-05, "tie_word_embeddings": False, "max_position_embeddings": 128,
        "original_max_position_embeddings": 128, "sliding_window": 17, "rope_theta": 10000.0, "rope_scaling": None,
        "eos_token_id": 2, "pad_token_id": 1},
    "phi4": {
        "_": {"dtype": "F16", "lengths": [2, 43]}, "architectures": ["Phi3ForCausalLM"], "model_type": "phi3",
        "num_hidden_layers": 3, "hidden_size": 80, "num_attention_heads": 5, "num_key_value_heads": 1, "intermediate_size": 62,
        "vocab_size": 97, "rms_norm_eps": 1e-05, "tie_word_embeddings": True, "max_position_embeddings": 96,
        "original_max_position_embeddings": 96, "sliding_window": None, "partial_rotary_factor": 0.75, "rope_theta": 250000.0,
        "eos_token_id": 2, "pad_token_id": 1},
    "gemma2": {
        "_": {"dtype": "BF16", "lengths": [3, 57]}, "architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2",
        "num_hidden_layers": 4, "hidden_size": 60, "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 24,
        "intermediate_size": 70, "vocab_size": 107, "rms_norm_eps": 1e-06, "tie_word_embeddings": True,
        "hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 128, "sliding_window": 8, "query_pre_attn_scalar": 20,
        "attn_logit_softcapping": 5.0, "final_logit_softcapping": 8.0, "rope_theta": 10000.0, "eos_token_id": 1},
    "gemma2_open": {
        "_": {"dtype": "F16", "lengths": [1, 35]}, "architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2",
        "num_hidden_layers": 3, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
        "intermediate_size": 50, "vocab_size": 91, "rms_norm_eps": 1e-06, "tie_word_embeddings": True,
        "hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 64, "sliding_window": 64, "query_pre_attn_scalar": 16,
        "attn_logit_softcapping": None, "final_logit_softcapping": None, "rope_theta": 10000.0, "eos_token_id": [1, 4]},
    "gemma3": {
        "_": {"dtype": "BF16", "lengths": [3, 61]}, "architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text",
        "num_hidden_layers": 7, "hidden_size": 40, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 20,
        "intermediate_size": 50, "vocab_size": 103, "rms_norm_eps": 1e-06, "tie_word_embeddings": True,
        "hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 128, "sliding_window": 11, "query_pre_attn_scalar": 18,
        "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0, "rope_scaling": {"rope_type": "linear", "factor": 8.0},
        "eos_token_id": [1, 3]},
    "gemma3_listed": {
        "_": {"dtype": "F16", "lengths": [2, 50]}, "architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text",
        "num_hidden_layers": 3, "hidden_size": 54, "num_attention_heads": 3, "num_key_value_heads": 3, "head_dim": 16,
        "intermediate_size": 44, "vocab_size": 87, "rms_norm_eps": 1e-06, "tie_word_embeddings": True,
        "hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 96, "sliding_window": 5, "query_pre_attn_scalar": 16,
        "layer_types": ["full_attention", "sliding_attention", "full_attention"], "final_logit_softcapping": 6.0,
        "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 500000.0},
                            "sliding_attention": {"rope_type": "default", "rope_theta": 7000.0}}, "eos_token_id": 1},
    "qwen3_moe": {
        "_": {"dtype": "BF16", "lengths": [3, 61]}, "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe",
        "num_hidden_layers": 3, "hidden_size": 72, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 20,
        "intermediate_size": 90, "vocab_size": 107, "rms_norm_eps": 1e-06, "tie_word_embeddings": False,
        "max_position_embeddings": 128, "rope_theta": 1000000.0, "num_experts": 11, "num_experts_per_tok": 4,
        "moe_intermediate_size": 27, "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": [1],
        "use_sliding_window": False, "eos_token_id": 3},
    "qwen35": {
        "_": {"dtype": "F32", "lengths": [1, 150, 300]}, "architectures": ["Qwen3_5ForCausalLM"], "model_type": "qwen3_5_text",
        "num_hidden_layers": 4, "hidden_size": 56, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 24,
        "intermediate_size": 90, "vocab_size": 103, "rms_norm_eps": 1e-06, "tie_word_embeddings": False, "max_position_embeddings": 384,
        "linear_key_head_dim": 16, "linear_value_head_dim": 32, "linear_num_key_heads": 2, "linear_num_value_heads": 6,
        "linear_conv_kernel_dim": 4, "full_attention_interval": 4, "attn_output_gate": True,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25}, "eos_token_id": 3},
    "qwen35_whole": {
        "_": {"dtype": "BF16", "lengths": [2, 102]}, "architectures": ["Qwen3_5ForConditionalGeneration"], "model_type": "qwen3_5",
        "tie_word_embeddings": True, "vision_config": {"depth": 1, "hidden_size": 16, "num_heads": 1, "intermediate_size": 8, "out_hidden_size": 48},
        "text_config": {
            "model_type": "qwen3_5_text", "num_hidden_layers": 3, "hidden_size": 48, "num_attention_heads": 3, "num_key_value_heads": 1,
            "head_dim": 16, "intermediate_size": 50, "vocab_size": 83, "max_position_embeddings": 128, "tie_word_embeddings": True,
            "linear_key_head_dim": 32, "linear_value_head_dim": 16, "linear_num_key_heads": 3, "linear_num_value_heads": 3,
            "linear_conv_kernel_dim": 4, "eos_token_id": [1, 5], "layer_types": ["linear_attention", "full_attention", "linear_attention"],
            "rope_parameters": {"rope_type": "default", "rope_theta": 50000.0, "partial_rotary_factor": 0.5}}},
    "qwen3_moe_one": {
        "_": {"dtype": "F16", "lengths": [1, 40], "merged": True}, "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe",
        "num_hidden_layers": 4, "hidden_size": 48, "num_attention_heads": 3, "num_key_value_heads": 3, "intermediate_size": 50,
        "vocab_size": 89, "rms_norm_eps": 1e-06, "tie_word_embeddings": True, "max_position_embeddings": 96, "attention_bias": True,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}, "num_local_experts": 5, "num_experts_per_tok": 1,
        "moe_intermediate_size": 33, "norm_topk_prob": False, "decoder_sparse_step": 2, "mlp_only_layers": [], "eos_token_id": 3},
    "mixtral": {
        "_": {"dtype": "F32", "lengths": [2, 70], "shards": 2}, "architectures": ["MixtralForCausalLM"], "model_type": "mixtral",
        "num_hidden_layers": 2, "hidden_size": 60, "num_attention_heads": 5, "num_key_value_heads": 1, "intermediate_size": 44,
        "vocab_size": 97, "rms_norm_eps": 1e-05, "sliding_window": None, "tie_word_embeddings": False,
        "max_position_embeddings": 128, "rope_theta": 1000000.0, "num_local_experts": 8, "num_experts_per_tok": 2, "eos_token_id": 2},
    "mixtral_all": {
        "_": {"dtype": "BF16", "lengths": [3, 37], "merged": True}, "architectures": ["MixtralForCausalLM"], "model_type": "mixtral",
        "num_hidden_layers": 3, "hidden_size": 40, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 30,
        "vocab_size": 83, "rms_norm_eps": 1e-06, "sliding_window": None, "tie_word_embeddings": True, "max_position_embeddings": 64,
        "rope_theta": 10000.0, "num_local_experts": 3, "num_experts_per_tok": 3, "eos_token_id": 2},
    "llama_parts": {
        "_": {"dtype": "F32", "lengths": [2, 35]}, "architectures": ["LlamaForCausalLM"], "model_type": "llama",
        "hidden_size": 48, "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 50, "vocab_size": 71,
        "rms_norm_eps": 1e-06, "tie_word_embeddings": False, "max_position_embeddings": 64,
        "rope_parameters": {"rope_type": "proportional", "rope_theta": 3000.0, "partial_rotary_factor": 0.4, "factor": 2.0},
        "eos_token_id": 2},
    "gemma4": {
        "_": {"dtype": "BF16", "lengths": [3, 57]}, "architectures": ["Gemma4ForCausalLM"], "model_type": "gemma4_text",
        "num_hidden_layers": 8, "hidden_size": 60, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 20,
        "global_head_dim": 32, "num_global_key_value_heads": 1, "attention_k_eq_v": True, "intermediate_size": 70, "vocab_size": 107,
        "rms_norm_eps": 1e-06, "tie_word_embeddings": True, "hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 128,
        "sliding_window": 8, "final_logit_softcapping": 8.0, "hidden_size_per_layer_input": 0, "num_kv_shared_layers": 0,
        "use_bidirectional_attention": "vision", "eos_token_id": [1, 3]},
    "gemma4_inputs": {
        "_": {"dtype": "F16", "lengths": [2, 50]}, "architectures": ["Gemma4ForCausalLM"], "model_type": "gemma4_text",
        "num_hidden_layers": 9, "hidden_size": 52, "num_attention_heads": 3, "num_key_value_heads": 1, "head_dim": 40,
        "global_head_dim": 24, "intermediate_size": 50, "vocab_size": 93, "vocab_size_per_layer_input": 93, "rms_norm_eps": 1e-05,
        "tie_word_embeddings": True, "hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 96, "sliding_window": 5,
        "hidden_size_per_layer_input": 12, "num_kv_shared_layers": 5, "use_double_wide_mlp": True,
        "layer_types": ["sliding_attention", "full_attention", "full_attention", "sliding_attention", "sliding_attention",
                        "full_attention", "sliding_attention", "full_attention", "full_attention"],
        "rope_parameters": {"full_attention": {"rope_type": "proportional", "rope_theta": 50000.0, "partial_rotary_factor": 0.6},
                            "sliding_attention": {"rope_type": "default", "rope_theta": 7000.0}}, "eos_token_id": 1},
    "gemma4_listed": {
        "_": {"dtype": "F32", "lengths": [1, 70], "shards": 2}, "architectures": ["Gemma4ForCausalLM"], "model_type": "gemma4_text",
        "num_hidden_layers": 5, "hidden_size": 36, "num_attention_heads": 6, "num_key_value_heads": 3, "head_dim": 16,
        "per_layer_config": {"1": {"head_dim": 22, "num_key_value_heads": 2}, "4": {"head_dim": 22, "num_key_value_heads": 2}},
        "attention_k_eq_v": True, "attention_bias": True, "intermediate_size": 40, "vocab_size": 81,
        "vocab_size_per_layer_input": 81, "rms_norm_eps": 1e-06, "tie_word_embeddings": False,
        "hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 128, "sliding_window": 17,
        "hidden_size_per_layer_input": 16, "num_kv_shared_layers": 1, "use_double_wide_mlp": False,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "full_attention"],
        "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 20000.0},
                            "sliding_attention": {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}}, "eos_token_id": 1},
    "gemma4_whole": {
        "_": {"dtype": "BF16", "lengths": [2, 41]}, "architectures": ["Gemma4ForConditionalGeneration"], "model_type": "gemma4",
        "vision_config": None, "audio_config": None, "tie_word_embeddings": True,
        "text_config": {
            "model_type": "gemma4_text", "num_hidden_layers": 4, "hidden_size": 44, "num_attention_heads": 2, "num_key_value_heads": 2,
            "head_dim": 18, "global_head_dim": 26, "intermediate_size": 34, "vocab_size": 77, "vocab_size_per_layer_input": 77,
            "hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 64, "sliding_window": 9,
            "hidden_size_per_layer_input": 10, "num_kv_shared_layers": 2, "final_logit_softcapping": 20.0, "eos_token_id": [1, 5],
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"]}},
}
GEMMA4_ROTATIONS = {"full_attention": {"rope_type": "proportional", "rope_theta": 1000000.0, "partial_rotary_factor": 0.25},
                    "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}
# tensor types, used alternately; with "+" random numbers are quantized with gguf-py, otherwise blocks are random;
# "bytes": the tokenizer has the 256 bytes, "th" and an end as tokens
FILES = {
    "gguf_llama": {
        "_": {"types": ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS", "F16",
                        "BF16"], "lengths": [2, 45], "bytes": True},
        "model_type": "llama", "hidden_size": 256, "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 256,
        "vocab_size": 258, "rms_norm_eps": 1e-05, "tie_word_embeddings": True, "max_position_embeddings": 128,
        "rope_theta": 10000.0, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                                                "high_freq_factor": 4.0, "original_max_position_embeddings": 32}},
    "gguf_qwen2": {
        "_": {"types": ["Q8_0+", "Q5_0+", "Q4_0+", "Q4_1+"], "lengths": [3, 33]},
        "model_type": "qwen2", "hidden_size": 96, "num_attention_heads": 6, "num_key_value_heads": 2, "intermediate_size": 128,
        "vocab_size": 113, "rms_norm_eps": 1e-06, "tie_word_embeddings": False, "max_position_embeddings": 64,
        "rope_theta": 1000000.0},
    "gguf_qwen3": {
        "_": {"types": ["F32+", "Q8_0+", "F16+"], "lengths": [5, 31]},
        "model_type": "qwen3", "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 24,
        "intermediate_size": 96, "vocab_size": 89, "rms_norm_eps": 1e-06, "tie_word_embeddings": True,
        "max_position_embeddings": 64, "rope_theta": 10000.0, "rope_scaling": {"rope_type": "linear", "factor": 2.0}},
    "gguf_neox": {
        "_": {"types": ["Q8_0+", "F16+", "Q4_1+"], "lengths": [3, 34]},
        "model_type": "gpt_neox", "hidden_size": 96, "num_attention_heads": 3, "intermediate_size": 128, "vocab_size": 101,
        "hidden_act": "gelu", "rotary_pct": 0.25, "use_parallel_residual": True, "tie_word_embeddings": False,
        "layer_norm_eps": 1e-05, "max_position_embeddings": 64},
    "gguf_smollm3": {
        "_": {"types": ["Q8_0+", "F16+", "Q4_0+"], "lengths": [3, 41], "bytes": True},
        "model_type": "smollm3", "num_hidden_layers": 5, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
        "intermediate_size": 64, "vocab_size": 258, "rms_norm_eps": 1e-06, "tie_word_embeddings": True, "max_position_embeddings": 256,
        "rope_theta": 50000.0, "pad_token_id": 1},
    "gguf_granite": {
        "_": {"types": ["Q8_0+", "Q4_1+", "F32+"], "lengths": [3, 38], "bytes": True},
        "model_type": "granite", "num_hidden_layers": 3, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
        "intermediate_size": 96, "vocab_size": 258, "rms_norm_eps": 1e-05, "tie_word_embeddings": False, "max_position_embeddings": 256,
        "rope_theta": 10000.0, "embedding_multiplier": 6.0, "attention_multiplier": 0.125, "residual_multiplier": 0.3,
        "logits_scaling": 2.0},
    "gguf_olmo2": {
        "_": {"types": ["Q8_0+", "F16+"], "lengths": [3, 40], "bytes": True},
        "model_type": "olmo2", "num_hidden_layers": 3, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
        "intermediate_size": 64, "vocab_size": 258, "rms_norm_eps": 1e-06, "tie_word_embeddings": False, "max_position_embeddings": 256,
        "rope_theta": 500000.0},
    "gguf_olmo3": {
        "_": {"types": ["Q8_0+", "Q5_0+"], "lengths": [3, 53], "bytes": True},
        "model_type": "olmo3", "num_hidden_layers": 5, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 4,
        "intermediate_size": 64, "vocab_size": 258, "rms_norm_eps": 1e-06, "tie_word_embeddings": False, "max_position_embeddings": 256,
        "sliding_window": 9, "rope_theta": 500000.0,
        "rope_scaling": {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 16,
                         "attention_factor": 1.2079441541679836, "beta_fast": 32.0, "beta_slow": 1.0}},
    "gguf_phi3": {
        "_": {"types": ["Q8_0+", "Q4_0+", "F16+"], "lengths": [2, 60], "bytes": True},
        "model_type": "phi3", "num_hidden_layers": 3, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
        "intermediate_size": 64, "vocab_size": 258, "rms_norm_eps": 1e-05, "tie_word_embeddings": False, "max_position_embeddings": 256,
        "original_max_position_embeddings": 256, "sliding_window": 20, "partial_rotary_factor": 0.75, "rope_theta": 10000.0,
        "pad_token_id": 1},
    "gguf_gemma2": {
        "_": {"types": ["Q8_0+", "F16+", "Q4_0+"], "lengths": [3, 57], "bytes": True},
        "model_type": "gemma2", "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 32,
        "intermediate_size": 64, "vocab_size": 258, "rms_norm_eps": 1e-06, "tie_word_embeddings": True, "max_position_embeddings": 256,
        "hidden_activation": "gelu_pytorch_tanh", "sliding_window": 8, "query_pre_attn_scalar": 32, "attn_logit_softcapping": 5.0,
        "final_logit_softcapping": 8.0, "rope_theta": 10000.0},
    "gguf_gemma3": {
        "_": {"types": ["Q8_0+", "Q4_1+"], "lengths": [3, 61], "bytes": True},
        "model_type": "gemma3_text", "num_hidden_layers": 7, "hidden_size": 64, "num_attention_heads": 2, "num_key_value_heads": 1,
        "head_dim": 32, "intermediate_size": 64, "vocab_size": 258, "rms_norm_eps": 1e-06, "tie_word_embeddings": True,
        "max_position_embeddings": 256, "hidden_activation": "gelu_pytorch_tanh", "sliding_window": 11, "query_pre_attn_scalar": 32,
        "rope_theta": 1000000.0, "rope_local_base_freq": 10000.0, "rope_scaling": {"rope_type": "linear", "factor": 8.0}},
    "gguf_qwen3moe": {
        "_": {"types": ["Q8_0+", "Q4_0+", "F16+"], "lengths": [3, 45], "bytes": True},
        "model_type": "qwen3_moe", "num_hidden_layers": 3, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 32, "intermediate_size": 96, "vocab_size": 258, "rms_norm_eps": 1e-06, "tie_word_embeddings": False,
        "max_position_embeddings": 256, "rope_theta": 1000000.0, "num_experts": 9, "num_experts_per_tok": 3,
        "moe_intermediate_size": 32, "norm_topk_prob": True},
    "gguf_qwen35": {
        "_": {"types": ["Q8_0+", "F16+", "Q4_0+"], "lengths": [3, 140], "bytes": True},
        "model_type": "qwen3_5_text", "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 32, "intermediate_size": 96, "vocab_size": 258, "rms_norm_eps": 1e-06, "tie_word_embeddings": False,
        "max_position_embeddings": 1024, "linear_key_head_dim": 16, "linear_value_head_dim": 32, "linear_num_key_heads": 2,
        "linear_num_value_heads": 4, "linear_conv_kernel_dim": 4, "full_attention_interval": 4,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0, "partial_rotary_factor": 0.25}},
    "gguf_mixtral": {
        "_": {"types": ["Q4_K", "Q6_K", "Q8_0", "Q3_K", "F16", "IQ4_XS", "Q5_0"], "lengths": [2, 40], "bytes": True, "merged": True},
        "model_type": "mixtral", "hidden_size": 256, "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 256,
        "vocab_size": 258, "rms_norm_eps": 1e-05, "sliding_window": None, "tie_word_embeddings": True, "max_position_embeddings": 256,
        "rope_theta": 1000000.0, "num_local_experts": 4, "num_experts_per_tok": 2},
    "gguf_gemma4": {
        "_": {"types": ["Q8_0+", "F16+", "Q4_0+"], "lengths": [3, 57], "bytes": True},
        "model_type": "gemma4_text", "num_hidden_layers": 6, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 16, "global_head_dim": 32, "num_global_key_value_heads": 1, "attention_k_eq_v": True, "intermediate_size": 96,
        "vocab_size": 258, "rms_norm_eps": 1e-06, "tie_word_embeddings": True, "hidden_activation": "gelu_pytorch_tanh",
        "max_position_embeddings": 256, "sliding_window": 8, "final_logit_softcapping": 8.0, "hidden_size_per_layer_input": 0,
        "num_kv_shared_layers": 0, "rope_parameters": GEMMA4_ROTATIONS},
    "gguf_gemma4_inputs": {
        "_": {"types": ["Q8_0+", "Q4_1+"], "lengths": [2, 61], "bytes": True},
        "model_type": "gemma4_text", "num_hidden_layers": 7, "hidden_size": 64, "num_attention_heads": 2, "num_key_value_heads": 1,
        "head_dim": 32, "global_head_dim": 64, "intermediate_size": 64, "vocab_size": 258, "vocab_size_per_layer_input": 258,
        "rms_norm_eps": 1e-06, "tie_word_embeddings": True, "hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 256,
        "sliding_window": 11, "hidden_size_per_layer_input": 32, "num_kv_shared_layers": 4, "use_double_wide_mlp": True,
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention"] * 2 + ["full_attention"],
        "rope_parameters": GEMMA4_ROTATIONS},
}


def text_of(spec): return spec.get("text_config", spec)


def model_of(spec):
    config = transformers.AutoConfig.for_model(**copy.deepcopy(spec if "text_config" in spec else {**COMMON, **spec}))  # it changes rope_scaling
    return transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager", experts_implementation="eager", dtype=torch.float32).eval()


def is_head(name): return name in ("lm_head.weight", "embed_out.weight")


def weights_of(model):
    """Returns what a checkpoint contains: parameters, and buffers of one number that are weights, too."""
    return [*model.named_parameters(), *((n, b) for n, b in model.named_buffers() if n.endswith("layer_scalar"))]


def set_weights(model, tensors):
    left = set(tensors)
    with torch.no_grad():
        for name, p in weights_of(model):
            p.copy_(torch.from_numpy(tensors[name]))
            left.discard(name)
    assert not left, left


# ---- weights from a formula ----

def formula(name, shape, a, base, e):
    seed = np.uint64(0xCBF29CE484222325)
    with np.errstate(over="ignore"):
        for byte in name.encode():
            seed = (seed ^ np.uint64(byte)) * np.uint64(0x100000001B3)
        z = seed + np.arange(1, int(np.prod(shape)) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    k = (z >> np.uint64(32)) % np.uint64(2 * a + 1)
    return ((k.astype(np.int64) - a + base) * 2.0 ** -e).astype(np.float32).reshape(shape)


def is_gemma(spec): return spec["model_type"].startswith("gemma")
def has_delta(spec): return spec["model_type"] in ("qwen3_5_text", "qwen3_5_moe_text")
def adds_one(spec, key):  # to its norms' weights
    return spec["model_type"] in ("gemma2", "gemma3_text") or has_delta(spec) and "linear_attn" not in key


def numbers_of(name, shape, tied, gemma, plus):
    """Returns a, base and e, with a scale at which every part of a layer moves the logits, and logits spread over
    several units."""
    if "norm" in name and name.endswith("weight"): return 63, 0 if plus else 128, 7
    if name.endswith("layer_scalar"): return 40, 100, 7
    if name.endswith("bias"): return 127, 0, 8
    if name.endswith("A_log"): return 100, -150, 6
    if "embed_tokens" in name and not tied and not gemma: return 127, 0, 6
    size = 3 if is_head(name) or tied and "embed_tokens" in name else 1.5
    if gemma and "embed_tokens." in name: size = 0.4  # it is scaled, and must not outweigh the layers
    return 127, 0, round(np.log2(73 * shape[-1] ** 0.5 / size))


def as_files_have(spec, merged, name, shape):
    """Returns the tensors of a parameter in Hugging Face's files, each with its part of the parameter. It is one
    tensor, except for experts, which transformers merges when it reads them; it also writes them merged when it
    saves the model in memory."""
    if spec["model_type"] == "mixtral" and not merged: name = name.replace(".mlp.", ".block_sparse_moe.")
    if len(shape) < 3 or merged or "conv1d" in name: return [(name, list(shape), ())]
    gate, up, down = ("w1", "w3", "w2") if spec["model_type"] == "mixtral" else ("gate_proj", "up_proj", "down_proj")
    before, half = name.rpartition(".")[0], shape[1] // 2
    parts = [(down, slice(None))] if name.endswith("down_proj") else [(gate, slice(0, half)), (up, slice(half, None))]
    return [(f"{before}.{i}.{part}.weight", [shape[1] // len(parts), shape[2]], (i, rows)) for i in range(shape[0]) for part, rows in parts]


def make_folder(seed, name, spec, change=lambda model: None, **more):
    spec = spec if "text_config" in spec else {**COMMON, **spec}
    layout = spec.pop("_")
    model = model_of(spec)
    tensors, listed = {}, []
    for key, p in weights_of(model):
        tensors[key] = np.empty(p.shape, np.float32)
        for name_there, shape, part in as_files_have(spec, layout.get("merged"), key, p.shape):
            how = numbers_of(key, shape, spec["tie_word_embeddings"], is_gemma(spec), adds_one(spec, key))
            tensors[key][part] = formula(name_there, shape, *how)
            listed.append([name_there, layout["dtype"], shape, *how])
    set_weights(model, tensors)
    change(model)
    make(name, model, random_cases(seed, text_of(spec)["vocab_size"], layout["lengths"]), 24, config=spec,
         shards=layout.get("shards", 1), tensors=listed, **more)


# ---- GGUF ----

# where a block has its f16 factors, and the ratio of the second to the first at which the mean of the numbers is about
# 0
FACTORS = {"Q4_0": ([0], 0), "Q4_1": ([0, 2], -7.5), "Q5_0": ([0], 0), "Q5_1": ([0, 2], -15.5), "Q8_0": ([0], 0), "Q2_K": ([80, 82], 1.5),
           "Q3_K": ([108], 0), "Q4_K": ([0, 2], 7.5), "Q5_K": ([0, 2], 15.5), "Q6_K": ([208], 0), "IQ4_NL": ([0], 0), "IQ4_XS": ([0], 0)}


def random_blocks(rng, kind, rows, cols, deviation):
    if kind in ("F16", "BF16"):
        return gguf.quants.quantize((rng.standard_normal((rows, cols)) * deviation).astype(np.float32), T[kind])
    numbers, size = gguf.GGML_QUANT_SIZES[T[kind]]
    blocks = rng.integers(0, 256, (rows, cols // numbers, size), dtype=np.uint8)
    places, ratio = FACTORS[kind]
    def put(factor):
        for at, f in zip(places, [factor, factor * ratio]):
            blocks[:, :, at:at + 2] = np.frombuffer(np.float16(f).tobytes(), np.uint8)
        return gguf.quants.dequantize(blocks.reshape(rows, -1), T[kind])
    put(deviation / put(1 / 64).std() / 64)
    return blocks.reshape(rows, -1)


def permuted(weights, heads):
    """Arranges queries and keys of the architecture llama as llama.cpp's converter does."""
    return weights.reshape(heads, 2, weights.shape[0] // heads // 2, *weights.shape[1:]).swapaxes(1, 2).reshape(weights.shape)


def parts_apart(qkv, heads):
    """Arranges GPT-NeoX's as the converter does: all queries, all keys, all values."""
    return qkv.reshape(heads, 3, -1, *qkv.shape[1:]).swapaxes(0, 1).reshape(qkv.shape)


def rearranged(spec, name, weights):
    heads = spec["num_attention_heads"]
    if "query_key_value" in name: return parts_apart(weights, heads)
    if spec["model_type"] not in ZIPPED or not ("q_proj" in name or "k_proj" in name): return weights
    return permuted(weights, spec["num_key_value_heads"] if "k_proj" in name else heads)


def write_keys(writer, spec):
    neox = spec["model_type"] == "gpt_neox"
    heads, hidden = spec["num_attention_heads"], spec["hidden_size"]
    if spec["model_type"] == "gemma4_text": return write_gemma4(writer, spec)
    writer.add_context_length(spec["max_position_embeddings"])
    writer.add_embedding_length(hidden)
    writer.add_block_count(spec["num_hidden_layers"])
    if "intermediate_size" in spec: writer.add_feed_forward_length(spec["intermediate_size"])
    writer.add_head_count(heads)
    if neox:
        writer.add_rope_dimension_count(int(spec["rotary_pct"] * hidden / heads))
        writer.add_parallel_residual(spec["use_parallel_residual"])
        writer.add_layer_norm_eps(spec["layer_norm_eps"])
        return
    writer.add_head_count_kv(spec["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(spec["rms_norm_eps"])
    writer.add_rope_freq_base(spec["rope_theta"] if "rope_theta" in spec else spec["rope_parameters"]["rope_theta"])
    if has_delta(spec): write_delta(writer, spec)
    add = {"embedding_multiplier": writer.add_embedding_scale, "residual_multiplier": writer.add_residual_scale,
           "attention_multiplier": writer.add_attention_scale, "logits_scaling": writer.add_logit_scale,
           "attn_logit_softcapping": writer.add_attn_logit_softcapping, "sliding_window": writer.add_sliding_window,
           "final_logit_softcapping": writer.add_final_logit_softcapping, "num_experts": writer.add_expert_count,
           "num_local_experts": writer.add_expert_count, "num_experts_per_tok": writer.add_expert_used_count,
           "moe_intermediate_size": writer.add_expert_feed_forward_length,
           "shared_expert_intermediate_size": writer.add_expert_shared_feed_forward_length}
    for key in add:
        if spec.get(key) is not None: add[key](spec[key])
    if spec["model_type"] == "olmo3":
        writer.add_sliding_window_pattern([(i + 1) % 4 != 0 for i in range(spec["num_hidden_layers"])])
    if "partial_rotary_factor" in spec:
        writer.add_rope_dimension_count(int(spec["partial_rotary_factor"] * spec["hidden_size"]) // spec["num_attention_heads"])
    if "head_dim" in spec:
        writer.add_key_length(spec["head_dim"])
        writer.add_value_length(spec["head_dim"])
    scaling = spec.get("rope_scaling")
    if scaling and scaling["rope_type"] == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(scaling["factor"])
    if scaling and scaling["rope_type"] == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(scaling["factor"])
        writer.add_rope_scaling_orig_ctx_len(scaling["original_max_position_embeddings"])
        writer.add_rope_scaling_yarn_attn_factor(scaling["attention_factor"])
        writer.add_rope_scaling_yarn_beta_fast(scaling["beta_fast"])
        writer.add_rope_scaling_yarn_beta_slow(scaling["beta_slow"])


def write_delta(writer, spec):
    writer.add_rope_dimension_count(int(spec["head_dim"] * spec["rope_parameters"]["partial_rotary_factor"]))
    writer.add_full_attention_interval(spec["full_attention_interval"])
    writer.add_array(f"{writer.arch}.attention.recurrent_layers", [(i + 1) % spec["full_attention_interval"] != 0 for i in range(spec["num_hidden_layers"])])
    writer.add_ssm_conv_kernel(spec["linear_conv_kernel_dim"])
    writer.add_ssm_state_size(spec["linear_key_head_dim"])
    writer.add_ssm_group_count(spec["linear_num_key_heads"])
    writer.add_ssm_time_step_rank(spec["linear_num_value_heads"])
    writer.add_ssm_inner_size(spec["linear_value_head_dim"] * spec["linear_num_value_heads"])


def write_gemma4(writer, spec):
    """Writes keys as the converter does: sizes of layers without a window have the usual names, those of the others end
    in "swa"."""
    config = model_of(spec).config
    layers, shared = spec["num_hidden_layers"], spec["num_kv_shared_layers"]
    local = [t == "sliding_attention" for t in config.layer_types]
    writer.add_context_length(spec["max_position_embeddings"])
    writer.add_embedding_length(spec["hidden_size"])
    writer.add_block_count(layers)
    wide = [2 if spec.get("use_double_wide_mlp") and i >= layers - shared else 1 for i in range(layers)]
    writer.add_feed_forward_length([n * spec["intermediate_size"] for n in wide] if max(wide) > 1 else spec["intermediate_size"])
    writer.add_head_count(spec["num_attention_heads"])
    few = spec.get("num_global_key_value_heads")
    writer.add_head_count_kv([spec["num_key_value_heads"] if l else few for l in local] if few else spec["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(spec["rms_norm_eps"])
    writer.add_rope_freq_base(spec["rope_parameters"]["full_attention"]["rope_theta"])
    writer.add_float32("gemma4.rope.freq_base_swa", spec["rope_parameters"]["sliding_attention"]["rope_theta"])
    writer.add_sliding_window(spec["sliding_window"])
    writer.add_sliding_window_pattern(local)
    if "final_logit_softcapping" in spec: writer.add_final_logit_softcapping(spec["final_logit_softcapping"])
    for name, n in {"attention.shared_kv_layers": shared, "embedding_length_per_layer_input": spec["hidden_size_per_layer_input"],
                    "attention.key_length": spec["global_head_dim"], "attention.value_length": spec["global_head_dim"],
                    "attention.key_length_swa": spec["head_dim"], "attention.value_length_swa": spec["head_dim"],
                    "rope.dimension_count": spec["global_head_dim"], "rope.dimension_count_swa": spec["head_dim"]}.items():
        writer.add_uint32(f"gemma4.{name}", n)
    turning = int(spec["global_head_dim"] * spec["rope_parameters"]["full_attention"]["partial_rotary_factor"] / 2)
    factors = [1.0] * turning + [1e30] * (spec["global_head_dim"] // 2 - turning)
    writer.add_tensor("rope_freqs.weight", np.array(factors, np.float32))


def write_bytes(writer):
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [b for b in range(256) if b not in printable]  # GPT-2 represents the n-th of them by the character 256 + n
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([chr(b if b in printable else 256 + others.index(b)) for b in range(256)] + ["th", "<end>"])
    writer.add_token_types([gguf.TokenType.NORMAL] * 257 + [gguf.TokenType.CONTROL])
    writer.add_token_merges(["t h"])
    writer.add_eos_token_id(257)


def rope_factors(spec):
    """The factors that the converter writes for llama3."""
    s, dims = spec["rope_scaling"], spec["hidden_size"] // spec["num_attention_heads"]
    low, high = s["original_max_position_embeddings"] / s["low_freq_factor"], s["original_max_position_embeddings"] / s["high_freq_factor"]
    factors = []
    for freq in 1.0 / (spec["rope_theta"] ** (np.arange(0, dims, 2, dtype=np.float32) / dims)):
        wave = 2 * np.pi / freq
        if wave < high: factors.append(1)
        elif wave > low: factors.append(s["factor"])
        else:
            smooth = (s["original_max_position_embeddings"] / wave - s["low_freq_factor"]) / (s["high_freq_factor"] - s["low_freq_factor"])
            factors.append(1 / ((1 - smooth) / s["factor"] + smooth))
    return np.array(factors, np.float32)


def make_file(seed, name, spec, add=lambda writer: None, change=lambda model: None, **more):
    spec = {**COMMON, **spec}
    layout = spec.pop("_")
    arch = {"gpt_neox": "gptneox", "olmo3": "olmo2", "gemma3_text": "gemma3", "gemma4_text": "gemma4", "qwen3_moe": "qwen3moe", "qwen3_5_text": "qwen35", "qwen3_5_moe_text": "qwen35moe", "mixtral": "llama"}.get(spec["model_type"], spec["model_type"])
    names = gguf.get_tensor_name_map(next(a for a, n in gguf.MODEL_ARCH_NAMES.items() if n == arch), spec["num_hidden_layers"])
    rng, model, tensors = np.random.default_rng(seed), model_of(spec), {}
    (OUT / name).mkdir(exist_ok=True)
    writer = gguf.GGUFWriter(OUT / name / "model.gguf", arch)
    write_keys(writer, spec)
    add(writer)
    if layout.get("bytes"): write_bytes(writer)
    if spec.get("rope_scaling", {}).get("rope_type") == "llama3": writer.add_tensor("rope_freqs.weight", rope_factors(spec))
    matrices = 0

    def add_matrix(key, where, shape):
        """Adds a random tensor. Returns its numbers as the model has them."""
        nonlocal matrices
        cols = shape[-1]
        embedding = "embed" in key and not is_head(key)
        deviation = 1 if embedding and not spec["tie_word_embeddings"] else (3 if embedding or is_head(key) else 1.5) / cols ** 0.5
        if is_gemma(spec) and embedding and "per_layer" not in key: deviation /= 8
        routes = ".gate." in key or "shared_expert_gate" in key  # the converter stores these in F32
        kind = "F32+" if routes else layout["types"][matrices % len(layout["types"])]
        matrices += not routes
        rows = int(np.prod(shape[:-1]))
        if kind.endswith("+"):
            kind = kind[:-1]
            x = rearranged(spec, key, (rng.standard_normal((rows, cols)) * deviation).astype(np.float32))
            data = gguf.quants.quantize(np.ascontiguousarray(x), T[kind])
        else:
            data = random_blocks(rng, kind, rows, cols, deviation)
        writer.add_tensor(where, data.reshape(*shape[:-1], -1), raw_dtype=T[kind])
        numbers = gguf.quants.dequantize(data, T[kind]).reshape(shape)
        if "linear_attn" in key: return np.ascontiguousarray(value_heads(spec, key, numbers, True))
        return np.ascontiguousarray(restored(spec["model_type"], key, numbers, spec["num_attention_heads"], spec.get("num_key_value_heads")))

    def place_of(key):
        if key.endswith("dt_bias"): key = key.replace("dt_bias", "dt_proj.bias")
        if key.endswith("A_log"): return names.get_name(key)
        return names.get_name(key, try_suffixes=(".weight", ".bias")) or f"blk.{key.split('.')[2]}.ffn_gate_up_exps"

    for key, p in weights_of(model):
        where = place_of(key)
        if p.ndim == 1:
            x = rng.standard_normal(p.shape).astype(np.float32) * (0.2 if "norm" in key else 0.3) + (1 if "norm" in key and key.endswith("weight") else 0)
            if key.endswith("A_log"): x = x * 3 - 2.5
            if key.endswith("layer_scalar"): where, x = where + ".weight", x * 0.3 + 0.8
            there = value_heads(spec, key, -np.exp(x) if key.endswith("A_log") else x, False) if "linear_attn" in key else rearranged(spec, key, x.astype(np.float32))
            writer.add_tensor(where, there.astype(np.float32))
            tensors[key] = x.astype(np.float32) - (adds_one(spec, key) and "norm" in key)  # the converter adds it
        elif "conv1d" in key:
            tensors[key] = (rng.standard_normal(p.shape) * 0.6).astype(np.float32)
            writer.add_tensor(where, value_heads(spec, key, tensors[key][:, 0], False))
        elif key.endswith("gate_up_proj") and p.ndim == 3 and not layout.get("merged"):
            half = [p.shape[0], p.shape[1] // 2, p.shape[2]]
            parts = [add_matrix(key, place_of(key.replace("gate_up", part)) + ".weight", half) for part in ("gate", "up")]
            tensors[key] = np.concatenate(parts, 1)
        else:
            tensors[key] = add_matrix(key, where + (".weight" if p.ndim == 3 else ""), list(p.shape))
    writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file(), writer.close()
    set_weights(model, tensors)
    change(model)
    make(name, model, random_cases(seed, spec["vocab_size"], layout["lengths"]), 24,
         model=str((OUT / name / "model.gguf").relative_to(ROOT)), **more)


def main(names):
    for seed, (name, spec) in enumerate(FOLDERS.items()):
        if not names or name in names: make_folder(seed, name, spec)
    for seed, (name, spec) in enumerate(FILES.items()):
        if not names or name in names: make_file(seed, name, spec)


if __name__ == "__main__": main(sys.argv[1:])
