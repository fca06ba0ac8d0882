"""Holds a scheme to its equation, written out by hand: forward and every gradient, in double precision.

    from siamesenorm import testing

    def pre(x, sublayers, p):
        for i, sublayer in enumerate(sublayers):
            x = x + sublayer(testing.rms_norm(x, p[f"{testing.junction_name(i)}.norm.weight"]))
        return testing.rms_norm(x, p["close.norm.weight"])

    testing.check_scheme("pre", pre)

The same for a `Scheme` in Python: hand over the class instead of the text. Gains and shifts are random, because a gain
of 1 hides a misplaced norm; the sublayers are small nonlinear functions with weights of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from .scheme import Scheme
from .stack import ResidualStack

Equation = Callable[[Tensor, Sequence[Callable[[Tensor], Tensor]], Mapping[str, Tensor]], Tensor]
"""(embedding [batch, tokens, width], sublayers, parameters by name) -> final hidden state."""


def junction_name(site: int) -> str:
    """Where the parameters of a site lie: "blocks.3.ffn_junction"."""
    return f"blocks.{site // 2}.{'attention' if site % 2 == 0 else 'ffn'}_junction"


def rms_norm(x: Tensor, gain: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """x / sqrt(mean(x^2) + eps) * gain, over the last dimension."""
    y = x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps)
    return y if gain is None else y * gain


def layer_norm(x: Tensor, gain: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(variance + eps) * gain + bias, over the last dimension."""
    x = x - x.mean(-1, keepdim=True)
    y = rms_norm(x, gain, eps)
    return y if bias is None else y + bias


def check_scheme(
    scheme: str | type[Scheme],
    equation: Equation,
    *,
    width: int = 7,
    blocks: int = 3,
    batch: int = 2,
    tokens: int = 5,
    seed: int = 0,
    tolerance: float = 1e-10,
    checkpoint_every: int = 0,
    **build: Any,
) -> None:
    """AssertionError unless the scheme is its equation: the output, and the gradients of the embedding, of every
    parameter and of every sublayer's weights, each within `tolerance` of the largest number in it.

    build: norm, eps, bias, modulated of `ResidualStack`.
    """
    stack = ResidualStack(scheme, width=width, blocks=blocks, seed=seed, dtype=torch.float64, **build)
    generator = torch.Generator().manual_seed(seed + 1)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    with torch.no_grad():
        for parameter in stack.parameters():
            parameter.add_(normal(*parameter.shape), alpha=0.3)
    names = [name for name, _ in stack.named_parameters()]
    x = normal(batch, tokens, width).requires_grad_()
    weights = [(normal(width, width) / width**0.5).requires_grad_() for _ in range(2 * blocks)]
    sublayers = [lambda h, w=weight: torch.tanh(h @ w) for weight in weights]
    wanted = normal(batch, tokens, width)
    leaves = [x, *weights, *stack.parameters()]
    titles = ["embedding", *(f"sublayer {i}" for i in range(2 * blocks)), *names]

    ours = stack(x, sublayers, checkpoint_every)
    theirs = equation(x, sublayers, dict(stack.named_parameters()))
    _compare("output", ours, theirs, tolerance)
    for title, a, b in zip(titles, _gradients(ours, wanted, leaves), _gradients(theirs, wanted, leaves), strict=True):
        _compare(f"gradient of {title}", a, b, tolerance)


def _gradients(output: Tensor, wanted: Tensor, leaves: Sequence[Tensor]) -> list[Tensor]:
    found = torch.autograd.grad((output * wanted).sum(), leaves, allow_unused=True)
    return [torch.zeros_like(leaf) if one is None else one for leaf, one in zip(leaves, found, strict=True)]


def _compare(what: str, ours: Tensor, theirs: Tensor, tolerance: float) -> None:
    if ours.shape != theirs.shape:
        raise AssertionError(f"{what}: expected shape {tuple(theirs.shape)}, got {tuple(ours.shape)}")
    if not ours.numel():
        return
    apart = (ours - theirs).abs().max().item()
    size = theirs.abs().max().item()
    if not apart <= tolerance * max(size, 1e-3):
        raise AssertionError(f"{what}: expected the equation's, got one {apart:.3g} apart (largest number: {size:.3g})")
