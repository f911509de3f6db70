"""What the EAGLE-3 head (train_head.py) and the block head (block_head.py) share: weights kept in f32 and multiplied in
bf16, rotary positions, the output over the draft vocabulary, the loss, and the folder that dtrun reads."""
import json, os
import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
import head_data

CHUNK = 512  # rows whose logits exist at the same time


def linear(n_in, n_out): return nn.Linear(n_in, n_out, bias=False)


class Head(nn.Module):
    def __init__(self, config, target, drafted, dropout):
        """drafted: the ids of the draft vocabulary, ascending; dropout: of the inputs of attention and of the output. A subclass adds
        its modules and calls initialize()."""
        super().__init__()
        c = self.config = config
        self.dropout = dropout
        self.drafted, self.embed = drafted, target.get_input_embeddings().weight.detach()
        self.n, self.kv, self.eps = c["num_attention_heads"], c["num_key_value_heads"], c["rms_norm_eps"]
        self.fc, self.norm = linear(3 * target.config.hidden_size, c["hidden_size"]), nn.RMSNorm(c["hidden_size"], self.eps)
        self.lm_head = linear(c["hidden_size"], len(drafted))
        D = c["head_dim"]
        self.register_buffer("inverse", 1.0 / c["rope_theta"] ** (torch.arange(0, D, 2).float() / D), persistent=False)
        self.register_buffer("scale", torch.ones(self.fc.in_features))  # divides the features

    def initialize(self, target):
        """Random matrices; the output starts as the target's, with flatter distributions."""
        for name, p in self.named_parameters():
            small = 0.2 if name.endswith(("o_proj.weight", "down_proj.weight")) else 1.0
            if p.dim() == 2: nn.init.normal_(p, 0, small * p.shape[1] ** -0.5)
        with torch.no_grad():
            self.lm_head.weight.copy_(target.get_output_embeddings().weight[self.drafted])
            self.norm.weight.copy_(0.3 * head_data.final_norm(target).weight)

    @torch.no_grad()
    def start_from(self, folder):
        """Takes the tensors that another head of the same target and draft vocabulary has in the same shape."""
        tensors, own = load_file(folder + "/model.safetensors"), dict(self.named_parameters())
        if not torch.equal(tensors["d2t"], self.tensors()["d2t"]): raise SystemExit(f"{folder}: its draft vocabulary is another one")
        taken = {name if name in own else name.removeprefix("midlayer."): t.float() for name, t in tensors.items()}
        taken = {name: t for name, t in taken.items() if name in own and own[name].shape == t.shape}
        for name, t in taken.items(): own[name].copy_(t * self.scale if name == "fc.weight" else t)
        return sorted(taken)

    def drop(self, x): return F.dropout(x, self.dropout, self.training) if self.dropout else x

    def multiplier(self):
        """A function (module, x) that multiplies in bf16; each weight is rounded once."""
        low = {m: m.weight.bfloat16() for m in self.modules() if isinstance(m, nn.Linear)}
        return lambda m, x: F.linear(x.bfloat16(), low[m])

    def rotated(self, x, positions):
        """x: (..., heads, head_dim); positions: its dimensions before the heads."""
        angles, (a, b) = positions.float()[..., None] * self.inverse, x.chunk(2, -1)
        angles = torch.cat((angles, angles), -1)[..., None, :]
        return x * angles.cos() + torch.cat((-b, a), -1) * angles.sin()

    def tensors(self):
        """The file's tensors: `fc` includes the scale of the features, and d2t is what an id exceeds its row by."""
        t = {name: p.detach() for name, p in self.named_parameters()}
        t["fc.weight"] = t["fc.weight"] / self.scale
        t = {name: p.bfloat16().contiguous() for name, p in t.items()}
        t["d2t"] = self.drafted - torch.arange(len(self.drafted))
        return t

    def save(self, folder):
        os.makedirs(folder, exist_ok=True)
        save_file(self.tensors(), folder + "/model.safetensors.part")
        with open(folder + "/config.json", "w") as f: f.write(json.dumps(self.config, indent=2) + "\n")
        os.replace(folder + "/model.safetensors.part", folder + "/model.safetensors")


class Loss(torch.autograd.Function):
    """The gradient of the weighted cross-entropies of rows x with distributions: row i's is wanted[at[i]]. The value is that of
    the distributions' likeliest tokens, choice, which a report shows. The logits of CHUNK rows exist at the same time."""

    @staticmethod
    def forward(ctx, x, w, wanted, choice, at, weights):
        total, gx, gw = 0.0, torch.empty_like(x), torch.zeros(w.shape)
        for i in range(0, len(x), CHUNK):
            s = slice(i, i + CHUNK)
            p = (x[s] @ w.t()).softmax(-1)
            total -= (p.gather(1, choice[at[s], None])[:, 0].float().clamp(min=1e-9).log() * weights[s]).sum()
            p.sub_(wanted[at[s]]).mul_(weights[s, None].bfloat16())
            gx[s] = p @ w
            gw += p.t() @ x[s]
        ctx.save_for_backward(gx, gw.bfloat16())
        return total

    @staticmethod
    def backward(ctx, grad):
        gx, gw = ctx.saved_tensors
        return gx * grad, gw * grad, None, None, None, None


@torch.no_grad()
def what_to_learn(head, output, last, choice):
    """(rows, draft vocabulary): the target's distribution; its likeliest token; and the rows whose choice is in that vocabulary, as far
    as it is known. output: the drafted rows of the target's output matrix; last: what the final norm put out."""
    index = torch.full((head.config["vocab_size"],), -1).index_copy(0, head.drafted, torch.arange(len(head.drafted)))
    wanted = torch.empty(len(last), len(output), dtype=torch.bfloat16)
    for i in range(0, len(wanted), CHUNK): torch.softmax(F.linear(last[i:i + CHUNK], output), -1, out=wanted[i:i + CHUNK])
    return wanted, wanted.argmax(-1), (choice < 0) | (index[choice] >= 0)
