"""Make the logits/ of rotations that depend on the length for which a model is opened (longrope, dynamic), in the way in
which make_families.py makes those of other families. It needs the same packages:

    python tests/golden/make_rotations.py [NAME ...]

golden.json has that length ("context"). transformers decides anew in each pass, by the positions in it. Here its own
function decides once, by the length.
"""
import math, sys
import numpy as np
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from make_families import make_file, make_folder
from make_logits import OUT, ROOT, make, random_cases

SHORT = [1.0, 1.02, 1.05, 1.1, 1.15, 1.2, 1.35, 1.5, 1.6, 1.75, 1.9, 2.0]
LONG = [1.0, 1.1, 1.5, 2.2, 3.1, 4.4, 6.0, 8.5, 12.0, 17.0, 24.0, 33.0]
PHI3 = {
    "_": {"dtype": "F16", "lengths": [2, 60]}, "architectures": ["Phi3ForCausalLM"], "model_type": "phi3", "num_hidden_layers": 3,
    "hidden_size": 96, "num_attention_heads": 3, "num_key_value_heads": 1, "intermediate_size": 62, "vocab_size": 97,
    "rms_norm_eps": 1e-05, "tie_word_embeddings": True, "max_position_embeddings": 256, "original_max_position_embeddings": 48,
    "sliding_window": None, "partial_rotary_factor": 0.75, "rope_theta": 10000.0,
    "rope_scaling": {"type": "longrope", "short_factor": SHORT, "long_factor": LONG}, "eos_token_id": 2, "pad_token_id": 1}
LLAMA = {
    "_": {"dtype": "F16", "lengths": [3, 70]}, "architectures": ["LlamaForCausalLM"], "model_type": "llama",
    "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 80, "vocab_size": 89,
    "rms_norm_eps": 1e-06, "tie_word_embeddings": False, "max_position_embeddings": 48, "rope_theta": 5000.0,
    "rope_scaling": {"rope_type": "dynamic", "factor": 4.0}, "eos_token_id": 2}
FOLDERS = {  # the settings and the length
    "phi3_long": (PHI3, 96),
    "phi3_short": ({**PHI3, "_": {"dtype": "F16", "lengths": [2, 23]},
                    "rope_scaling": {**PHI3["rope_scaling"], "type": "su", "original_max_position_embeddings": 48}}, 48),
    "llama_dynamic": (LLAMA, 144),
    "llama_dynamic_short": ({**LLAMA, "_": {"dtype": "F16", "lengths": [3, 21]}}, 48),
}
FILE = {
    "_": {"types": ["Q8_0+", "F16+"], "lengths": [2, 60], "bytes": True}, "model_type": "phi3", "hidden_size": 64,
    "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 64, "vocab_size": 258, "rms_norm_eps": 1e-05,
    "tie_word_embeddings": True, "max_position_embeddings": 256, "original_max_position_embeddings": 48, "sliding_window": 0,
    "partial_rotary_factor": 0.75, "rope_theta": 10000.0, "pad_token_id": 1,
    "rope_scaling": {"rope_type": "longrope", "short_factor": SHORT, "long_factor": LONG}}


def open_for(context):
    def change(model):
        rotation = model.model.rotary_emb
        config = model.config
        rotation.inv_freq, rotation.attention_scaling = ROPE_INIT_FUNCTIONS[config.rope_parameters["rope_type"]](config, None, seq_len=context)
        rotation.rope_type = "default"  # it no longer looks at the positions
    return change


def write_longrope(writer):
    """Adds what llama.cpp's converter adds for Phi-3. Its older versions did not add the type."""
    trained, most = FILE["original_max_position_embeddings"], FILE["max_position_embeddings"]
    writer.add_rope_scaling_orig_ctx_len(trained)
    writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(most / trained) / math.log(trained)))
    writer.add_tensor("rope_factors_long.weight", np.array(LONG, np.float32))
    writer.add_tensor("rope_factors_short.weight", np.array(SHORT, np.float32))


def make_files():
    """Makes one file, and what transformers computes from it when it is opened for either length."""
    models = []
    make_file(0, "gguf_phi3_long", {**FILE, "sliding_window": None}, write_longrope, lambda model: (open_for(96)(model), models.append(model)), context=96)
    open_for(48)(models[0])
    make("gguf_phi3_short", models[0], random_cases(1, FILE["vocab_size"], [2, 23]), 24,
         model=str((OUT / "gguf_phi3_long/model.gguf").relative_to(ROOT)), context=48)


def main(names):
    for seed, (name, (spec, context)) in enumerate(FOLDERS.items()):
        if not names or name in names: make_folder(seed, name, dict(spec), open_for(context), context=context)
    if not names or "gguf_phi3" in names: make_files()


if __name__ == "__main__": main(sys.argv[1:])
