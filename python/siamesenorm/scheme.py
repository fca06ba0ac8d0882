"""What a residual scheme is: where a branch is added and where a norm stands.

    open   embedding                   -> streams                (scheme)
    read   site, streams               -> streams, branch input  (at a site)
    write  site, streams, branch, gate -> streams                (at a site)
    close  streams                     -> final hidden state     (scheme)

A scheme of the engine is named by its text (`siamese(x=hybrid)`); one that is being invented is a `Scheme` in Python.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from torch import Tensor, nn

from ._native import binding

Streams = tuple[Tensor, ...]
"""The hidden states that run the depth of a model, as a flat tuple of tensors: a value, never changed in place.

What it holds follows from the scheme and the place in it; a branch that was written but not yet added travels in it.
"""


@dataclass(frozen=True)
class Site:
    """Where a branch meets the streams. Sites are numbered attention, ffn, attention, ffn, ..."""

    index: int
    blocks: int

    @property
    def block(self) -> int:
        """The number of its block, from 0."""
        return self.index // 2

    @property
    def kind(self) -> Literal["attention", "ffn"]:
        """What stands there."""
        return "attention" if self.index % 2 == 0 else "ffn"


class BranchInit(NamedTuple):
    """What a scheme asks of the initial weights of the branch at a site, beside the init rule."""

    value: float = 1.0
    """Factor on the value projection of attention."""
    ffn_input: float = 1.0
    """Factor on the input projections of the feed-forward branch."""
    output: float = 1.0
    """Factor on the projection back to the stream."""
    depth_factor: bool = True
    """Whether the rule's own factor of depth applies to that projection."""


class Hints(NamedTuple):
    """Where a scheme reaches inside the branch at a site."""

    attention_norm: str = "none"
    """RMSNorm on q, k and v: none, qk (per head), qk_full (all heads together), qkv (per head)."""
    branch_init: BranchInit = BranchInit()


class Scheme(nn.Module):
    """A scheme prototyped in Python: derive, give it the four verbs, and hand the class to `ResidualStack` or `Model`.

    The engine's own schemes are one C++ file each; this is for finding out whether a new one is worth that.
    Parameters are ordinary ones of an nn.Module. `siamesenorm.testing.check_scheme` holds it to hand-written equations.
    """

    def __init__(self, width: int, blocks: int) -> None:
        super().__init__()
        self.width = width
        self.blocks = blocks

    def open(self, x: Tensor) -> Streams:
        """Embedding [batch, tokens, width] -> streams; one stream unless overridden."""
        return (x,)

    def read(self, site: Site, streams: Streams) -> tuple[Streams, Tensor]:
        """Streams -> streams, branch input [batch, tokens, width]."""
        raise NotImplementedError

    def write(self, site: Site, streams: Streams, branch: Tensor, gate: Tensor | None = None) -> Streams:
        """Streams and what the sublayer computed -> streams. `gate` multiplies the branch; None means 1."""
        raise NotImplementedError

    def close(self, streams: Streams) -> Tensor:
        """Streams -> final hidden state [batch, tokens, width]."""
        raise NotImplementedError

    def hints(self, site: Site) -> Hints:
        """What the scheme asks of the branch at a site; nothing unless overridden."""
        return Hints()


def canonical_scheme(text: str) -> str:
    """The one way to write a scheme: "siamese( x = hybrid,input_norm=true)" -> "siamese(x=hybrid)"."""
    return str(binding().canonical_scheme(text))


def schemes() -> dict[str, str]:
    """Every scheme of the engine by name, with its equation."""
    return dict(binding().schemes())

