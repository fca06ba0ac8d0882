"""Two of the engine's schemes written a second time, as somebody would who invents them: with the four verbs."""

from __future__ import annotations

import math

import siamesenorm as sn
import torch
from siamesenorm import testing
from torch import Tensor, nn


class Normed(sn.Scheme):
    """Norms by the engine's names, without its code. A plain one has neither gain nor shift."""

    def __init__(self, width: int, blocks: int, *, layer: bool, bias: bool, eps: float, modulated: bool) -> None:
        super().__init__(width, blocks)
        self.layer, self.bias, self.eps, self.modulated = layer, bias, eps, modulated
        self.own = nn.ParameterDict()

    def add(self, name: str) -> None:
        self.own[f"{name}.weight".replace(".", "/")] = nn.Parameter(torch.ones(self.width))
        if self.bias:
            self.own[f"{name}.bias".replace(".", "/")] = nn.Parameter(torch.zeros(self.width))

    def at(self, name: str) -> Tensor | None:
        key = name.replace(".", "/")
        return self.own.get(key)

    def norm(self, name: str, x: Tensor) -> Tensor:
        gain, shift = self.at(f"{name}.weight"), self.at(f"{name}.bias")
        if self.layer:
            return testing.layer_norm(x, gain, shift, self.eps)
        y = testing.rms_norm(x, gain, self.eps)
        return y if shift is None else y + shift


def gated(branch: Tensor, gate: Tensor | None) -> Tensor:
    return branch if gate is None else branch * gate


class Pre(Normed):
    def __init__(self, width: int, blocks: int, **settings) -> None:
        super().__init__(width, blocks, **settings)
        if not self.modulated:
            for site in range(2 * blocks):
                self.add(f"{testing.junction_name(site)}.norm")
            self.add("close.norm")

    def read(self, site, streams):
        return streams, self.norm(f"{testing.junction_name(site.index)}.norm", streams[0])

    def write(self, site, streams, branch, gate=None):
        return (streams[0] + gated(branch, gate),)

    def close(self, streams):
        return streams[0] if self.modulated else self.norm("close.norm", streams[0])


class Siamese(Normed):
    def __init__(self, width: int, blocks: int, **settings) -> None:
        super().__init__(width, blocks, **settings)
        for place in (*(testing.junction_name(site) for site in range(2 * blocks)), "close"):
            self.add(f"{place}.x_norm")
            self.add(f"{place}.y_norm")
            if not self.modulated:
                self.add(f"{place}.norm" if place == "close" else f"{place}.input_norm")

    def open(self, x):
        return x, x

    def read(self, site, streams):
        place = testing.junction_name(site.index)
        x, y = self.norm(f"{place}.x_norm", streams[0]), streams[1]
        return (x, y), self.norm(f"{place}.input_norm", x + self.norm(f"{place}.y_norm", y))

    def write(self, site, streams, branch, gate=None):
        branch = gated(branch, gate)
        return streams[0] + branch / math.sqrt(2 * (site.block + 1)), streams[1] + branch

    def close(self, streams):
        merged = self.norm("close.x_norm", streams[0]) + self.norm("close.y_norm", streams[1])
        return merged if self.modulated else self.norm("close.norm", merged)
