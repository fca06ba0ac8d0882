"""What the models here share, written from the equations and without fused functions: norms, RoPE, attention, and the
recorder of what passes through a sublayer."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn


class RMSNorm(nn.Module):
    """x / sqrt(mean(x^2) + eps) * weight"""

    def __init__(self, width: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return x / torch.sqrt((x * x).mean(-1, keepdim=True) + self.eps) * self.weight


class LayerNorm(nn.Module):
    """(x - mean) / sqrt(variance + eps) * weight + bias; without the last two when not affine."""

    def __init__(self, width: int, eps: float, affine: bool = True):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width)) if affine else 1.0
        self.bias = nn.Parameter(torch.empty(width)) if affine else 0.0
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return centred / torch.sqrt((centred * centred).mean(-1, keepdim=True) + self.eps) * self.weight + self.bias


@dataclass(frozen=True)
class RopeScaling:
    """Frequencies for a longer context: `llama3` or `yarn`, the factor and the first context."""

    kind: str
    factor: float
    context: int

    def text(self) -> str:
        return f"{self.kind}(factor={self.factor}, context={self.context})"

    def llama3(self, frequency: float) -> float:
        """Kept where it turns more than 4 times in the first context, divided by the factor below 1, between in between."""
        turns = self.context * frequency / (2 * math.pi)
        kept = min(max((turns - 1) / (4 - 1), 0), 1)
        return kept * frequency + (1 - kept) * frequency / self.factor

    def yarn(self, j: int, hd: int, theta: float) -> float:
        """Divided by the factor along a ramp between the frequencies that turn 32 times and once."""
        low, high = (
            hd * math.log(self.context / (turns * 2 * math.pi)) / (2 * math.log(theta)) for turns in (32, 1)
        )
        low, high = max(math.floor(low), 0), min(math.ceil(high), hd - 1)
        ramp = min(max((j - low) / max(high - low, 0.001), 0), 1)
        frequency = theta ** (-2 * j / hd)
        return frequency * (1 - ramp) + frequency / self.factor * ramp


def angles(x: Tensor, theta: float, scaling: RopeScaling | None) -> tuple[Tensor, Tensor]:
    """cos and sin of position * frequency, [tokens, hd / 2]; yarn makes both larger."""
    tokens, hd = x.shape[-2:]
    plain = [theta ** (-2 * j / hd) for j in range(hd // 2)]
    magnitude = 1.0
    if scaling is not None and scaling.kind == "llama3":
        plain = [scaling.llama3(frequency) for frequency in plain]
    if scaling is not None and scaling.kind == "yarn":
        plain = [scaling.yarn(j, hd, theta) for j in range(hd // 2)]
        magnitude = 0.1 * math.log(scaling.factor) + 1
    angle = torch.arange(tokens, dtype=x.dtype)[:, None] * torch.tensor(plain, dtype=x.dtype)
    return magnitude * angle.cos(), magnitude * angle.sin()


def rope(x: Tensor, theta: float, scaling: RopeScaling | None = None) -> Tensor:
    """Pair j of a head is entries j and j + hd/2, turned by position * theta^(-2j/hd). x: [batch, heads, tokens, hd]"""
    cos, sin = angles(x, theta, scaling)
    hd = x.shape[-1]
    a, b = x[..., : hd // 2], x[..., hd // 2 :]
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def neighbour_rope(x: Tensor, theta: float) -> Tensor:
    """The same, but pair j is entries 2j and 2j + 1."""
    cos, sin = angles(x, theta, None)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)


def split_heads(x: Tensor, heads: int) -> Tensor:
    """[batch, tokens, heads * hd] -> [batch, heads, tokens, hd]"""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def attend(q: Tensor, k: Tensor, v: Tensor, causal: bool, window: int = 0) -> Tensor:
    """softmax(q k^T / sqrt(hd)) v; query head j has key/value head floor(j KV / H). -> [batch, tokens, heads * hd]

    window: a token sees itself and so many - 1 before it; 0: all."""
    heads, kv_heads = q.shape[1], k.shape[1]
    of_query = torch.arange(heads) * kv_heads // heads
    scores = q @ k[:, of_query].transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        tokens = q.shape[-2]
        ago = torch.arange(tokens)[:, None] - torch.arange(tokens)
        scores = scores.masked_fill((ago < 0) | (ago >= (window or tokens)), -math.inf)
    return (scores.softmax(-1) @ v[:, of_query]).transpose(1, 2).flatten(2)


def silu(x: Tensor) -> Tensor:
    return x / (1 + torch.exp(-x))


def gelu_erf(x: Tensor) -> Tensor:
    return x * (1 + torch.erf(x / math.sqrt(2))) / 2


def gelu_tanh(x: Tensor) -> Tensor:
    return x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Mean of log sum exp(logits) - logit of the label."""
    return (logits.logsumexp(-1) - logits.gather(-1, labels[..., None])[..., 0]).mean()


def next_token_loss(logits: Tensor, tokens: Tensor) -> Tensor:
    return cross_entropy(logits[:, :-1], tokens[:, 1:])


class Record:
    """Sublayers in the order they run: attention of block 0 is site 0, its FFN site 1, ... What a site keeps has the
    name that `siamese probe --activations` gives it."""

    def __init__(self) -> None:
        self.values: dict[str, Tensor] = {}
        self.site = 0

    def stream(self, name: str, raw: Tensor, normed: Tensor | None = None) -> None:
        self.keep(f"stream/{name}", raw)
        if normed is not None:
            self.keep(f"stream_normed/{name}", normed)

    def branch(self, given: Tensor, made: Tensor) -> None:
        """The branch is the last thing of a site."""
        self.keep("branch_in", given)
        self.keep("branch_out", made)
        self.site += 1

    def keep(self, what: str, value: Tensor) -> None:
        self.values[f"site/{self.site}/{what}"] = value.detach()
