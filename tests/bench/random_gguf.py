"""Writes a GGUF file with the types of a Q4_K_M file and random weights, in the shape of Qwen2.5-7B, to measure times
and memory for a size of which no real file is available.

    python tests/bench/random_gguf.py FROM.gguf TO.gguf [--hidden 3584 --inter 18944 --layers 28 --heads 28 --kv-heads 4]
    python tests/bench/random_gguf.py FROM.gguf TO.gguf --experts 128 --chosen 8 --hidden 2048 --inter 768 --layers 48
        --heads 32 --kv-heads 4 --head 128
    python tests/bench/random_gguf.py FROM.gguf TO.gguf --delta-heads 16 --delta-keys 16 --hidden 2048 --inter 6144
        --layers 24 --heads 8 --kv-heads 2 --head 256 [--mtp 1 --vocab 248320]

With --delta-heads it is a Qwen3.5, here in the shape of the 2B, in 8 bits; with --mtp 1 it has an MTP layer, too. With --experts it is a Qwen3-MoE, here in
the shape of Qwen3-30B-A3B; use fewer layers if memory is short. Its rows do not choose experts as those of real
models do, so the time of several rows means little without the number of distinct experts.

Needs numpy and gguf. The tokenizer and other metadata are those of FROM, a qwen2 file. The text has no meaning, so
the file cannot be used to measure the speedup of a draft. Tokens other than plain letters have zeros in the output
matrix and so never occur: llama.cpp's server fails on text that is not UTF-8. As in real Q4_K_M files the output
matrix, half of the value matrices and half of the down projections are Q6_K. Weights have a size that keeps
activations near 1.
"""
import argparse
import numpy as np
from gguf import GGMLQuantizationType as Type, GGUFReader, GGUFValueType, GGUFWriter

BLOCK = 256
SHAPE = {"hidden": 3584, "inter": 18944, "layers": 28, "heads": 28, "kv_heads": 4, "head": 0, "experts": 0, "chosen": 0, "delta_heads": 0, "delta_keys": 16, "mtp": 0, "vocab": 0}
DELTA = 128  # numbers of a head of a delta layer


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source")
    parser.add_argument("out")
    for name, value in SHAPE.items(): parser.add_argument("--" + name.replace("_", "-"), type=int, default=value)
    options = parser.parse_args()
    if options.hidden % BLOCK or options.inter % BLOCK or options.hidden % options.heads: parser.error("hidden and inter must be multiples of 256, and hidden a multiple of heads")
    if not options.head: options.head = options.hidden // options.heads
    return options


def f16(x): return np.frombuffer(np.float16(x).tobytes(), np.uint8)


def blocks(rng, kind, n, size):
    """Returns n blocks of 256 numbers of some `size`. Layouts as in ggml-common.h: Q4_K d, dmin, 12 bytes of scales,
    128 of codes; Q6_K 128 and 64 bytes of codes, 16 scales, d."""
    if kind == Type.Q8_0:  # eight blocks of 32: d and codes
        block = rng.integers(0, 256, (n, 8, 34), np.uint8)
        block[:, :, 0:2] = f16(size / 74)
        return block.reshape(n, 8 * 34)
    if kind == Type.Q4_K:
        block = rng.integers(0, 256, (n, 144), np.uint8)
        block[:, 0:2], block[:, 2:4] = f16(size / 150), f16(size / 20)
        return block
    block = rng.integers(0, 256, (n, 210), np.uint8)
    block[:, 208:210] = f16(size / 1200)
    return block


def main():
    options = parse()
    source, rng = GGUFReader(options.source), np.random.default_rng(1)
    head, kin = options.head, "qwen3moe" if options.experts else "qwen35" if options.delta_heads else "qwen2"
    least = Type.Q8_0 if options.delta_heads else Type.Q4_K
    writer = GGUFWriter(options.out, kin)
    own = {"qwen2.block_count": options.layers + options.mtp, "qwen2.embedding_length": options.hidden, "qwen2.feed_forward_length": options.inter,
           "qwen2.attention.head_count": options.heads, "qwen2.attention.head_count_kv": options.kv_heads, "general.name": "random"}
    for name, field in source.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture": continue
        value, kind = own.get(name, field.contents()), field.types[0]
        writer.add_key_value(name.replace("qwen2.", kin + ".") if name.startswith("qwen2.") else name, value, kind, sub_type=field.types[-1] if kind == GGUFValueType.ARRAY else None)
    if options.experts:
        writer.add_expert_count(options.experts), writer.add_expert_used_count(options.chosen), writer.add_expert_feed_forward_length(options.inter)
        writer.add_key_length(head), writer.add_value_length(head)

    if options.delta_heads:
        writer.add_key_length(head), writer.add_value_length(head), writer.add_rope_dimension_count(head // 4)
        writer.add_rope_dimension_sections([head // 16, head // 16, 0, 0])
        writer.add_full_attention_interval(4), writer.add_ssm_conv_kernel(4), writer.add_ssm_state_size(DELTA)
        writer.add_ssm_group_count(options.delta_keys), writer.add_ssm_time_step_rank(options.delta_heads)
        writer.add_ssm_inner_size(DELTA * options.delta_heads)
        if options.mtp: writer.add_nextn_predict_layers(options.mtp)

    vocab = options.vocab or next(t for t in source.tensors if t.name == "token_embd.weight").shape[1]
    tokens = source.fields["tokenizer.ggml.tokens"].contents()
    plain = np.array([i < len(tokens) and tokens[i].isascii() and tokens[i].isalpha() for i in range(vocab)])
    more = lambda i: i < options.layers // 8 or i >= 7 * options.layers // 8 or (i - options.layers // 8) % 3 == 2  # llama.cpp's choice of Q6_K

    def matrix(name, rows, cols, kind=least, kept=None, experts=None):
        pool = blocks(rng, kind, 4096, cols**-0.5)  # repeated, since generating five thousand million numbers takes minutes
        rows = int(rows) * (experts or 1)
        data = np.resize(pool, (rows * cols // BLOCK, pool.shape[1])).reshape(rows, -1)
        if kept is not None: data[~kept] = 0
        writer.add_tensor(name, data.reshape(experts, rows // experts, -1) if experts else data, raw_dtype=kind)

    def mlp(at, kind):
        tail, experts = ("_exps.weight", options.experts) if options.experts else (".weight", None)
        matrix(at + "ffn_gate" + tail, options.inter, options.hidden, experts=experts)
        matrix(at + "ffn_up" + tail, options.inter, options.hidden, experts=experts)
        matrix(at + "ffn_down" + tail, options.hidden, options.inter, kind, experts=experts)

    def vector(name, n, value): writer.add_tensor(name, np.full(n, value, np.float32))

    matrix("token_embd.weight", vocab, options.hidden)
    for i in range(options.layers + options.mtp):
        at, kind = f"blk.{i}.", least if options.delta_heads else Type.Q6_K if more(i) else Type.Q4_K
        kv = options.kv_heads * head
        vector(at + "attn_norm.weight", options.hidden, 1)
        vector(at + ("post_attention_norm.weight" if options.delta_heads else "ffn_norm.weight"), options.hidden, 1)
        if i >= options.layers:
            matrix(at + "nextn.eh_proj.weight", options.hidden, 2 * options.hidden)
            for part in "enorm", "hnorm", "shared_head_norm": vector(f"{at}nextn.{part}.weight", options.hidden, 1)
        if options.delta_heads and (i + 1) % 4 and i < options.layers:
            values, mixed = options.delta_heads * DELTA, (2 * options.delta_keys + options.delta_heads) * DELTA
            matrix(at + "attn_qkv.weight", mixed, options.hidden), matrix(at + "attn_gate.weight", values, options.hidden)
            for part in "ssm_alpha", "ssm_beta": matrix(f"{at}{part}.weight", options.delta_heads, options.hidden)
            writer.add_tensor(at + "ssm_conv1d.weight", rng.standard_normal((mixed, 4)).astype(np.float32) / 2)
            vector(at + "ssm_a", options.delta_heads, -0.3), vector(at + "ssm_dt.bias", options.delta_heads, 0), vector(at + "ssm_norm.weight", DELTA, 1)
            matrix(at + "ssm_out.weight", options.hidden, values)
            mlp(at, kind)
            continue
        for part, rows in ("q", (2 if options.delta_heads else 1) * options.heads * head), ("k", kv), ("v", kv):
            matrix(f"{at}attn_{part}.weight", rows, options.hidden, kind if part == "v" else least)
            if not options.experts and not options.delta_heads: vector(f"{at}attn_{part}.bias", rows, 0)
            elif part != "v": vector(f"{at}attn_{part}_norm.weight", head, 1)
        matrix(at + "attn_output.weight", options.hidden, options.heads * head)
        if options.experts: writer.add_tensor(at + "ffn_gate_inp.weight", rng.standard_normal((options.experts, options.hidden)).astype(np.float32) * options.hidden**-0.5)
        mlp(at, kind)
    vector("output_norm.weight", options.hidden, 1)
    matrix("output.weight", vocab, options.hidden, least if options.delta_heads else Type.Q6_K, kept=plain)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


main()
