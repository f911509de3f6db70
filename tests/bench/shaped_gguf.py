"""Writes GGUF files with the shapes and types of models that people run, and no data: the files are sparse. They serve to account for the memory of these
models (bench_memory.c), and no text can be generated with them.

    python tests/bench/shaped_gguf.py FOLDER [Q4_K_M IQ4_XS]

The types are those that llama-quantize chooses without an importance matrix: more bits for some value and down matrices, and for the output. Only keys that a
model's shape needs are written.
"""
import pathlib
import struct
import sys

TYPES = {"F32": (0, 1, 4), "Q4_K": (12, 256, 144), "Q5_K": (13, 256, 176), "Q6_K": (14, 256, 210), "IQ4_XS": (23, 256, 136)}  # number, numbers and bytes of a block
ALIGNMENT = 32

# name: architecture, layers, hidden, inter, heads, heads of keys, numbers of a head, vocabulary, context, base of the rotation
MODELS = {
    "Qwen3-8B": ("qwen3", 36, 4096, 12288, 32, 8, 128, 151936, 40960, 1e6),
    "Qwen3-14B": ("qwen3", 40, 5120, 17408, 40, 8, 128, 151936, 40960, 1e6),
    "Qwen3-32B": ("qwen3", 64, 5120, 25600, 64, 8, 128, 151936, 40960, 1e6),
    "Gemma-3-12B": ("gemma3", 48, 3840, 15360, 16, 8, 256, 262208, 131072, 1e6),
    "Gemma-3-27B": ("gemma3", 62, 5376, 21504, 32, 16, 128, 262208, 131072, 1e6),
    "Phi-4": ("phi3", 40, 5120, 17920, 40, 10, 128, 100352, 16384, 250000),
    "Mistral-Small-24B": ("llama", 40, 5120, 32768, 32, 8, 128, 131072, 131072, 1e8),
    "Llama-3.1-8B": ("llama", 32, 4096, 14336, 32, 8, 128, 128256, 131072, 500000),
    "Qwen2.5-14B": ("qwen2", 48, 5120, 13824, 40, 8, 128, 152064, 32768, 1e6),
    "Qwen2.5-Coder-32B": ("qwen2", 64, 5120, 27648, 40, 8, 128, 152064, 32768, 1e6),
    "SmolLM3-3B": ("smollm3", 36, 2048, 11008, 16, 4, 128, 128256, 65536, 5e6),
    "Mistral-7B": ("llama", 32, 4096, 14336, 32, 8, 128, 32768, 32768, 1e6),
}
TIED = {"Gemma-3-12B", "Gemma-3-27B", "SmolLM3-3B"}


def string(text): return struct.pack("<Q", len(text)) + text.encode()
def key(name, value):
    kind, form = (8, None) if isinstance(value, str) else (6, "<f") if isinstance(value, float) else (4, "<I")
    return string(name) + struct.pack("<I", kind) + (string(value) if form is None else struct.pack(form, value))


def tensors(name, quant):
    """Yields the name, rows, columns and type of each tensor."""
    arch, layers, hidden, inter, heads, kv_heads, head, vocab, _, _ = MODELS[name]
    least = "Q4_K" if quant == "Q4_K_M" else "IQ4_XS"
    more = lambda i: i < layers // 8 or i >= 7 * layers // 8 or (i - layers // 8) % 3 == 2
    vector = lambda which, n: (which + ".weight", n, 1, "F32")
    yield "token_embd.weight", vocab, hidden, "Q6_K" if name in TIED else least
    for i in range(layers):
        at = f"blk.{i}."
        down = ("Q6_K" if more(i) else least) if quant == "Q4_K_M" else "Q5_K" if i < layers // 8 else least
        value = ("Q6_K" if more(i) else least) if quant == "Q4_K_M" else "Q5_K" if heads // kv_heads >= 4 else least
        yield vector(at + "attn_norm", hidden)
        yield vector(at + "ffn_norm", hidden)
        if arch == "phi3":
            yield at + "attn_qkv.weight", (heads + 2 * kv_heads) * head, hidden, "Q5_K" if quant == "Q4_K_M" else least
            yield at + "ffn_up.weight", 2 * inter, hidden, least
        else:
            for part, rows, kind in ("q", heads, least), ("k", kv_heads, least), ("v", kv_heads, value):
                yield f"{at}attn_{part}.weight", rows * head, hidden, kind
                if arch == "qwen2": yield f"{at}attn_{part}.bias", rows * head, 1, "F32"
                if arch in ("qwen3", "gemma3") and part != "v": yield vector(f"{at}attn_{part}_norm", head)
            for part in "gate", "up": yield f"{at}ffn_{part}.weight", inter, hidden, least
        if arch == "gemma3":
            for part in "post_attention_norm", "post_ffw_norm": yield vector(at + part, hidden)
        yield at + "attn_output.weight", hidden, heads * head, least
        yield at + "ffn_down.weight", hidden, inter, down
    yield vector("output_norm", hidden)
    if name not in TIED: yield "output.weight", vocab, hidden, "Q6_K"


def write(path, name, quant):
    arch, layers, hidden, inter, heads, kv_heads, head, _, context, base = MODELS[name]
    keys = [key("general.architecture", arch)]
    of = {"block_count": layers, "context_length": context, "embedding_length": hidden, "feed_forward_length": inter, "attention.head_count": heads,
          "attention.head_count_kv": kv_heads, "attention.key_length": head, "attention.value_length": head, "rope.dimension_count": head,
          "rope.freq_base": float(base), "attention.layer_norm_rms_epsilon": 1e-6}
    if arch == "gemma3": of["attention.sliding_window"] = 1024
    keys += [key(f"{arch}.{k}", v) for k, v in of.items()]
    infos, at = [], 0
    for which, rows, cols, kind in tensors(name, quant):
        number, block, size = TYPES[kind]
        shape = (rows,) if cols == 1 else (cols, rows)
        infos.append(string(which) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, number, at))
        at += (rows * cols // block * size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
    header = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(keys)) + b"".join(keys + infos)
    with open(path, "wb") as file:
        file.write(header)
        file.truncate((len(header) + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT + at)


folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for model in MODELS:
    for types in sys.argv[2:] or ["Q4_K_M", "IQ4_XS"]: write(folder / f"{model}-{types}.gguf", model, types)
