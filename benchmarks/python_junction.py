#!/usr/bin/env python3
"""The residual path in somebody's own PyTorch model: a Llama-like stack whose residual path is `pre` or `siamese`,
written plainly or as sn.ResidualStack, eager and compiled. Needs the wheel (make wheel).

    build/python-env/bin/python benchmarks/python_junction.py [--shapes s,d,m] [--rounds 7] [--compile]

Printed: milliseconds of a training step (forward and backward; median of interleaved rounds), the residual path alone
(the branches are given tensors), siamese / pre, and the cost of one call through Python. Nothing else should run.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import siamesenorm as sn
import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parent))
import shapes


class Norm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.rms_norm(x, x.shape[-1:], self.weight, 1e-5)


class PlainPre(nn.Module):
    def __init__(self, width: int, blocks: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(Norm(width) for _ in range(2 * blocks + 1))

    def forward(self, x: Tensor, sublayers: nn.ModuleList) -> Tensor:
        for norm, sublayer in zip(self.norms, sublayers, strict=False):
            x = x + sublayer(norm(x))
        return self.norms[-1](x)


class PlainSiamese(nn.Module):
    def __init__(self, width: int, blocks: int) -> None:
        super().__init__()
        self.p, self.q, self.i = (nn.ModuleList(Norm(width) for _ in range(2 * blocks + 1)) for _ in range(3))

    def forward(self, x: Tensor, sublayers: nn.ModuleList) -> Tensor:
        y = x
        for site, sublayer in enumerate(sublayers):
            x = self.p[site](x)
            branch = sublayer(self.i[site](x + self.q[site](y)))
            x, y = x + branch / math.sqrt(2 * (site // 2 + 1)), y + branch
        return self.i[-1](self.p[-1](x) + self.q[-1](y))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)

    def forward(self, h: Tensor) -> Tensor:
        batch, tokens, width = h.shape
        q, k, v = self.qkv(h).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))


class SwiGlu(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.up, self.gate = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.out = nn.Linear(hidden, width, bias=False)

    def forward(self, h: Tensor) -> Tensor:
        return self.out(nn.functional.silu(self.gate(h)) * self.up(h))


class Given(nn.Module):
    """A branch that costs nothing: what is left is the residual path."""

    def __init__(self, branch: Tensor) -> None:
        super().__init__()
        self.branch = branch

    def forward(self, h: Tensor) -> Tensor:
        return self.branch


def seconds(run: Callable[[], None]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def step(path: Callable[[Tensor, nn.ModuleList], Tensor], x: Tensor, sublayers: nn.ModuleList) -> Callable[[], None]:
    def run() -> None:
        path(x, sublayers).square().mean().backward()

    return run


def measure(steps: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """Milliseconds of each, by the median of rounds in which they take turns."""
    for run in steps.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, run in steps.items():
            times[name].append(seconds(run))
    return {name: 1e3 * statistics.median(list_) for name, list_ in times.items()}


def paths(width: int, blocks: int, compiled: bool) -> dict[str, Callable[[Tensor, nn.ModuleList], Tensor]]:
    torch.compiler.reset()
    made: dict[str, nn.Module] = {
        "pre plain": PlainPre(width, blocks),
        "pre ours": sn.ResidualStack("pre", width=width, blocks=blocks),
        "siamese plain": PlainSiamese(width, blocks),
        "siamese ours": sn.ResidualStack("siamese", width=width, blocks=blocks),
    }
    return {name: torch.compile(module, fullgraph=True) if compiled else module for name, module in made.items()}


def shape_lines(name: str, rounds: int, compiled: bool) -> None:
    shape = shapes.load(name)
    width, blocks = shape.width, shape.blocks
    x = torch.randn(shape.batch, shape.tokens, width, requires_grad=True)
    layers = [
        layer for _ in range(blocks) for layer in (Attention(width, shape.heads), SwiGlu(width, shape.ffn_width))
    ]
    given = [Given(torch.randn_like(x, requires_grad=True)) for _ in layers]
    mode = "compiled" if compiled else "eager"
    whole = measure({k: step(p, x, nn.ModuleList(layers)) for k, p in paths(width, blocks, compiled).items()}, rounds)
    alone = measure({k: step(p, x, nn.ModuleList(given)) for k, p in paths(width, blocks, compiled).items()}, rounds)
    for path, time_ in whole.items():
        print(f"{name} {mode:8} {path:14} step {time_:9.2f} ms   residual path alone {alone[path]:8.2f} ms")
    print(
        f"{name} {mode:8} siamese / pre: plain {whole['siamese plain'] / whole['pre plain']:.3f}, "
        f"ours {whole['siamese ours'] / whole['pre ours']:.3f}, ours / plain pre "
        f"{whole['siamese ours'] / whole['pre plain']:.3f}; residual path of siamese: ours "
        f"{alone['siamese plain'] / alone['siamese ours']:.2f} times as fast as plain"
    )


def call_line() -> None:
    """One verb on almost nothing: what a call through Python costs."""
    stack = sn.ResidualStack("siamese", width=8, blocks=1)
    x = torch.randn(1, 1, 8)
    with torch.no_grad():
        streams = stack.open(x)
        for _ in range(1000):
            stack[0].read(streams)
        count = 20000
        read = seconds(lambda: [stack[0].read(streams) for _ in range(count)] and None)
    print(f"one read through Python: {1e6 * read / count:.1f} us")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shapes", default="s,d,m")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--compile", action="store_true", help="compiled, too")
    asked = parser.parse_args()
    torch.manual_seed(0)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    call_line()
    for name in asked.shapes.split(","):
        for compiled in (False, True) if asked.compile else (False,):
            shape_lines(name, asked.rounds, compiled)


if __name__ == "__main__":
    main()
