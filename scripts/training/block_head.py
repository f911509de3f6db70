"""A causal block head: one pass guesses several tokens. JetSpec's (DFlash's files with is_causal) guesses the tokens at the distances 1 to
block_size - 1; DSpark's, those at 1 to block_size.

The context: at each position p before the last committed token, g(p) = hidden_norm(fc . the target's features), and in each layer
K(p) = rope(k_norm(Wk g(p)), p) and V(p) = Wv g(p). The block, with n the position of the last committed token: rows (that token, n),
(mask, n + 1), ..., (mask, n + block_size - 1), which are the target's embeddings, through Qwen3's layers. A row sees the context and
the block's rows up to itself; row i guesses the token at n + i, row 0 none. In DSpark, row i guesses the token at n + i + 1, and the
token a at n + i adds W2 . W1[a] to its logits. Here, W1[a] is a matrix times a's embedding, so that W1 also knows rare tokens.

Training. Each conversation of a batch gets the same number of anchors (values of n), at random positions of its answer. The loss is JetSpec's: the
cross-entropy (forward KL) with the target's own distribution at each distance k, after the text's own tokens. Its weight falls as DFlash's
does, as exp(-(k - 1) / fall), where DFlash has fall 4 for blocks of 8, 7 for 16.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F
import head_data
from head_parts import Head, Loss, linear, what_to_learn

DENSITY = 0.5  # anchors per token of an answer


def config_of(common, target, layers, o, mask):
    """common: the keys that all heads of the target have. layers: those whose inputs are read; the file counts outputs."""
    block = {"mask_token_id": mask, "target_layer_ids": [i - 1 for i in layers]}
    common = {"model_type": "qwen3", **common, "num_hidden_layers": o.depth, "num_target_layers": target.config.num_hidden_layers,
              "attention_bias": False, "block_size": o.block, "is_causal": True}
    if not o.markov: return {"architectures": ["DFlashDraftModel"], **common, "dflash_config": {**block, "causal": True}}
    return {"architectures": ["Qwen3DSparkModel"], **common, **block, "markov_rank": o.markov, "markov_head_type": "vanilla",
            "enable_confidence_head": False}


def unused_token(tokenizer, used):
    """A special token that no text contains: it stands for the tokens not known yet."""
    special = [i for i, token in tokenizer.added_tokens_decoder.items() if token.special and i not in used]
    if not special: raise SystemExit("every special token is used: choose a token with --mask")
    return max(special)


class BlockLayer(nn.Module):
    """The modules of a Qwen3 layer under their published names."""

    def __init__(self, c):
        super().__init__()
        H, D, inter = c["hidden_size"], c["head_dim"], c["intermediate_size"]
        q, kv, eps = c["num_attention_heads"] * D, c["num_key_value_heads"] * D, c["rms_norm_eps"]
        self.input_layernorm, self.post_attention_layernorm = nn.RMSNorm(H, eps), nn.RMSNorm(H, eps)
        self.self_attn = nn.ModuleDict({"q_proj": linear(H, q), "k_proj": linear(H, kv), "v_proj": linear(H, kv), "o_proj": linear(q, H),
                                        "q_norm": nn.RMSNorm(D, eps), "k_norm": nn.RMSNorm(D, eps)})
        self.mlp = nn.ModuleDict({"gate_proj": linear(H, inter), "up_proj": linear(H, inter), "down_proj": linear(inter, H)})


class BlockHead(Head):
    def __init__(self, config, target, drafted, dropout, fall):
        super().__init__(config, target, drafted, dropout)
        self.fall, self.rank = fall, config.get("markov_rank")
        self.idle = 0 if self.rank else 1  # rows of a block that guess nothing
        self.mask, self.guesses = config.get("mask_token_id") or config["dflash_config"]["mask_token_id"], config["block_size"] - self.idle
        self.hidden_norm = nn.RMSNorm(config["hidden_size"], self.eps)
        self.layers = nn.ModuleList(BlockLayer(config) for _ in range(config["num_hidden_layers"]))
        if self.rank: self.markov_head = nn.ModuleDict({"markov_w1": linear(config["hidden_size"], self.rank), "markov_w2": linear(self.rank, len(drafted))})
        self.initialize(target)
        if self.rank: nn.init.zeros_(self.markov_head.markov_w2.weight)

    def attention(self, q, keys, values, own_keys, own_values, hidden):
        """q: (conversations, anchors, rows, heads, head_dim); keys, values: (conversations, positions, kv heads, head_dim) of the context;
        own: those of the block, (conversations, anchors, block, kv heads, head_dim); hidden: 0 or -inf, (conversations, anchors, positions).
        The last `rows` rows of each block look."""
        C, A, R, n, D = q.shape
        kv, B, M = self.kv, own_keys.shape[2], keys.shape[1]
        q = q.view(C, A, R, kv, n // kv, D).permute(0, 3, 1, 4, 2, 5)  # (C, kv, A, heads that share keys, R, D)
        shape, flat = q.shape[:-1], q.reshape(C * kv, -1, D).contiguous()
        per_head = lambda x: x.transpose(1, 2).reshape(C * kv, M, D)
        per_block = lambda x: x.permute(0, 3, 1, 2, 4).reshape(-1, B, D)
        scores = (flat @ per_head(keys).transpose(1, 2)).view(*shape, M) + hidden[:, None, :, None, None]
        later = torch.arange(B) > torch.arange(B - R, B)[:, None]
        own = (flat.reshape(C * kv * A, -1, D) @ per_block(own_keys).transpose(1, 2)).view(*shape, B).masked_fill(later, float("-inf"))
        p = torch.cat((scores, own), -1).softmax(-1)
        out = p[..., :M].reshape(C * kv, -1, M) @ per_head(values)
        out = out.view(C * kv * A, -1, D) + p[..., M:].reshape(C * kv * A, -1, B) @ per_block(own_values)
        return out.view(*shape, D).permute(0, 2, 4, 1, 3, 5).reshape(C, A, R, n * D)

    def forward(self, batch):
        """(conversations, anchors, guesses, hidden_size): what `norm` and the output get."""
        c, multiply = self.config, self.multiplier()
        heads = lambda x, n: x.float().unflatten(-1, (n, -1))
        drop = lambda x: self.drop(x).bfloat16()
        g = drop(self.hidden_norm(multiply(self.fc, batch.features / self.scale).float()))
        x = F.embedding(torch.tensor([self.mask]), self.embed).float().expand(*batch.tokens.shape, c["block_size"] - 1, -1)
        x = torch.cat((F.embedding(batch.tokens, self.embed).float()[:, :, None], x), 2)
        for i, layer in enumerate(self.layers):
            a, mlp, skip = layer.self_attn, layer.mlp, self.idle * (i == len(self.layers) - 1)  # the last layer's idle rows give keys and values only
            y = drop(layer.input_layernorm(x))
            keys = lambda x, positions: self.rotated(a.k_norm(heads(multiply(a.k_proj, x), self.kv)), positions).bfloat16()
            values = lambda x: multiply(a.v_proj, x).unflatten(-1, (self.kv, -1))
            q = a.q_norm(heads(multiply(a.q_proj, y[:, :, skip:]), self.n)) * c["head_dim"] ** -0.5
            out = self.attention(self.rotated(q, batch.positions[:, :, skip:]).bfloat16(), keys(g, torch.arange(g.shape[1])), values(g),
                                 keys(y, batch.positions), values(y), batch.hidden)
            x = x[:, :, skip:] + multiply(a.o_proj, out).float()
            y = layer.post_attention_layernorm(x)
            x = x + multiply(mlp.down_proj, F.silu(multiply(mlp.gate_proj, y)) * multiply(mlp.up_proj, y)).float()
        return x

    def to_logits(self, batch):
        """What the matrix of `outputs` turns into logits, a row for each guess."""
        x = self.drop(self.norm(self(batch)).bfloat16()).flatten(0, 2)
        return torch.cat((x, self.multiplier()(self.markov_head.markov_w1, F.embedding(batch.before.flatten(), self.embed))), -1) if self.rank else x

    def outputs(self):
        w = self.lm_head.weight
        return (torch.cat((w, self.markov_head.markov_w2.weight), 1) if self.rank else w).bfloat16()

    def tensors(self):
        t = super().tensors()
        name = "markov_head.markov_w1.weight"
        if self.rank: t[name] = F.linear(self.embed.float(), self.markov_head.markov_w1.weight.detach()).bfloat16()
        return t

    def batch(self, conversations, first, rng):
        """Anchors in the answers; if an answer is short, also in the end of its prompt, but after token `first`."""
        lengths = [len(c["ids"]) - c["answer"] for c in conversations]
        count = max(1, round(DENSITY * sum(lengths) / len(lengths)))
        anchors = []
        for c in conversations:
            n = len(c["ids"])
            start = max(first + 1, min(c["answer"], n - 2 * count))
            anchors.append((start + torch.randint(n - start, (count,), generator=rng)).sort().values)
        return BlockBatch(conversations, anchors, self)

    def loss(self, batch, output, done):
        """The loss and what a report shows of it. done: which part of the training is over."""
        wanted, choice, known = what_to_learn(self, output, batch.last, batch.choice)
        fall = torch.exp(-torch.arange(self.guesses) / self.fall)
        weights = (fall * (known[batch.at] & batch.inside)).flatten()
        loss = Loss.apply(self.to_logits(batch), self.outputs(), wanted, choice, batch.at.flatten(), weights / weights.sum())
        return loss, loss.item(), int(batch.inside.sum())

    def right(self, c):
        """For each distance, whether the guess made at each token of the answer is the target's choice, as far as the answer goes."""
        n, right = len(c["ids"]), [[] for _ in range(self.guesses)]
        for some in torch.arange(c["answer"], n).split(64):
            batch, w = BlockBatch([c], [some], self), self.outputs()
            guesses = torch.cat([self.drafted[F.linear(x, w).argmax(-1)] for x in self.to_logits(batch).split(256)])
            same = guesses.view(len(some), -1) == batch.choice[batch.at[0]]
            for k in range(self.guesses): right[k] += same[batch.inside[0, :, k], k].tolist()
        return right


class BlockBatch:
    """Conversations, padded to the same length, with the same number of anchors each."""

    def __init__(self, conversations, anchors, head):
        ends, anchors, k = torch.tensor([len(c["ids"]) for c in conversations]), torch.stack(anchors), torch.arange(head.config["block_size"])
        M = int(anchors.max())
        self.features = nn.utils.rnn.pad_sequence([c["features"][:M] for c in conversations], batch_first=True)
        M = self.features.shape[1]
        self.tokens = torch.stack([c["ids"][a] for c, a in zip(conversations, anchors)]).long()
        self.positions = anchors[..., None] + k
        self.hidden = torch.zeros(*anchors.shape, M, dtype=torch.bfloat16).masked_fill(torch.arange(M) >= anchors[..., None], float("-inf"))
        # The distribution of token n + i came out after token n + i - 1, which is also the one that adds to its logits.
        self.last, self.choice = torch.cat([c["last"] for c in conversations]), torch.cat([c["choice"] for c in conversations]).long()
        source = self.positions[..., :head.guesses]
        self.inside = source < ends[:, None, None]
        self.at = torch.minimum(source, ends[:, None, None] - 1) + (ends.cumsum(0) - ends)[:, None, None]
        self.before = torch.cat([c["ids"] for c in conversations]).long()[self.at]
