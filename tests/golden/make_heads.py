"""Make heads/golden.json: what draft heads of every layout guess after the nodes of trees, computed in PyTorch (f32)
from the published descriptions of EAGLE-1 to EAGLE-3 and of Medusa, for tiny random heads of tiny random targets.
Run it from anywhere, with torch, transformers, numpy and gguf installed:

    python tests/golden/make_heads.py

A case has "target" and "head", with config and weights by formula (see make_families.py; integers of d2t and t2d are
written out). Instead of "head" it may have "file", a GGUF file next to golden.json, which the oracle reads with the
gguf package, with its matrices rounded. It also has the "layers" to ask for if the files do not list them, the
prompt, and iterations. An iteration has the tree's nodes as [parent, token] (node 0 is the root, the last committed
token); the head's guesses after each node that is drafted from (ids by falling probability, their log-probabilities
over its vocabulary, and the entropy; nothing if a head has no guess at this depth); the verified nodes of EAGLE-2's
tree (top_k 3, depth 3, total 7) as [parent, token]; and the tokens that plain greedy decoding commits when the given
tree is verified.

The oracle stores nothing between iterations: every row is computed again from the whole text.
"""
import json, math, pathlib
import gguf
import numpy as np
import torch
import transformers
from make_families import formula, model_of, numbers_of, set_weights

OUT = pathlib.Path(__file__).resolve().parent / "heads/golden.json"
KEPT = 32
NEAR = 0.02  # how much a GPU that multiplies in F16 may be off: if less than this decides something, another text is used

LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "rms_norm_eps": 1e-05, "tie_word_embeddings": False,
         "max_position_embeddings": 128, "eos_token_id": 0, "rope_theta": 500000.0, "hidden_act": "silu"}
NEOX = {"architectures": ["GPTNeoXForCausalLM"], "model_type": "gpt_neox", "hidden_size": 36, "num_attention_heads": 3,
        "num_hidden_layers": 3, "intermediate_size": 50, "vocab_size": 101, "hidden_act": "gelu", "rotary_pct": 0.5,
        "use_parallel_residual": True, "tie_word_embeddings": False, "layer_norm_eps": 1e-05, "max_position_embeddings": 128,
        "eos_token_id": 0}


def target(hidden, heads, kv, layers, vocab, inter=48):
    return {**LLAMA, "hidden_size": hidden, "num_attention_heads": heads, "num_key_value_heads": kv, "num_hidden_layers": layers,
            "vocab_size": vocab, "intermediate_size": inter}


HEAD = {"model_type": "llama", "num_hidden_layers": 1, "rms_norm_eps": 1e-06, "hidden_act": "silu", "max_position_embeddings": 96}

# "_": the layout of the head's files: names of the layer, which tensors there are, how d2t is written
CASES = {
    "eagle3, SafeAILab": {
        "target": target(40, 5, 1, 8, 97), "taps": [2, 4, 5], "theta": 10000.0,
        "_": {"layer": "midlayer.", "dtype": "F16", "d2t": "offsets"},
        "head": {**HEAD, "architectures": ["LlamaForCausalLM"], "hidden_size": 40, "num_attention_heads": 5, "num_key_value_heads": 5,
                 "intermediate_size": 56, "vocab_size": 97, "draft_vocab_size": 29}},
    "eagle3, SpecForge": {
        "target": target(48, 4, 2, 9, 131), "taps": [2, 4, 6], "theta": 300000.0,
        "_": {"layer": "midlayer.", "dtype": "BF16", "d2t": "offsets", "t2d": True, "embed": True},
        "head": {**HEAD, "architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 48, "num_attention_heads": 3,
                 "num_key_value_heads": 1, "head_dim": 20, "intermediate_size": 70, "vocab_size": 131, "draft_vocab_size": 60,
                 "rope_theta": 300000.0, "target_model_type": "llama",
                 "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 3, 5], "use_aux_hidden_state": True}}},
    "eagle3, speculators": {
        "target": target(60, 3, 3, 7, 89), "taps": [2, 3, 7], "theta": 20000.0,
        "_": {"layer": "layers.0.", "dtype": "F32", "d2t": "absolute", "embed": True, "input_norm": True, "head_norms": True},
        "norm_residual": True, "norm_output": True,
        "head": {"architectures": ["Eagle3Speculator"], "speculators_model_type": "eagle3", "draft_vocab_size": 30,
                 "target_hidden_size": 60, "norm_before_residual": True, "norm_before_fc": True, "norm_output": True,
                 "eagle_aux_hidden_state_layer_ids": [2, 3, 7],
                 "transformer_layer_config": {**HEAD, "model_type": "qwen3", "hidden_size": 36, "num_attention_heads": 4,
                                              "num_key_value_heads": 2, "head_dim": 10, "intermediate_size": 44, "vocab_size": 89,
                                              "rope_theta": 20000.0}}},
    "eagle3, norms of each stream, the target's output": {
        "target": target(44, 2, 1, 5, 83), "taps": [0, 2, 3, 5], "theta": 10000.0, "layers": "0,2,3,5",
        "_": {"layer": "midlayer.", "dtype": "F32", "fc_norm": True, "fc_bias": True},
        "head": {**HEAD, "architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 44, "num_attention_heads": 2,
                 "num_key_value_heads": 2, "intermediate_size": 33, "vocab_size": 83, "draft_vocab_size": 83, "rope_theta": 10000.0}},
    "eagle3, d2t in no order, t2d settles what it is": {
        "target": target(32, 2, 2, 8, 71), "taps": [1, 4, 8], "theta": 10000.0, "layers": "1,4,8",
        "_": {"layer": "layers.0.", "dtype": "F16", "d2t": "shuffled", "t2d": True},
        "head": {**HEAD, "architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 32, "num_attention_heads": 2,
                 "num_key_value_heads": 1, "intermediate_size": 40, "vocab_size": 71, "draft_vocab_size": 31}},
    "eagle, with bias": {
        "target": target(40, 4, 2, 3, 79), "theta": 10000.0,
        "_": {"dtype": "F16", "embed": True, "fc_bias": True},
        "head": {**HEAD, "architectures": ["LlamaForCausalLM"], "hidden_size": 40, "num_attention_heads": 4, "num_key_value_heads": 2,
                 "intermediate_size": 60, "vocab_size": 79}},
    "eagle, without bias": {
        "target": NEOX, "theta": 70000.0,
        "_": {"dtype": "BF16"},
        "head": {**HEAD, "architectures": ["LlamaForCausalLM"], "hidden_size": 36, "num_attention_heads": 6, "num_key_value_heads": 3,
                 "intermediate_size": 52, "vocab_size": 101, "bias": False, "rope_theta": 70000.0}},
    "eagle3, GGUF": {
        "target": target(32, 4, 2, 8, 73), "taps": [2, 4, 5], "theta": 25000.0,
        "_": {"layer": "midlayer.", "dtype": "Q8_0", "d2t": "absolute", "embed": True, "input_norm": True, "file": "eagle3.gguf"},
        "norm_residual": True,
        "head": {**HEAD, "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
                 "intermediate_size": 64, "vocab_size": 73, "draft_vocab_size": 40, "rope_theta": 25000.0}},
    "medusa": {
        "target": NEOX, "distances": 4, "blocks": 1,
        "_": {"dtype": "F32"},
        "head": {"medusa_num_heads": 2, "medusa_num_layers": 1, "base_model_name_or_path": "lmsys/vicuna-7b-v1.3"}},
    "medusa, a block that is repeated": {
        "target": target(44, 2, 1, 5, 83), "distances": 3, "blocks": 2,
        "_": {"dtype": "BF16"},
        "head": {"medusa_num_heads": 3, "medusa_num_layers": 2}},
    "eagle3, norms of three streams under their older names, a rope of its own": {
        "target": target(40, 4, 2, 6, 91), "taps": [1, 2, 6], "theta": 30000.0, "layers": "1,2,6", "norm_residual": True,
        "_": {"layer": "midlayer.", "dtype": "BF16", "d2t": "absolute", "fc_norm": "older"},
        "head": {**HEAD, "architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 40, "num_attention_heads": 2,
                 "num_key_value_heads": 2, "head_dim": 24, "intermediate_size": 36, "vocab_size": 91, "draft_vocab_size": 47,
                 "rope_theta": 30000.0, "use_aux_norm": True, "norm_before_residual": True,
                 "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                  "original_max_position_embeddings": 32}}},
}


IN_GGUF = {"fc.weight": "fc.weight", "input_norm.weight": "enc.output_norm.weight", "norm.weight": "output_norm.weight",
           "lm_head.weight": "output.weight", "embed_tokens.weight": "token_embd.weight", "input_layernorm.weight": "blk.0.attn_norm.weight",
           "hidden_norm.weight": "blk.0.attn_norm_2.weight", "self_attn.q_proj.weight": "blk.0.attn_q.weight",
           "self_attn.k_proj.weight": "blk.0.attn_k.weight", "self_attn.v_proj.weight": "blk.0.attn_v.weight",
           "self_attn.o_proj.weight": "blk.0.attn_output.weight", "post_attention_layernorm.weight": "blk.0.ffn_norm.weight",
           "mlp.gate_proj.weight": "blk.0.ffn_gate.weight", "mlp.up_proj.weight": "blk.0.ffn_up.weight",
           "mlp.down_proj.weight": "blk.0.ffn_down.weight"}


# ---- the head ----

class NearTie(Exception): pass


def apart(a, b, by):
    if not a - b > by: raise NearTie


def rms(x, weight, eps): return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * weight


def is_third(spec): return "taps" in spec


class Head:
    def __init__(self, spec, target_model):
        self.spec, self.layout = spec, spec["_"]
        self.c = spec["head"].get("transformer_layer_config", spec["head"])
        self.t, self.listed, self.target = {}, [], target_model
        self.third = is_third(spec)
        c, H = self.c, self.c["hidden_size"]
        T, V = spec["target"]["hidden_size"], spec["target"]["vocab_size"]
        self.D = c.get("head_dim", H // c["num_attention_heads"])
        A, G = c["num_attention_heads"] * self.D, c["num_key_value_heads"] * self.D
        self.layer = self.layout.get("layer", "layers.0.")
        wide = 2 * H if self.third else H
        for name, shape in {"self_attn.q_proj.weight": [A, wide], "self_attn.k_proj.weight": [G, wide], "self_attn.v_proj.weight": [G, wide],
                            "self_attn.o_proj.weight": [H, A], "mlp.gate_proj.weight": [c["intermediate_size"], H],
                            "mlp.up_proj.weight": [c["intermediate_size"], H], "mlp.down_proj.weight": [H, c["intermediate_size"]],
                            "post_attention_layernorm.weight": [H]}.items(): self.make(self.layer + name, shape)
        if self.layout.get("head_norms"):
            for name in "qk": self.make(f"{self.layer}self_attn.{name}_norm.weight", [self.D])
        if self.layout.get("fc_bias"): self.make("fc.bias", [H])
        if self.layout.get("embed"): self.make("embed_tokens.weight", [V, H])
        if not self.third:
            self.make("fc.weight", [H, 2 * H])
            self.ids = list(range(V))
            return
        n = len(spec["taps"])
        self.make("fc.weight", [H, n * T])
        for name in ("input_layernorm", "hidden_norm"): self.make(f"{self.layer}{name}.weight", [H])
        self.make("norm.weight", [H])
        if self.layout.get("input_norm"): self.make("input_norm.weight", [n * T])
        if self.layout.get("fc_norm"):
            for i in range(n): self.make(self.stream_norm(i), [T])
        self.ids = self.draft_ids(V, spec["head"]["draft_vocab_size"])
        if "d2t" in self.layout: self.make("lm_head.weight", [len(self.ids), H])

    def stream_norm(self, i):
        return f"aux_norm_{('low', 'mid', 'high')[i]}.weight" if self.layout["fc_norm"] == "older" else f"fc_norm.{i}.weight"

    def make(self, name, shape):
        if "file" in self.layout: return self.make_for_file(name, shape)
        a, base, e = numbers_of(name, shape, False, False, False)
        how = (a, base, e + (not self.third and len(shape) > 1))  # without norms, features would grow from row to row
        self.t[name] = torch.from_numpy(formula(name, shape, *how))
        self.listed.append([name, self.layout["dtype"], shape, *how])

    def make_for_file(self, name, shape):
        """Returns weights as the file has them: matrices are rounded, and the rounded numbers are used; rows of q and k
        are zipped."""
        rng, c = np.random.default_rng(len(self.t)), self.c
        x = rng.standard_normal(shape).astype(np.float32)
        if len(shape) == 1: x = 1 + 0.2 * x
        else: x *= 1 if "embed" in name else (3 if "lm_head" in name else 1.5) / shape[1] ** 0.5
        if len(shape) > 1: x = gguf.quants.dequantize(gguf.quants.quantize(x, gguf.GGMLQuantizationType.Q8_0), gguf.GGMLQuantizationType.Q8_0)
        self.t[name] = torch.from_numpy(x)
        heads = {"q_proj": c["num_attention_heads"], "k_proj": c["num_key_value_heads"]}.get(name.split(".")[-2])
        if heads: x = x.reshape(heads, 2, -1, shape[1]).swapaxes(1, 2).reshape(shape)
        self.listed.append((IN_GGUF[name.removeprefix(self.layer)], np.ascontiguousarray(x)))

    def write(self):
        c, writer = self.c, gguf.GGUFWriter(OUT.parent / self.layout["file"], "eagle3")
        writer.add_block_count(1), writer.add_context_length(c["max_position_embeddings"]), writer.add_embedding_length(c["hidden_size"])
        writer.add_feed_forward_length(c["intermediate_size"]), writer.add_head_count(c["num_attention_heads"])
        writer.add_head_count_kv(c["num_key_value_heads"]), writer.add_key_length(self.D), writer.add_value_length(self.D)
        writer.add_layer_norm_rms_eps(c["rms_norm_eps"]), writer.add_rope_freq_base(c["rope_theta"])
        writer.add_rope_dimension_count(self.D)
        writer.add_array("eagle3.target_layers", self.spec["taps"])
        writer.add_uint32("eagle3.target_hidden_size", self.spec["target"]["hidden_size"])
        writer.add_bool("eagle3.norm_before_residual", True), writer.add_bool("eagle3.norm_before_fc", True)
        for name, x in self.listed:
            if x.ndim < 2: writer.add_tensor(name, x)
            else: writer.add_tensor(name, gguf.quants.quantize(x, gguf.GGMLQuantizationType.Q8_0), raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        writer.write_header_to_file(), writer.write_kv_data_to_file(), writer.write_tensors_to_file(), writer.close()

    def integers(self, name, dtype, values):
        if "file" in self.layout: return self.listed.append((name, np.array(values, np.int64)))
        self.listed.append([name, dtype, [len(values)], [int(v) for v in values]])

    def draft_ids(self, V, n):
        how = self.layout.get("d2t")
        if not how: return list(range(V))
        rng = np.random.default_rng(n)
        ids = sorted(rng.choice(V, n, replace=False).tolist())
        if how == "shuffled": rng.shuffle(ids)
        self.integers("d2t", "I64", ids if how == "absolute" else [id - i for i, id in enumerate(ids)])
        if self.layout.get("t2d"): self.integers("t2d", "BOOL", [id in ids for id in range(V)])
        return [int(i) for i in ids]

    def embedding(self, token):
        table = self.t["embed_tokens.weight"] if "embed_tokens.weight" in self.t else self.target.get_input_embeddings().weight
        return table[token]

    def rotated(self, x, position):
        inv = 1.0 / (self.spec["theta"] ** (torch.arange(0, self.D, 2, dtype=torch.float64) / self.D))
        if "rope_scaling" in self.c: inv = self.stretched()
        angle = position * inv
        cos, sin = torch.cat([angle.cos()] * 2).float(), torch.cat([angle.sin()] * 2).float()
        half = self.D // 2
        return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin

    def stretched(self):
        config = transformers.LlamaConfig(**{k: v for k, v in self.c.items() if k != "architectures"})
        return transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS["llama3"](config, "cpu")[0].double()

    def heads(self, x, which, count):
        y = (self.t[f"{self.layer}self_attn.{which}_proj.weight"] @ x).view(count, self.D)
        norm = f"{self.layer}self_attn.{which}_norm.weight"
        return rms(y, self.t[norm], self.c["rms_norm_eps"]) if norm in self.t else y

    def from_target(self, streams):
        """Combines the target's streams of a row in the way in which the head continues with them."""
        if not self.third: return streams[0]
        eps = self.c["rms_norm_eps"]
        if self.layout.get("fc_norm"): streams = [rms(s, self.t[self.stream_norm(i)], eps) for i, s in enumerate(streams)]
        f = torch.cat(streams)
        if self.layout.get("input_norm"): f = rms(f, self.t["input_norm.weight"], eps)
        return self.t["fc.weight"] @ f + self.t.get("fc.bias", 0)

    def row(self, f, token, position, keys):
        """keys: [(k, v)] of the rows that it sees. Returns its feature, its logits and its own (k, v)."""
        eps, layer, t = self.c["rms_norm_eps"], self.layer, self.t
        if self.third:
            e = rms(self.embedding(token), t[layer + "input_layernorm.weight"], eps)
            g = rms(f, t[layer + "hidden_norm.weight"], eps)
            x, into = (g if self.spec.get("norm_residual") else f), torch.cat([e, g])
        else:
            x = t["fc.weight"] @ torch.cat([self.embedding(token), f]) + t.get("fc.bias", 0)
            into = x
        q = self.rotated(self.heads(into, "q", self.c["num_attention_heads"]), position)
        k = self.rotated(self.heads(into, "k", self.c["num_key_value_heads"]), position)
        v = (t[layer + "self_attn.v_proj.weight"] @ into).view(-1, self.D)
        seen = keys + [(k, v)]
        group = self.c["num_attention_heads"] // self.c["num_key_value_heads"]
        K = torch.stack([s[0] for s in seen]).repeat_interleave(group, 1)
        W = torch.stack([s[1] for s in seen]).repeat_interleave(group, 1)
        p = torch.softmax(torch.einsum("hd,nhd->hn", q, K) * self.D ** -0.5, -1)
        x = x + t[layer + "self_attn.o_proj.weight"] @ torch.einsum("hn,nhd->hd", p, W).reshape(-1)
        n = rms(x, t[layer + "post_attention_layernorm.weight"], eps)
        x = x + t[layer + "mlp.down_proj.weight"] @ (torch.nn.functional.silu(t[layer + "mlp.gate_proj.weight"] @ n) * (t[layer + "mlp.up_proj.weight"] @ n))
        normed = rms(x, t["norm.weight"], eps) if self.third else x
        output = t["lm_head.weight"] if "lm_head.weight" in t else self.target.get_output_embeddings().weight
        return (normed if self.spec.get("norm_output") else x), output @ normed, (k, v)


class Medusa:
    """The guesses of one feature, a list for each distance."""
    def __init__(self, spec):
        self.spec, self.t, self.listed = spec, {}, []
        H, V = spec["target"]["hidden_size"], spec["target"]["vocab_size"]
        self.ids = list(range(V))
        for d in range(spec["distances"]):
            for name, shape in {f"{d}.0.linear.weight": [H, H], f"{d}.0.linear.bias": [H], f"{d}.{spec['blocks']}.weight": [V, H]}.items():
                a, base, e = numbers_of(name, shape, False, False, False)
                self.t[name] = torch.from_numpy(formula(name, shape, a, base, e))
                self.listed.append([name, spec["_"]["dtype"], shape, a, base, e])

    def guess(self, feature, distance):
        h = feature
        for _ in range(self.spec["blocks"]):
            h = h + torch.nn.functional.silu(self.t[f"{distance}.0.linear.weight"] @ h + self.t[f"{distance}.0.linear.bias"])
        return self.t[f"{distance}.{self.spec['blocks']}.weight"] @ h


# ---- the target ----

def streams_of(spec, model, tokens):
    """Returns, for each row of the text, the streams that the head reads, and the logits."""
    body = model.gpt_neox if spec["target"]["model_type"] == "gpt_neox" else model.model
    entering, last = {}, {}
    hooks = [layer.register_forward_pre_hook(lambda m, a, k, i=i: entering.__setitem__(i, (a[0] if a else k["hidden_states"])[0].clone()), with_kwargs=True)
             for i, layer in enumerate(body.layers)]
    norm = body.final_layer_norm if spec["target"]["model_type"] == "gpt_neox" else body.norm
    def behind(module, args, out): entering[len(body.layers)], last[0] = args[0][0].clone(), out[0].clone()
    hooks.append(norm.register_forward_hook(behind))
    logits = model(torch.tensor([tokens])).logits[0]
    for h in hooks: h.remove()
    taps = [entering[i] for i in spec["taps"]] if is_third(spec) else [last[0]]
    return [[s[i] for s in taps] for i in range(len(tokens))], logits


def next_token(logits):
    best = torch.topk(logits, 2).values
    apart(best[0], best[1], 2 * NEAR)
    return int(logits.argmax())


# ---- what is expected ----

def said(head, logits):
    if logits is None: return {"ids": [], "logp": [], "entropy": 0}
    logp = torch.log_softmax(logits.double(), -1)
    order = sorted((j for j in range(len(head.ids)) if logits[j] > -torch.inf), key=lambda j: (-float(logits[j]), head.ids[j]))[:KEPT]
    return {"ids": [head.ids[j] for j in order], "logp": [round(float(logp[j]), 5) for j in order],
            "entropy": round(float(-(logp.exp() * logp).nansum()), 5)}


class Tree:
    """Nodes after a text, with the head's row for each that is drafted from."""
    def __init__(self, head, streams, tokens):
        self.head, self.nodes, self.rows = head, [(-1, tokens[-1])], {}
        self.n, self.keys = len(tokens), []
        for i in range(self.n - 1):
            x, logits, kv = head.row(head.from_target(streams[i]), tokens[i + 1], i, self.keys)
            self.keys = self.keys + [kv]
        if self.n > 1: self.rows[0] = (x, logits, self.keys)

    def depth(self, u): return 0 if u == 0 else 1 + self.depth(self.nodes[u][0])

    def draft(self, u):
        if u in self.rows: return self.rows[u][1]
        parent, token = self.nodes[u]
        self.draft(parent)
        f, _, keys = self.rows[parent]
        x, logits, kv = self.head.row(f, token, self.n - 2 + self.depth(u), keys)
        self.rows[u] = (x, logits, keys + [kv])
        return logits

    def add(self, parent, token):
        self.nodes.append((parent, int(token)))
        return len(self.nodes) - 1


class MedusaTree(Tree):
    """The guesses after a node depend on its depth."""
    def __init__(self, head, streams, tokens):
        self.head, self.nodes = head, [(-1, tokens[-1])]
        self.feature = streams[len(tokens) - 2][0]

    def draft(self, u):
        distance = self.depth(u)
        return self.head.guess(self.feature, distance) if distance < self.head.spec["distances"] else None


def tree_over(head, streams, tokens): return head.tree(head, streams, tokens)


Head.tree, Medusa.tree = Tree, MedusaTree


def eagle2(head, streams, tokens, top_k=3, depth=3, total=7):
    tree, scores, frontier = tree_over(head, streams, tokens), [0.0], [0]
    for _ in range(depth):
        new = []
        for u in frontier:
            s = said(head, tree.draft(u))
            for id, logp in list(zip(s["ids"], torch.log_softmax(tree.draft(u).double(), -1).sort(descending=True).values.tolist()))[:top_k]:
                new.append(tree.add(u, id))
                scores.append(scores[u] + logp)
        frontier = sorted(sorted(new, key=lambda v: (-scores[v], v))[:top_k])
        close = sorted((scores[v] for v in new), reverse=True)
        if len(close) > top_k: apart(close[top_k - 1], close[top_k], NEAR)
    best = sorted(range(1, len(tree.nodes)), key=lambda v: (-scores[v], v))
    apart(scores[best[total - 1]], scores[best[total]], NEAR)
    kept = sorted(best[:total])
    number = {0: 0, **{v: i + 1 for i, v in enumerate(kept)}}
    return [[number[tree.nodes[v][0]], tree.nodes[v][1]] for v in kept]


def iteration(spec, model, head, tokens, rng, right):
    """Makes a tree that has `right` of the next tokens, and wrong tokens next to and below them. Also returns what is
    committed then."""
    text = list(tokens)
    for _ in range(right + 1): text.append(next_token(streams_of(spec, model, text)[1][-1]))
    truth = text[len(tokens):]
    V = spec["target"]["vocab_size"]
    streams, _ = streams_of(spec, model, tokens)
    tree = tree_over(head, streams, tokens)
    def wrong(*others): return int(rng.choice([t for t in range(1, V) if t not in others]))
    at = 0
    for d in range(right):
        beside = tree.add(at, wrong(truth[d]))
        tree.add(beside, wrong())
        at = tree.add(at, truth[d])
    tree.add(at, wrong(truth[right]))
    drafts = [{"node": u, **said(head, tree.draft(u))} for u in range(len(tree.nodes))] if len(tokens) > 1 else []
    grown = eagle2(head, streams, tokens) if len(tokens) > 1 else []
    return {"nodes": [[p, t] for p, t in tree.nodes[1:]], "drafts": drafts, "eagle2": grown, "committed": truth}, text


def run(spec, model, head, seed, n):
    rng = np.random.default_rng(seed)
    prompt = rng.integers(1, spec["target"]["vocab_size"], n).tolist()
    tokens, iterations = prompt, []
    for right in (2, 0, 3, 1):
        one, tokens = iteration(spec, model, head, tokens, rng, right)
        iterations.append(one)
    return prompt, iterations


def make(place, name, spec):
    config, tensors, listed = {**spec["target"]}, {}, []
    model = model_of(config)
    for key, p in model.named_parameters():
        shape, how = list(p.shape), numbers_of(key, list(p.shape), False, False, False)
        tensors[key] = formula(key, shape, *how)
        listed.append([key, "F32", shape, *how])
    set_weights(model, tensors)
    head = Medusa(spec) if "distances" in spec else Head(spec, model)
    for seed in range(100):
        try: prompt, iterations = run(spec, model, head, seed, 1 if place == 0 else min(3 + 5 * place, 48))
        except NearTie: continue
        break
    print(name, len(prompt), seed)
    if "file" in spec["_"]: head.write()
    case = {"name": name, "target": {"config": config, "shards": 1, "tensors": listed},
            **({"file": spec["_"]["file"]} if "file" in spec["_"] else {"head": {"config": spec["head"], "shards": 1, "tensors": head.listed}}),
            "read": "eagle3, layers " + ",".join(map(str, spec["taps"])) if is_third(spec) else
                    ("medusa" if "distances" in spec else "eagle") + ", final norm", "prompt": prompt, "iterations": iterations}
    return {**case, "layers": spec["layers"]} if "layers" in spec else case


if __name__ == "__main__":
    with torch.no_grad():
        cases = [make(place, *case) for place, case in enumerate(CASES.items())]
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
