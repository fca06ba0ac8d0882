"""The experts of the engine's `moe` family as a good PyTorch user would write them, in the two usual ways: a loop over the
experts, and tokens sorted by expert for one grouped product. Parameters have the names of our checkpoints."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from shapes import MixtureShape


def operand(x: Tensor) -> Tensor:
    """In autocast's type: autocast knows F.linear, but not products in groups."""
    return x.to(torch.get_autocast_dtype("cpu")) if torch.is_autocast_enabled("cpu") else x


def traced_product(x: Tensor, weight: Tensor, ends: Tensor) -> Tensor:
    return F.grouped_mm(x, weight.transpose(1, 2), offs=ends)


# PyTorch 2.13 multiplies float32 in groups, but traces it for bfloat16 only.
untraced_product = torch.compiler.disable(traced_product)


def grouped_product(x: Tensor, weight: Tensor, ends: Tensor) -> Tensor:
    x, weight = operand(x), operand(weight)
    return (traced_product if x.dtype == torch.bfloat16 else untraced_product)(x, weight, ends)


class Weights(nn.Module):
    """All experts: in [experts, 2 hidden, width], out [experts, width, hidden]."""

    def __init__(self, shape: MixtureShape):
        super().__init__()
        size = (shape.experts, 2 * shape.ffn_width, shape.width)
        self.register_parameter("in", nn.Parameter(torch.randn(size) * 0.02))
        self.out = nn.Parameter(torch.randn(shape.experts, shape.width, shape.ffn_width) * 0.02)


class Experts(nn.Module):
    """y = sum over a token's k experts of p_e FFN_e(x), p = softmax(W_router x). Appends (balance, z) to `beside`:
    E / (rows k) sum over e of counts_e mean(p_e), and mean((log sum exp logits)^2)."""

    def __init__(self, shape: MixtureShape, way: str):
        super().__init__()
        self.count, self.per_token, self.way = shape.experts, shape.experts_per_token, way
        self.router = nn.Linear(shape.width, shape.experts, bias=False)
        self.experts = Weights(shape)

    def forward(self, x: Tensor, beside: list) -> Tensor:
        rows = x.reshape(-1, x.shape[-1])
        logits = self.router(rows)
        shares = logits.softmax(-1)
        weights, chosen = shares.topk(self.per_token)
        counts = torch.zeros(self.count, dtype=torch.long).scatter_add_(0, chosen.flatten(), torch.ones_like(chosen).flatten())
        balance = self.count / chosen.numel() * (counts * shares.mean(0)).sum()
        beside.append((balance, logits.logsumexp(-1).square().mean()))
        run = self.loop if self.way == "loop" else self.grouped
        return run(rows, weights, chosen, counts).view(x.shape)

    def loop(self, x: Tensor, weights: Tensor, chosen: Tensor, counts: Tensor) -> Tensor:
        result = torch.zeros_like(x)
        for expert, (into, out) in enumerate(zip(getattr(self.experts, "in").unbind(), self.experts.out.unbind())):
            row, slot = torch.where(chosen == expert)
            up, gate = F.linear(x[row], into).chunk(2, dim=-1)
            made = F.linear(F.silu(gate) * up, out) * weights[row, slot, None]
            result.index_add_(0, row, made.to(result.dtype))
        return result

    def grouped(self, x: Tensor, weights: Tensor, chosen: Tensor, counts: Tensor) -> Tensor:
        order = chosen.flatten().argsort(stable=True)
        row = order // self.per_token
        ends = counts.cumsum(0).to(torch.int32)
        up, gate = grouped_product(x[row], getattr(self.experts, "in"), ends).chunk(2, dim=-1)
        made = grouped_product(F.silu(gate) * up, self.experts.out, ends)
        made = (made * weights.flatten()[order, None]).to(x.dtype)
        return torch.zeros_like(x).index_add(0, row, made)
