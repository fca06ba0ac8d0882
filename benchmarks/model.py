"""The language model of the engine (docs/schemes.md, docs/checkpoints.md) as a good PyTorch user would write it: nn.Module
parts, F.rms_norm, F.scaled_dot_product_attention, F.cross_entropy. Schemes `pre` and `siamese`, feed-forward branches
dense or of experts (experts.py). Parameters have the names of our checkpoints, so that one can be loaded and the losses
compared (check_equal.py)."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from experts import Experts
from shapes import MixtureShape, Shape

BALANCE_LOSS, ROUTER_Z_LOSS = 0.01, 0.001  # the defaults of `train`


class RMSNorm(nn.Module):
    def __init__(self, width: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """RoPE, half rotation. x: [batch, tokens, heads, head_dim]; cos, sin: [tokens, 1, head_dim / 2]."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


class Attention(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.heads = shape.heads
        self.qkv = nn.Linear(shape.width, 3 * shape.width, bias=False)
        self.out = nn.Linear(shape.width, shape.width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, width // self.heads).unbind(2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        mixed = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))


class FeedForward(nn.Module):
    """SwiGLU: W_out(silu(gate) * up), (up, gate) = halves of W_in x."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.add_module("in", nn.Linear(shape.width, 2 * shape.ffn_width, bias=False))
        self.out = nn.Linear(shape.ffn_width, shape.width, bias=False)

    def forward(self, x: Tensor, beside: list) -> Tensor:
        up, gate = getattr(self, "in")(x).chunk(2, dim=-1)
        return self.out(F.silu(gate) * up)


def feed_forward(shape: Shape, experts: str) -> nn.Module:
    """Called with its input and a list that takes what experts return beside their output."""
    return Experts(shape, experts) if isinstance(shape, MixtureShape) else FeedForward(shape)


class PreJunction(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.norm = RMSNorm(shape.width, shape.norm_eps)


class PreBlock(nn.Module):
    """h <- h + G(LN(h))"""

    def __init__(self, shape: Shape, block: int, experts: str):
        super().__init__()
        self.attention = Attention(shape)
        self.ffn = feed_forward(shape, experts)
        self.attention_junction = PreJunction(shape)
        self.ffn_junction = PreJunction(shape)

    def forward(self, h: Tensor, cos: Tensor, sin: Tensor, beside: list) -> Tensor:
        h = h + self.attention(self.attention_junction.norm(h), cos, sin)
        return h + self.ffn(self.ffn_junction.norm(h), beside)


class SiameseJunction(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.x_norm = RMSNorm(shape.width, shape.norm_eps)
        self.y_norm = RMSNorm(shape.width, shape.norm_eps)
        self.input_norm = RMSNorm(shape.width, shape.norm_eps)


class SiameseBlock(nn.Module):
    """X <- P(X);  O = G(I(X + Q(Y)));  X <- X + O / c;  Y <- Y + O, with c = sqrt(2 (block + 1))"""

    def __init__(self, shape: Shape, block: int, experts: str):
        super().__init__()
        self.attention = Attention(shape)
        self.ffn = feed_forward(shape, experts)
        self.attention_junction = SiameseJunction(shape)
        self.ffn_junction = SiameseJunction(shape)
        self.divisor = math.sqrt(2 * (block + 1))

    def forward(self, x: Tensor, y: Tensor, cos: Tensor, sin: Tensor, beside: list) -> tuple[Tensor, Tensor]:
        for junction, branch in ((self.attention_junction, "attention"), (self.ffn_junction, "ffn")):
            x = junction.x_norm(x)
            read = junction.input_norm(x + junction.y_norm(y))
            out = self.attention(read, cos, sin) if branch == "attention" else self.ffn(read, beside)
            x, y = x + out / self.divisor, y + out
        return x, y


class Close(nn.Module):
    """pre: LN(h).  siamese: F(P(X) + Q(Y))"""

    def __init__(self, shape: Shape, scheme: str):
        super().__init__()
        if scheme == "siamese":
            self.x_norm = RMSNorm(shape.width, shape.norm_eps)
            self.y_norm = RMSNorm(shape.width, shape.norm_eps)
        self.norm = RMSNorm(shape.width, shape.norm_eps)


class LanguageModel(nn.Module):
    def __init__(self, shape: Shape, scheme: str, experts: str = "grouped"):
        super().__init__()
        self.scheme = scheme
        self.embedding = nn.Embedding(shape.vocab, shape.width)
        block = {"pre": PreBlock, "siamese": SiameseBlock}[scheme]
        self.blocks = nn.ModuleList(block(shape, index, experts) for index in range(shape.blocks))
        self.close = Close(shape, scheme)
        half = shape.width // shape.heads // 2
        frequencies = shape.rope_theta ** (-torch.arange(half, dtype=torch.float64) / half)
        angles = torch.outer(torch.arange(shape.context, dtype=torch.float64), frequencies).unsqueeze(1)
        self.register_buffer("cos", angles.cos().float(), persistent=False)
        self.register_buffer("sin", angles.sin().float(), persistent=False)
        self.apply(self._initialise)

    @staticmethod
    def _initialise(module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)

    def forward(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """tokens, targets: [batch, n] -> mean cross-entropy, in training with the routers' terms; the head is the
        embedding."""
        h, beside = self.embedding(tokens), []
        cos, sin = self.cos[: tokens.shape[1]], self.sin[: tokens.shape[1]]
        if self.scheme == "siamese":
            x, y = h, h
            for block in self.blocks:
                x, y = block(x, y, cos, sin, beside)
            h = self.close.x_norm(x) + self.close.y_norm(y)
        else:
            for block in self.blocks:
                h = block(h, cos, sin, beside)
        logits = F.linear(self.close.norm(h), self.embedding.weight)
        loss = F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))
        if self.training and beside:
            balance, z = (torch.stack(terms).mean() for terms in zip(*beside))
            loss = loss + BALANCE_LOSS * balance + ROUTER_Z_LOSS * z
        return loss


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    """The defaults of `optim`: AdamW, decay on the matrices of linear layers, convolutions and experts only."""
    matrices = [module.weight for module in model.modules() if isinstance(module, nn.Linear)]
    matrices += [parameter for parameter in model.parameters() if parameter.dim() > 2]
    decayed = {id(weight) for weight in matrices}
    rest = [parameter for parameter in model.parameters() if id(parameter) not in decayed]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), eps=1e-8, fused=True)
