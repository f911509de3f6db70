"""Make heads/blocks.json: what block heads (DFlash, JetSpec, DSpark, DFlash2) guess after the nodes of trees, computed in PyTorch (f32)
for tiny random heads of tiny random targets. Run it from anywhere, with torch, transformers, numpy and gguf installed:

    python tests/golden/make_blocks.py

The file has the format of make_heads.py's; some heads are in GGUF files next to it. One pass over a block gives all
guesses: with n the position of the root (the last committed token), the block's rows are the root at n and mask tokens at n + 1, n + 2, ..; a node of depth d
gets the guesses of row d + 1, whatever the tokens between the root and it, and none if the block has no such row. All
rows see keys and values of the committed rows 0 .. n - 1, made from the target's features; before them (a prompt of one
token) the block sees only itself. EAGLE-2's tree is left out where a block has less than the three distances that it
needs.

A DSpark head adds to the logits what the node's token says (markov_head); if it samples from the anchor, row i gives
what follows a node of depth i. A DFlash2 head mixes the block's rows around attention and MLP (attention_conv,
mlp_conv), and of the selector_top_k likeliest ids of a row the pair with the node's token decides
(candidate_selector); no other id is possible.

A layer in which rows see a window of W sees the keys at positions p - W + 1 .. of a row at p. Whether a row sees later
rows of its block: not where `is_causal`, `dflash_config.causal` or JetSpec's `dflash_config.causal_head` says so; if
none of them is written, not in layers whose type is sliding_attention. A window that is seen both ways is no shorter
than the block here, since programs differ on how far forward it reaches.
"""
import json, pathlib
import gguf
import numpy as np
import torch
import transformers
from make_families import formula, model_of, numbers_of, set_weights
import make_heads
from make_heads import LLAMA, NEAR, NEOX, MedusaTree, NearTie, apart, eagle2, next_token, rms, said, streams_of, target

OUT = pathlib.Path(__file__).resolve().parent / "heads/blocks.json"
QWEN3 = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "rms_norm_eps": 1e-06, "max_position_embeddings": 128,
         "eos_token_id": 0, "hidden_act": "silu", "rope_theta": 1000000.0}
HEAD = {"architectures": ["DFlashDraftModel"], "auto_map": {"AutoModel": "dflash.DFlashDraftModel"}, "model_type": "qwen3",
        "attention_bias": False, "attention_dropout": 0.0, "hidden_act": "silu", "max_position_embeddings": 128, "rms_norm_eps": 1e-06,
        "tie_word_embeddings": False, "use_cache": True}
FULL, SLIDING = "full_attention", "sliding_attention"


def qwen3(hidden, heads, kv, head_dim, layers, vocab, tied, inter=48):
    return {**QWEN3, "hidden_size": hidden, "num_attention_heads": heads, "num_key_value_heads": kv, "head_dim": head_dim,
            "num_hidden_layers": layers, "vocab_size": vocab, "intermediate_size": inter, "tie_word_embeddings": tied}


def head(of, layers, heads, kv, head_dim, inter, **more):
    return {**HEAD, "hidden_size": of["hidden_size"], "vocab_size": of["vocab_size"], "num_target_layers": of["num_hidden_layers"],
            "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv, "head_dim": head_dim,
            "intermediate_size": inter, **more}


def exported(spec, drafted):
    """The same in the form of speculators' export: the layers' keys in an object of their own, layers counted by their
    inputs, an embedding and an output of its own, the latter for `drafted` ids."""
    head = {k: v for k, v in spec["head"].items() if k not in ("architectures", "auto_map", "dflash_config", "block_size")}
    below = spec["head"]["dflash_config"]
    return {**spec, "drafted": drafted, "head": {
        "architectures": ["DFlashSpeculator"], "speculators_model_type": "dflash", "transformer_layer_config": head,
        "block_size": spec["head"]["block_size"], "mask_token_id": below["mask_token_id"], "draft_vocab_size": drafted,
        "aux_hidden_state_layer_ids": spec["taps"], "target_hidden_size": None, "sample_from_anchor": False,
        "sliding_window_non_causal": below.get("causal") is False}}


def case(n, right, dtype, of, taps, mask, *sizes, shards=1, dflash={}, **more):
    """right: for each iteration, how many of its tree's tokens are right. dflash: further keys of dflash_config."""
    below = {"mask_token_id": mask, "target_layer_ids": [t - 1 for t in taps], **dflash}
    return {"n": n, "right": right, "dtype": dtype, "target": of, "taps": taps, "shards": shards,
            "head": head(of, *sizes, **more, dflash_config=below)}


def deepspec(spec, rank, **more):
    """The same head in the form of DeepSpec's: everything at the top, a Markov head, guesses from the anchor on."""
    below = spec["head"].pop("dflash_config")
    return {**spec, "head": {**spec["head"], **below, "architectures": ["Qwen3DSparkModel"], "markov_rank": rank,
                             "markov_head_type": "vanilla", "enable_confidence_head": False, **more}}


def dflash2(spec, taps, group, rank, top_k):
    below = {**spec["head"]["dflash_config"], "conv_kernel_size": taps, "conv_group_size": group, "selector_rank": rank,
             "selector_top_k": top_k}
    return {**spec, "head": {**spec["head"], "architectures": ["DFlash2DraftModel"], "dflash_config": below}}


NO_WINDOWS = {"sliding_window": None, "use_sliding_window": False}
CASES = {
    "dflash": case(
        1, (2, 0, 7, 3), "F16", target(40, 5, 1, 8, 97), [2, 4, 5], 96, 3, 4, 2, 20, 56,
        block_size=8, rope_theta=10000.0, rope_scaling=None, layer_types=[FULL] * 3, max_window_layers=3, **NO_WINDOWS),
    "dflash, a block of 16 of a target with tied embeddings": case(
        31, (4, 0, 15, 1, 2), "BF16", qwen3(44, 3, 1, 18, 9, 131, True), [1, 3, 5, 7], 7, 5, 5, 5, 10, 70, shards=2,
        dflash={"block_size": 16}, rope_parameters={"rope_type": "default", "rope_theta": 300000.0}),
    "dflash, a block of 2": case(
        12, (1, 0, 1, 0), "F32", NEOX, [2], 0, 1, 3, 1, 14, 44, block_size=2, rope_theta=70000.0, layer_types=[FULL], **NO_WINDOWS),
    "dflash, windows that are seen both ways": case(
        38, (3, 0, 6, 1), "F16", {**target(60, 3, 3, 7, 89), "tie_word_embeddings": True}, [3, 6], 40, 4, 4, 1, 22, 60,
        block_size=7, rope_theta=20000.0, layer_types=[SLIDING, SLIDING, FULL, SLIDING], sliding_window=8, use_sliding_window=True,
        max_window_layers=4, dflash={"causal": False}),
    "dflash, windows that are seen backward": case(
        29, (2, 0, 7, 1), "BF16", qwen3(52, 4, 2, 14, 6, 79, False), [1, 2, 4], 78, 3, 2, 2, 26, 33,
        block_size=11, rope_theta=1000000.0, layer_types=[SLIDING, SLIDING, FULL], sliding_window=8, use_sliding_window=True),
    "dflash, a window in all layers, by dflash_config": case(
        24, (1, 5, 0, 3), "F32", target(44, 2, 1, 5, 83), [1, 4], 50, 2, 3, 3, 30, 52,
        block_size=7, rope_theta=10000.0, dflash={"use_swa": True, "swa_window_size": 9, "causal": False}),
    "dflash, a stretched rope at the end of its context": case(
        96, (2, 0, 5, 1), "BF16", target(36, 3, 1, 7, 107), [2, 3, 5], 105, 2, 5, 1, 12, 40, block_size=7, rope_theta=30000.0,
        rope_scaling={"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                      "original_max_position_embeddings": 32}, layer_types=[FULL] * 2, **NO_WINDOWS),
    "jetspec": case(
        1, (3, 0, 7, 2), "BF16", target(56, 4, 2, 8, 113), [2, 5, 7], 112, 2, 4, 4, 10, 60,
        block_size=8, rope_theta=1000000.0, rope_scaling=None, layer_types=[FULL] * 2, dflash={"causal_head": True}, **NO_WINDOWS),
    "jetspec, a block of 16 of a target with tied embeddings": case(
        31, (2, 15, 0, 4), "F16", qwen3(36, 2, 2, 10, 8, 71, True), [1, 4, 5, 6], 3, 4, 3, 1, 20, 50,
        block_size=16, rope_parameters={"rope_type": "default", "rope_theta": 50000.0}, is_causal=True),
    "jetspec, windows, of a target with LayerNorm": case(
        35, (1, 0, 6, 2), "F32", NEOX, [1, 2], 99, 2, 4, 2, 18, 44, block_size=7, rope_theta=70000.0,
        layer_types=[SLIDING, FULL], sliding_window=6, use_sliding_window=True, dflash={"causal": True}),
    "dflash, speculators' export": exported(case(
        27, (2, 0, 6, 1), "BF16", target(44, 2, 1, 6, 93), [1, 3, 5], 92, 2, 4, 2, 16, 48, block_size=7, rope_theta=40000.0,
        layer_types=[SLIDING, FULL], sliding_window=8, use_sliding_window=True), 41),
    "dflash, speculators' export, windows that are seen both ways, all ids": exported(case(
        19, (1, 4, 0), "F32", qwen3(36, 3, 1, 14, 5, 77, True), [2, 4], 76, 2, 3, 1, 18, 40, block_size=6, rope_theta=10000.0,
        layer_types=[SLIDING, SLIDING], sliding_window=7, use_sliding_window=True, dflash={"causal": False}), 77),
    "dflash, GGUF": {**case(
        30, (3, 0, 6, 1), "Q8_0", target(64, 4, 2, 8, 73), [2, 4, 5], 72, 2, 4, 2, 16, 64, block_size=8, rope_theta=25000.0),
        "file": "dflash.gguf"},
    "jetspec, GGUF, windows, ids of its own": {**case(
        33, (2, 0, 5, 1), "Q8_0", target(32, 4, 2, 8, 81), [1, 3, 6], 80, 3, 4, 1, 8, 64, block_size=7, rope_theta=50000.0,
        layer_types=[SLIDING, FULL, SLIDING], sliding_window=9, dflash={"causal": True}), "file": "jetspec.gguf", "drafted": 35},
    "dspark, from the anchor": deepspec(case(
        18, (2, 0, 7, 4), "BF16", qwen3(40, 4, 2, 10, 7, 103, False), [2, 4, 5], 102, 2, 4, 2, 12, 52,
        block_size=7, rope_parameters={"rope_type": "default", "rope_theta": 40000.0}), 5),
    "dspark, a block of 16 from the anchor, causal": deepspec(case(
        1, (0, 16, 3), "F32", target(36, 3, 1, 6, 67), [1, 3], 66, 1, 3, 1, 14, 40, block_size=16,
        rope_theta=20000.0, layer_types=[FULL], **NO_WINDOWS), 33, is_causal=True),
    "dspark, speculators' export": (lambda spec: {**spec, "head": {
        **spec["head"], "architectures": ["DSparkSpeculator"], "speculators_model_type": "dspark", "markov_rank": 8}})(exported(case(
            22, (3, 0, 6, 1), "F16", target(44, 2, 1, 6, 93), [1, 3, 5], 92, 2, 4, 2, 16, 48, block_size=7, rope_theta=40000.0,
            layer_types=[FULL, FULL], **NO_WINDOWS), 41)),
    "dspark, GGUF, ids of its own": {**deepspec(case(
        29, (2, 0, 8), "Q8_0", target(64, 4, 2, 8, 85), [2, 4, 5], 84, 2, 4, 2, 16, 64, block_size=8, rope_theta=25000.0), 32),
        "file": "dspark.gguf", "drafted": 39},
    "dflash2": dflash2(case(
        24, (3, 0, 6, 1), "BF16", qwen3(48, 4, 2, 12, 7, 109, True), [2, 4, 5], 108, 2, 4, 2, 12, 56, block_size=7,
        rope_parameters={"rope_type": "default", "rope_theta": 30000.0}, is_causal=False), 2, 16, 6, 16),
    "dflash2, windows, three taps, a block of 16": dflash2(case(
        33, (2, 0, 15), "F32", target(40, 5, 1, 8, 97), [1, 4, 6], 96, 3, 4, 1, 14, 44, block_size=16, rope_theta=60000.0,
        layer_types=[SLIDING, FULL, SLIDING], sliding_window=18, use_sliding_window=True, is_causal=False), 3, 8, 17, 9),
    "dflash2, GGUF": {**dflash2(case(
        21, (2, 0, 7, 1), "Q8_0", target(64, 4, 2, 8, 87), [2, 3, 6], 86, 2, 4, 2, 16, 64, block_size=8, rope_theta=25000.0), 2, 16, 32, 12),
        "file": "dflash2.gguf"},
}
IN_GGUF = {"fc.weight": "fc.weight", "hidden_norm.weight": "enc.output_norm.weight", "norm.weight": "output_norm.weight", "lm_head.weight": "output.weight",
           "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
           "markov_head.markov_w1.weight": "markov_w1.weight", "markov_head.markov_w2.weight": "markov_w2.weight",
           "candidate_selector.predecessor_codebook": "selector_predecessor.weight", "candidate_selector.successor_codebook": "selector_successor.weight",
           "candidate_selector.hidden_projection.weight": "selector_hidden.weight",
           "attention_conv.kernel_projection": "attn_conv_proj", "attention_conv.base_kernel": "attn_conv_base",
           "mlp_conv.kernel_projection": "ffn_conv_proj", "mlp_conv.base_kernel": "ffn_conv_base",
           "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
           "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def is_causal(config):
    """Whether rows of a block see earlier rows only: None if the configuration does not say."""
    if config.get("sliding_window_non_causal"): return False
    below = config.get("dflash_config", {})
    said = [config.get("is_causal"), below.get("causal"), below.get("causal_head")]
    return next((s for s in said if s is not None), None)


def block_size_of(config): return config.get("dflash_config", {}).get("block_size", config.get("block_size"))


def from_anchor(spec):
    """Whether the first row of a block guesses, too."""
    of = spec["head"]
    if "sample_from_anchor" in of: return of["sample_from_anchor"]
    return "markov_rank" in of if "file" in spec else "DSpark" in of["architectures"][0]


class BlockTree(MedusaTree):
    """The guesses after a node depend on its depth and, in some heads, on its token."""
    def __init__(self, head, streams, tokens):
        self.head, self.nodes = head, [(-1, tokens[-1])]
        self.states, self.logits = head.block(streams[:-1], tokens[-1])

    def draft(self, u):
        row = self.depth(u) + self.head.first
        return self.head.after(self.states[row], self.logits[row], self.nodes[u][1]) if row < self.head.size else None


class BlockHead:
    tree = BlockTree

    def __init__(self, spec, target):
        self.spec, self.said = spec, spec["head"]  # said: what the configuration says about blocks
        c = self.said.get("transformer_layer_config", self.said)
        self.c, self.target, self.t, self.listed = c, target, {}, []
        self.ids, self.size = list(range(c["vocab_size"])), block_size_of(self.said)
        self.first, self.rank = 0 if from_anchor(spec) else 1, self.said.get("markov_rank")
        self.two = self.said.get("dflash_config", {})
        if "selector_rank" not in self.two: self.two = None
        self.mask = self.said.get("dflash_config", self.said)["mask_token_id"]
        H, D, heads, kv = c["hidden_size"], c["head_dim"], c["num_attention_heads"], c["num_key_value_heads"]
        shapes = {"fc.weight": [H, len(spec["taps"]) * H], "hidden_norm.weight": [H], "norm.weight": [H]}
        for i in range(c["num_hidden_layers"]):
            for name, shape in {"input_layernorm": [H], "post_attention_layernorm": [H], "self_attn.q_proj": [heads * D, H],
                                "self_attn.k_proj": [kv * D, H], "self_attn.v_proj": [kv * D, H], "self_attn.o_proj": [H, heads * D],
                                "self_attn.q_norm": [D], "self_attn.k_norm": [D], "mlp.gate_proj": [c["intermediate_size"], H],
                                "mlp.up_proj": [c["intermediate_size"], H], "mlp.down_proj": [H, c["intermediate_size"]]}.items():
                shapes[f"layers.{i}.{name}.weight"] = shape
        shapes |= self.shapes_of_two(H, c) if self.two else {}
        if "drafted" in spec:
            if "file" not in spec: shapes["embed_tokens.weight"] = [c["vocab_size"], H]
            shapes["lm_head.weight"] = [spec["drafted"], H]
            self.choose(spec["drafted"], c["vocab_size"])
        if self.rank:
            shapes["markov_head.markov_w1.weight"] = [c["vocab_size"], self.rank]
            shapes["markov_head.markov_w2.weight"] = [len(self.ids), self.rank]
        for name, shape in shapes.items():
            if "file" in spec:
                self.make_for_file(name, shape)
                continue
            a, base, e = (63, 128, 8) if name.endswith("base_kernel") else numbers_of(name, shape, False, False, False)
            if "kernel_projection" in name: e += 2
            how = a, base, e - ("k_norm" in name)  # rows of masks differ in their positions only: attention must be sharp
            self.t[name] = torch.from_numpy(formula(name, shape, *how))
            self.listed.append([name, spec["dtype"], shape, *how])
        self.frequencies = frequencies_of(c)

    def shapes_of_two(self, H, c):
        taps, groups, rank = self.two["conv_kernel_size"], H // self.two["conv_group_size"], self.two["selector_rank"]
        shapes = {"candidate_selector.hidden_projection.weight": [rank, H]}
        for codebook in "predecessor", "successor": shapes[f"candidate_selector.{codebook}_codebook"] = [c["vocab_size"], rank]
        for i in range(c["num_hidden_layers"]):
            for conv in "attention_conv", "mlp_conv":
                shapes[f"layers.{i}.{conv}.base_kernel"] = [2, taps, H]
                shapes[f"layers.{i}.{conv}.kernel_projection.weight"] = [2 * taps * groups, H]
        return shapes

    def choose(self, n, V):
        """Chooses the ids of its output; a GGUF file has them as they are, speculators' export as offsets."""
        if n == V: return
        self.ids = sorted(np.random.default_rng(n).choice(V, n, replace=False).tolist())
        if "file" in self.spec: return self.listed.append(("d2t", np.array(self.ids, np.int64)))
        self.listed.append(["d2t", "I64", [n], [id - i for i, id in enumerate(self.ids)]])
        self.listed.append(["t2d", "BOOL", [V], [int(id in self.ids) for id in range(V)]])

    def make_for_file(self, name, shape):
        """Matrices are rounded, and the rounded numbers are used."""
        x = np.random.default_rng(len(self.t)).standard_normal(shape).astype(np.float32)
        if len(shape) == 1: x = (1 + 0.2 * x) * (2 if "k_norm" in name else 1)
        elif len(shape) == 3: x = 0.5 + 0.2 * x
        else: x *= (3 if "lm_head" in name else 0.4 if "kernel_projection" in name else 1.5) / shape[1] ** 0.5
        Q8_0 = gguf.GGMLQuantizationType.Q8_0
        if len(shape) == 2 and shape[1] % 32 == 0: x = gguf.quants.dequantize(gguf.quants.quantize(x, Q8_0), Q8_0)
        self.t[name] = torch.from_numpy(x)
        parts = name.split(".", 2)
        ends = "" if name.endswith("base_kernel") else ".weight"
        there = IN_GGUF[name] if name in IN_GGUF else f"blk.{parts[1]}.{IN_GGUF[parts[2].removesuffix('.weight')]}{ends}"
        self.listed.append((there, x))

    def write(self):
        c, Q8_0 = self.c, gguf.GGMLQuantizationType.Q8_0
        writer = gguf.GGUFWriter(OUT.parent / self.spec["file"], "dflash")
        writer.add_block_count(c["num_hidden_layers"]), writer.add_context_length(c["max_position_embeddings"])
        writer.add_embedding_length(c["hidden_size"]), writer.add_feed_forward_length(c["intermediate_size"])
        writer.add_head_count(c["num_attention_heads"]), writer.add_head_count_kv(c["num_key_value_heads"])
        writer.add_key_length(c["head_dim"]), writer.add_value_length(c["head_dim"])
        writer.add_layer_norm_rms_eps(c["rms_norm_eps"]), writer.add_rope_freq_base(c["rope_theta"])
        writer.add_uint32("dflash.block_size", self.size), writer.add_array("dflash.target_layers", self.spec["taps"])
        writer.add_uint32("tokenizer.ggml.mask_token_id", self.mask)
        for key in ("conv_kernel_size", "conv_group_size", "selector_rank", "selector_top_k") if self.two else ():
            writer.add_uint32("dflash." + key, self.two[key])
        if is_causal(c): writer.add_bool("dflash.attention.causal", True)
        if "layer_types" in c:
            writer.add_sliding_window(c["sliding_window"])
            writer.add_array("dflash.attention.sliding_window_pattern", [t == SLIDING for t in c["layer_types"]])
        for name, x in self.listed:
            if x.ndim != 2 or x.shape[1] % 32: writer.add_tensor(name, x)
            else: writer.add_tensor(name, gguf.quants.quantize(x, Q8_0), raw_dtype=Q8_0)
        writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file(), writer.close()

    def normed(self, x, name): return rms(x, self.t[name + ".weight"], self.c["rms_norm_eps"])

    def split(self, x, name): return (x @ self.t[name + ".weight"].T).view(len(x), -1, self.c["head_dim"])

    def rotated(self, x, first):
        angle = torch.arange(first, first + len(x), dtype=torch.float64)[:, None] * self.frequencies
        cos, sin = angle.cos().float()[:, None], angle.sin().float()[:, None]
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    def window(self, i):
        c, below = self.c, self.said.get("dflash_config", {})
        types = c.get("layer_types")
        if below.get("use_swa"): return below["swa_window_size"]
        return c["sliding_window"] if types and types[i] == SLIDING else None

    def seen(self, i, n):
        """Returns which of the n + size keys each row of the block sees in layer i."""
        keys, rows = torch.arange(n + self.size), torch.arange(n, n + self.size)[:, None]
        causal, window, types = is_causal(self.said), self.window(i), self.c.get("layer_types")
        if causal is None: causal = bool(types) and types[i] == SLIDING
        mask = torch.ones(self.size, n + self.size, dtype=torch.bool)
        if causal: mask &= keys <= rows
        if window: mask &= keys > rows - window
        return mask

    def after(self, state, logits, token):
        """Returns the logits of what follows a node with this token."""
        if self.rank: return logits + self.t["markov_head.markov_w2.weight"] @ self.t["markov_head.markov_w1.weight"][token]
        if not self.two: return logits
        part = {name: self.t[f"candidate_selector.{name}"] for name in ("hidden_projection.weight", "predecessor_codebook", "successor_codebook")}
        first = sorted(range(len(logits)), key=lambda id: (-float(logits[id]), id))
        k = self.two["selector_top_k"]
        apart(float(logits[first[k - 1]]), float(logits[first[k]]), NEAR)
        gated = part["predecessor_codebook"][token] * (part["hidden_projection.weight"] @ state)
        out = torch.full_like(logits, -torch.inf)
        for id in first[:k]: out[id] = logits[id] + gated @ part["successor_codebook"][id]
        return out

    def mixed(self, x, weights, layer, side):
        """The convolution over the block's rows: each channel of row i adds up channels of rows i, i - 1, .., whose
        factors are a base and what row i says for the channel's group."""
        taps, size = self.two["conv_kernel_size"], self.two["conv_group_size"]
        base, dynamic = self.t[layer + ".base_kernel"][side], weights.view(len(x), 2, taps, -1)[:, side]
        out = torch.zeros_like(x)
        for i in range(len(x)):
            for t in range(min(taps, i + 1)): out[i] += (base[t] + dynamic[i, t].repeat_interleave(size)) * x[i - t]
        return out

    def around(self, x, layer, run):
        """What runs between two convolutions, if the head has them."""
        if not self.two: return run(x)
        weights = x @ self.t[layer + ".kernel_projection.weight"].T
        return self.mixed(run(self.mixed(x, weights, layer, 0)), weights, layer, 1)

    def attended(self, into, context, i, n):
        c, layer = self.c, f"layers.{i}."
        group = c["num_attention_heads"] // c["num_key_value_heads"]
        both = torch.cat([context, into])
        q = self.rotated(self.normed(self.split(into, layer + "self_attn.q_proj"), layer + "self_attn.q_norm"), n)
        k = self.rotated(self.normed(self.split(both, layer + "self_attn.k_proj"), layer + "self_attn.k_norm"), 0)
        v = self.split(both, layer + "self_attn.v_proj")
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        scores = torch.einsum("rhd,khd->hrk", q, k) * c["head_dim"] ** -0.5
        p = torch.softmax(scores.masked_fill(~self.seen(i, n), -torch.inf), -1)
        return torch.einsum("hrk,khd->rhd", p, v).flatten(1) @ self.t[layer + "self_attn.o_proj.weight"].T

    def mlp(self, m, layer):
        gate, up, down = (self.t[f"{layer}mlp.{part}_proj.weight"].T for part in ("gate", "up", "down"))
        return (torch.nn.functional.silu(m @ gate) * (m @ up)) @ down

    def block(self, streams, token):
        """Returns the last states and the logits of the block's rows. streams: for each committed row but the last, what the head reads."""
        c, n = self.c, len(streams)
        features = torch.stack([torch.cat(s) for s in streams]) if n else torch.zeros(0, self.t["fc.weight"].shape[1])
        context = self.normed(features @ self.t["fc.weight"].T, "hidden_norm")
        table = self.t.get("embed_tokens.weight", self.target.get_input_embeddings().weight)
        x = table[[token] + [self.mask] * (self.size - 1)]
        for i in range(c["num_hidden_layers"]):
            layer = f"layers.{i}."
            into = self.normed(x, layer + "input_layernorm")
            x = x + self.around(into, layer + "attention_conv", lambda y: self.attended(y, context, i, n))
            m = self.normed(x, layer + "post_attention_layernorm")
            x = x + self.around(m, layer + "mlp_conv", lambda y: self.mlp(y, layer))
        x = self.normed(x, "norm")
        return x, x @ self.t.get("lm_head.weight", self.target.get_output_embeddings().weight).T


def frequencies_of(c):
    if c.get("rope_scaling"):
        config = transformers.Qwen3Config(**{k: v for k, v in c.items() if k not in ("architectures", "auto_map")})
        return transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS[c["rope_scaling"]["rope_type"]](config, "cpu")[0].double()
    theta = c["rope_theta"] if "rope_theta" in c else c["rope_parameters"]["rope_theta"]
    return theta ** (-torch.arange(0, c["head_dim"], 2, dtype=torch.float64) / c["head_dim"])


# ---- what is expected ----

def iteration(spec, model, head, tokens, rng, right):
    """As make_heads.iteration does it, with wrong tokens next to six of the right ones at most, and with guesses after a
    text of one token."""
    text = list(tokens)
    for _ in range(right + 1): text.append(next_token(streams_of(spec, model, text)[1][-1]))
    truth = text[len(tokens):]
    V = spec["target"]["vocab_size"]
    streams, _ = streams_of(spec, model, tokens)
    tree = BlockTree(head, streams, tokens)
    def wrong(*others): return int(rng.choice([t for t in range(1, V) if t not in others]))
    at = 0
    for d in range(right):
        if d < 6: tree.add(tree.add(at, wrong(truth[d])), wrong())
        at = tree.add(at, truth[d])
    tree.add(at, wrong(truth[right]))
    drafts = [{"node": u, **said(head, tree.draft(u))} for u in range(len(tree.nodes))]
    grown = eagle2(head, streams, tokens) if head.size > 3 else []
    return {"nodes": [[p, t] for p, t in tree.nodes[1:]], "drafts": drafts, "eagle2": grown, "committed": truth}, text


def run(spec, model, head, seed):
    rng = np.random.default_rng(seed)
    prompt = rng.integers(1, spec["target"]["vocab_size"], spec["n"]).tolist()
    tokens, iterations = prompt, []
    for right in spec["right"]:
        one, tokens = iteration(spec, model, head, tokens, rng, right)
        iterations.append(one)
    return prompt, iterations


def pair_of(spec):
    """Returns the target, how golden files list its weights, and the head."""
    tied = spec["target"]["tie_word_embeddings"]
    model, tensors, listed = model_of({**spec["target"]}), {}, []
    for key, p in model.named_parameters():
        shape, how = list(p.shape), numbers_of(key, list(p.shape), tied, False, False)
        tensors[key] = formula(key, shape, *how)
        listed.append([key, "F32", shape, *how])
    set_weights(model, tensors)
    return model, listed, BlockHead(spec, model)


def make(name, spec):
    model, listed, head = pair_of(spec)
    for seed in range(1000):
        try: prompt, iterations = run(spec, model, head, seed)
        except NearTie: continue
        break
    else: raise SystemExit(f"{name}: nothing but near ties")
    print(name, len(prompt), seed)
    if "file" in spec: head.write()
    return {"name": name, "target": {"config": spec["target"], "shards": 1, "tensors": listed},
            **({"file": spec["file"]} if "file" in spec else {"head": {"config": spec["head"], "shards": spec["shards"], "tensors": head.listed}}),
            "read": f"{'dspark' if head.rank else 'dflash2' if head.two else 'jetspec' if is_causal(spec['head']) else 'dflash'}, block of {head.size}, layers {','.join(map(str, spec['taps']))}",
            "prompt": prompt, "iterations": iterations}


if __name__ == "__main__":
    with torch.no_grad(): cases = [make(*case) for case in CASES.items()]
    OUT.write_text("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
