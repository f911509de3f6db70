"""Writes a block head (DFlash's layout) with random weights in bf16, to measure the time of its passes in shapes of which
no file is available. Its guesses are worthless.

    python tests/bench/random_block_head.py OUT --hidden 2560 --inter 9728 --heads 32 --kv-heads 8 --head 128 --vocab 151936
        --target-layers 36 [--layers 5] [--taps 5] [--block 16]

The default is the shape of z-lab's head for Qwen3-4B; for Llama-3.1-8B: --hidden 4096 --inter 14336 --vocab 128256
--target-layers 32. Needs numpy.
"""
import argparse
import json
import pathlib
import struct
import numpy as np

SHAPE = {"hidden": 2560, "inter": 9728, "heads": 32, "kv_heads": 8, "head": 128, "vocab": 151936, "target_layers": 36, "layers": 5, "taps": 5, "block": 16}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    for name, value in SHAPE.items(): parser.add_argument("--" + name.replace("_", "-"), type=int, default=value)
    o = parser.parse_args()
    H, A, G = o.hidden, o.heads * o.head, o.kv_heads * o.head
    shapes = {"fc.weight": (H, o.taps * H), "hidden_norm.weight": (H,), "norm.weight": (H,)}
    for i in range(o.layers):
        at = f"layers.{i}."
        for name, rows, cols in (("self_attn.q_proj", A, H), ("self_attn.k_proj", G, H), ("self_attn.v_proj", G, H), ("self_attn.o_proj", H, A),
                                 ("mlp.gate_proj", o.inter, H), ("mlp.up_proj", o.inter, H), ("mlp.down_proj", H, o.inter)):
            shapes[f"{at}{name}.weight"] = (rows, cols)
        for name, n in (("input_layernorm", H), ("post_attention_layernorm", H), ("self_attn.q_norm", o.head), ("self_attn.k_norm", o.head)):
            shapes[f"{at}{name}.weight"] = (n,)
    o.out.mkdir(parents=True, exist_ok=True)
    taps = [1 + i * (o.target_layers - 4) // max(o.taps - 1, 1) for i in range(o.taps)]
    config = {"architectures": ["DFlashDraftModel"], "model_type": "qwen3", "hidden_size": H, "intermediate_size": o.inter, "num_attention_heads": o.heads,
              "num_key_value_heads": o.kv_heads, "head_dim": o.head, "num_hidden_layers": o.layers, "num_target_layers": o.target_layers, "vocab_size": o.vocab,
              "rms_norm_eps": 1e-6, "rope_theta": 1e6, "max_position_embeddings": 40960, "hidden_act": "silu", "attention_bias": False, "tie_word_embeddings": False,
              "block_size": o.block, "dflash_config": {"mask_token_id": o.vocab - 1, "target_layer_ids": taps}}
    (o.out / "config.json").write_text(json.dumps(config, indent=1))
    header, at = {}, 0
    for name, shape in shapes.items():
        size = 2 * int(np.prod(shape))
        header[name], at = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}, at + size
    head = json.dumps(header).encode()
    rng = np.random.default_rng(1)
    with open(o.out / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(head)) + head)
        for shape in shapes.values():  # bf16: the upper halves of f32
            pool = np.ones(1, np.float32) if len(shape) == 1 else (rng.standard_normal(65536) * shape[1] ** -0.5).astype(np.float32)
            file.write(np.resize((pool.view(np.uint32) >> 16).astype(np.uint16), int(np.prod(shape))).tobytes())


main()
