"""Make the logits/ of Qwen3.5 with experts, in the way in which make_families.py makes those of other families. It
needs the same packages:

    python tests/golden/make_hybrids.py [NAME ...]
"""
import sys
from make_families import make_file, make_folder

FOLDERS = {
    "qwen35_moe": {
        "_": {"dtype": "F32", "lengths": [1, 150, 300]}, "architectures": ["Qwen3_5MoeForCausalLM"], "model_type": "qwen3_5_moe_text",
        "num_hidden_layers": 5, "hidden_size": 52, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 24,
        "vocab_size": 103, "rms_norm_eps": 1e-06, "tie_word_embeddings": False, "max_position_embeddings": 384, "num_experts": 11,
        "num_experts_per_tok": 4, "moe_intermediate_size": 27, "shared_expert_intermediate_size": 35, "linear_key_head_dim": 16,
        "linear_value_head_dim": 16, "linear_num_key_heads": 2, "linear_num_value_heads": 6, "linear_conv_kernel_dim": 4,
        "full_attention_interval": 4, "attn_output_gate": True,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.25}, "eos_token_id": 3},
    "qwen35_moe_whole": {
        "_": {"dtype": "BF16", "lengths": [2, 102], "merged": True, "shards": 2}, "architectures": ["Qwen3_5MoeForConditionalGeneration"],
        "model_type": "qwen3_5_moe", "tie_word_embeddings": False,
        "vision_config": {"depth": 1, "hidden_size": 16, "num_heads": 1, "intermediate_size": 8, "out_hidden_size": 48},
        "text_config": {
            "model_type": "qwen3_5_moe_text", "num_hidden_layers": 3, "hidden_size": 48, "num_attention_heads": 3, "num_key_value_heads": 1,
            "head_dim": 16, "vocab_size": 83, "max_position_embeddings": 128, "tie_word_embeddings": False, "num_experts": 5,
            "num_experts_per_tok": 1, "moe_intermediate_size": 31, "shared_expert_intermediate_size": 12, "linear_key_head_dim": 32,
            "linear_value_head_dim": 16, "linear_num_key_heads": 1, "linear_num_value_heads": 3, "linear_conv_kernel_dim": 4,
            "eos_token_id": [1, 5], "layer_types": ["linear_attention", "full_attention", "linear_attention"],
            "rope_parameters": {"rope_type": "default", "rope_theta": 50000.0, "partial_rotary_factor": 0.5}}},
}
FILES = {
    "gguf_qwen35moe": {
        "_": {"types": ["Q8_0+", "F16+", "Q4_0+"], "lengths": [3, 140], "bytes": True},
        "model_type": "qwen3_5_moe_text", "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 32, "vocab_size": 258, "rms_norm_eps": 1e-06, "tie_word_embeddings": False, "max_position_embeddings": 1024,
        "num_experts": 9, "num_experts_per_tok": 3, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 64,
        "linear_key_head_dim": 16, "linear_value_head_dim": 32, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
        "linear_conv_kernel_dim": 4, "full_attention_interval": 4,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0, "partial_rotary_factor": 0.25}},
}
FIRST_FOLDER, FIRST_FILE = 31, 16  # their seeds


def main(names):
    for seed, (name, spec) in enumerate(FOLDERS.items(), FIRST_FOLDER):
        if not names or name in names: make_folder(seed, name, spec)
    for seed, (name, spec) in enumerate(FILES.items(), FIRST_FILE):
        if not names or name in names: make_file(seed, name, spec)


if __name__ == "__main__": main(sys.argv[1:])
