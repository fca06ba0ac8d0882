"""A `Scheme` in Python as the engine calls it (binding/python_scheme.cc): by site index, its results checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from .errors import UsageError
from .scheme import Scheme, Site, Streams

MakeScheme = Callable[[int, int], Scheme]
"""(width, blocks) -> the scheme: a class derived from `Scheme`, or a function that makes one."""


def made_by(make: Any, width: int, blocks: int) -> Scheme:
    """The scheme that a class or function makes; UsageError for anything else."""
    made = make(width, blocks) if callable(make) else make
    if not isinstance(made, Scheme):
        raise UsageError(
            f"scheme: expected a class derived from Scheme, or a function (width, blocks) that makes one, got {make!r}"
        )
    return made


class Verbs:
    """The verbs of one scheme on lists of tensors."""

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme

    def _site(self, index: int) -> Site:
        return Site(index, self._scheme.blocks)

    def _state(self, verb: str, got: Any) -> Tensor:
        if isinstance(got, Tensor) and got.dim() == 3 and got.shape[-1] == self._scheme.width:
            return got
        shape = tuple(got.shape) if isinstance(got, Tensor) else type(got).__name__
        expected = f"a tensor [batch, tokens, {self._scheme.width}]"
        raise UsageError(f"{type(self._scheme).__name__}.{verb}: expected {expected}, got {shape}")

    def _streams(self, verb: str, got: Any) -> list[Tensor]:
        if isinstance(got, (tuple, list)) and got and all(isinstance(one, Tensor) for one in got):
            return list(got)
        raise UsageError(
            f"{type(self._scheme).__name__}.{verb}: expected streams, a tuple of tensors, got {type(got).__name__}"
        )

    def open(self, x: Tensor) -> list[Tensor]:
        """Embedding -> streams."""
        return self._streams("open", self._scheme.open(x))

    def read(self, site: int, streams: Sequence[Tensor]) -> tuple[list[Tensor], Tensor]:
        """Streams -> streams, branch input."""
        got = self._scheme.read(self._site(site), tuple(streams))
        if not (isinstance(got, tuple) and len(got) == 2):
            raise UsageError(f"{type(self._scheme).__name__}.read: expected (streams, branch input), got {got!r:.60}")
        return self._streams("read", got[0]), self._state("read", got[1])

    def write(self, site: int, streams: Sequence[Tensor], branch: Tensor, gate: Tensor | None) -> list[Tensor]:
        """Streams, branch and gate -> streams."""
        return self._streams("write", self._scheme.write(self._site(site), tuple(streams), branch, gate))

    def close(self, streams: Sequence[Tensor]) -> Tensor:
        """Streams -> final hidden state."""
        closing: Streams = tuple(streams)
        return self._state("close", self._scheme.close(closing))

    def attention_norm(self, site: int) -> str:
        """The hint of this name."""
        return str(self._scheme.hints(self._site(site)).attention_norm)

    def branch_init(self, site: int) -> tuple[float, float, float, bool]:
        """The hint of this name."""
        value, ffn_input, output, depth_factor = self._scheme.hints(self._site(site)).branch_init
        return float(value), float(ffn_input), float(output), bool(depth_factor)
