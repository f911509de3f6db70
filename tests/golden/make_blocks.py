"""Make heads/blocks.json: what block heads (DFlash, JetSpec) guess after the nodes of trees, computed in PyTorch (f32)
for tiny random heads of tiny random targets. Run it from anywhere, with torch, transformers, numpy and gguf installed:

    python tests/golden/make_blocks.py

The file has the format of make_heads.py's; some heads are in GGUF files next to it. One pass over a block gives all
guesses: with n the position of the root (the last committed token), the block's rows are the root at n and mask tokens at n + 1, n + 2, ..; a node of depth d
gets the guesses of row d + 1, whatever the tokens between the root and it, and none if the block has no such row. All
rows see keys and values of the committed rows 0 .. n - 1, made from the target's features; before them (a prompt of one
token) the block sees only itself. EAGLE-2's tree is left out where a block has less than the three distances that it
needs.

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
from make_heads import LLAMA, NEOX, MedusaTree, NearTie, eagle2, next_token, rms, said, streams_of, target

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
}
IN_GGUF = {"fc.weight": "fc.weight", "hidden_norm.weight": "enc.output_norm.weight", "norm.weight": "output_norm.weight", "lm_head.weight": "output.weight",
           "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
           "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
           "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def is_causal(config):
    """Whether rows of a block see earlier rows only: None if the configuration does not say."""
    if config.get("sliding_window_non_causal"): return False
    below = config.get("dflash_config", {})
    said = [config.get("is_causal"), below.get("causal"), below.get("causal_head")]
    return next((s for s in said if s is not None), None)


def block_size_of(config): return config.get("dflash_config", {}).get("block_size", config.get("block_size"))


class BlockTree(MedusaTree):
    """The guesses after a node depend on its depth."""
    def __init__(self, head, streams, tokens):
        self.head, self.nodes = head, [(-1, tokens[-1])]
        self.logits = head.block(streams[:-1], tokens[-1])

    def draft(self, u):
        row = self.depth(u) + 1
        return self.logits[row] if row < self.head.size else None


class BlockHead:
    tree = BlockTree

    def __init__(self, spec, target):
        self.spec, self.said = spec, spec["head"]  # said: what the configuration says about blocks
        c = self.said.get("transformer_layer_config", self.said)
        self.c, self.target, self.t, self.listed = c, target, {}, []
        self.ids, self.size = list(range(c["vocab_size"])), block_size_of(self.said)
        self.mask = self.said.get("dflash_config", self.said)["mask_token_id"]
        H, D, heads, kv = c["hidden_size"], c["head_dim"], c["num_attention_heads"], c["num_key_value_heads"]
        shapes = {"fc.weight": [H, len(spec["taps"]) * H], "hidden_norm.weight": [H], "norm.weight": [H]}
        for i in range(c["num_hidden_layers"]):
            for name, shape in {"input_layernorm": [H], "post_attention_layernorm": [H], "self_attn.q_proj": [heads * D, H],
                                "self_attn.k_proj": [kv * D, H], "self_attn.v_proj": [kv * D, H], "self_attn.o_proj": [H, heads * D],
                                "self_attn.q_norm": [D], "self_attn.k_norm": [D], "mlp.gate_proj": [c["intermediate_size"], H],
                                "mlp.up_proj": [c["intermediate_size"], H], "mlp.down_proj": [H, c["intermediate_size"]]}.items():
                shapes[f"layers.{i}.{name}.weight"] = shape
        if "drafted" in spec:
            if "file" not in spec: shapes["embed_tokens.weight"] = [c["vocab_size"], H]
            shapes["lm_head.weight"] = [spec["drafted"], H]
            self.choose(spec["drafted"], c["vocab_size"])
        for name, shape in shapes.items():
            if "file" in spec:
                self.make_for_file(name, shape)
                continue
            a, base, e = numbers_of(name, shape, False, False, False)
            how = a, base, e - ("k_norm" in name)  # rows of masks differ in their positions only: attention must be sharp
            self.t[name] = torch.from_numpy(formula(name, shape, *how))
            self.listed.append([name, spec["dtype"], shape, *how])
        self.frequencies = frequencies_of(c)

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
        else: x *= (3 if "lm_head" in name else 1.5) / shape[1] ** 0.5
        Q8_0 = gguf.GGMLQuantizationType.Q8_0
        if len(shape) > 1 and shape[1] % 32 == 0: x = gguf.quants.dequantize(gguf.quants.quantize(x, Q8_0), Q8_0)
        self.t[name] = torch.from_numpy(x)
        parts = name.split(".", 2)
        there = IN_GGUF[name] if name in IN_GGUF else f"blk.{parts[1]}.{IN_GGUF[parts[2].removesuffix('.weight')]}.weight"
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
        if is_causal(c): writer.add_bool("dflash.attention.causal", True)
        if "layer_types" in c:
            writer.add_sliding_window(c["sliding_window"])
            writer.add_array("dflash.attention.sliding_window_pattern", [t == SLIDING for t in c["layer_types"]])
        for name, x in self.listed:
            if x.ndim < 2 or x.shape[1] % 32: writer.add_tensor(name, x)
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

    def block(self, streams, token):
        """Returns the logits of the block's rows. streams: for each committed row but the last, what the head reads."""
        c, n = self.c, len(streams)
        features = torch.stack([torch.cat(s) for s in streams]) if n else torch.zeros(0, self.t["fc.weight"].shape[1])
        context = self.normed(features @ self.t["fc.weight"].T, "hidden_norm")
        table = self.t.get("embed_tokens.weight", self.target.get_input_embeddings().weight)
        x = table[[token] + [self.mask] * (self.size - 1)]
        group = c["num_attention_heads"] // c["num_key_value_heads"]
        for i in range(c["num_hidden_layers"]):
            layer = f"layers.{i}."
            into = self.normed(x, layer + "input_layernorm")
            both = torch.cat([context, into])
            q = self.rotated(self.normed(self.split(into, layer + "self_attn.q_proj"), layer + "self_attn.q_norm"), n)
            k = self.rotated(self.normed(self.split(both, layer + "self_attn.k_proj"), layer + "self_attn.k_norm"), 0)
            v = self.split(both, layer + "self_attn.v_proj")
            k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
            scores = torch.einsum("rhd,khd->hrk", q, k) * c["head_dim"] ** -0.5
            p = torch.softmax(scores.masked_fill(~self.seen(i, n), -torch.inf), -1)
            x = x + torch.einsum("hrk,khd->rhd", p, v).flatten(1) @ self.t[layer + "self_attn.o_proj.weight"].T
            m = self.normed(x, layer + "post_attention_layernorm")
            gate, up, down = (self.t[f"{layer}mlp.{part}_proj.weight"].T for part in ("gate", "up", "down"))
            x = x + (torch.nn.functional.silu(m @ gate) * (m @ up)) @ down
        return self.normed(x, "norm") @ self.t.get("lm_head.weight", self.target.get_output_embeddings().weight).T


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
            "read": f"{'jetspec' if is_causal(spec['head']) else 'dflash'}, block of {head.size}, layers {','.join(map(str, spec['taps']))}",
            "prompt": prompt, "iterations": iterations}


if __name__ == "__main__":
    with torch.no_grad(): cases = [make(*case) for case in CASES.items()]
    OUT.write_text("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
