"""The residual path of a Transformer as a module: any scheme around anybody's sublayers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from . import _verbs
from ._native import binding
from ._prototype import MakeScheme, made_by
from ._tree import Node, attach, module_at, tensor_at
from .errors import UsageError
from .scheme import BranchInit, Hints, Scheme, Site, Streams

Sublayer = Callable[[Tensor], Any]
"""Branch input [batch, tokens, width] -> branch of the same shape, or a pair (branch, gate)."""


class _Place(Node):
    """Whoever holds parameters of the engine and hands them to it in its order."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self._key = key
        self._paths: list[tuple[str, ...]] = []

    def _take(self, name: str, kind: str, value: Tensor) -> None:
        attach(self, name, value, kind)
        self._paths.append(tuple(name.split(".")))

    def _values(self) -> list[Tensor]:
        return [tensor_at(self, path) for path in self._paths]


class Open(_Place):
    """The verb `open`: embedding [batch, tokens, width] -> streams."""

    def forward(self, x: Tensor) -> Streams:
        """Embedding [batch, tokens, width] -> streams."""
        return tuple(_verbs.open_streams(self._key, self._values(), x))


class Close(_Place):
    """The verb `close`: streams -> final hidden state [batch, tokens, width]."""

    def forward(self, streams: Streams) -> Tensor:
        """Streams -> final hidden state [batch, tokens, width]."""
        return _verbs.close_streams(self._key, self._values(), list(streams))


class Junction(_Place):
    """What stands at a site: reads the streams into the branch input, writes the branch back.

    As a module it is `junction(streams, sublayer) -> streams`: read, run the sublayer, write.
    """

    def __init__(self, key: str, site: Site, hints: Hints) -> None:
        super().__init__(key)
        self.site = site
        self.hints = hints

    def read(self, streams: Streams) -> tuple[Streams, Tensor]:
        """Streams -> streams, branch input [batch, tokens, width]."""
        result = _verbs.read_streams(self._key, self.site.index, self._values(), list(streams))
        return tuple(result[:-1]), result[-1]

    def write(self, streams: Streams, branch: Tensor, gate: Tensor | None = None) -> Streams:
        """Streams after `read` and what the sublayer computed -> streams.

        `gate` multiplies the branch after the scheme's own output norm (adaLN-Zero's vector, drop-path's 0 or
        1 / (1 - chance)); it is broadcast to the branch. None means 1.
        """
        return tuple(_verbs.write_streams(self._key, self.site.index, self._values(), list(streams), branch, gate))

    def forward(self, streams: Streams, sublayer: Sublayer) -> Streams:
        """Reads, runs the sublayer, writes."""
        streams, h = self.read(streams)
        branch = sublayer(h)
        return self.write(streams, *branch) if isinstance(branch, tuple) else self.write(streams, branch)

    def extra_repr(self) -> str:
        return f"{self._key.split('|')[0]}, site {self.site.index}: {self.site.kind} of block {self.site.block}"


class PythonJunction(Junction):
    """A site of a `Scheme` written in Python; its parameters are the scheme's."""

    def __init__(self, scheme: Scheme, site: Site) -> None:
        super().__init__(type(scheme).__name__, site, scheme.hints(site))
        self._scheme = (scheme,)  # not a child: the stack owns it

    def read(self, streams: Streams) -> tuple[Streams, Tensor]:
        streams, h = self._scheme[0].read(self.site, streams)
        return tuple(streams), h

    def write(self, streams: Streams, branch: Tensor, gate: Tensor | None = None) -> Streams:
        return tuple(self._scheme[0].write(self.site, streams, branch, gate))


class ResidualStack(nn.Module):
    """The residual path of a model of `blocks` blocks: two sites each, attention and ffn.

    scheme: the text of one of the engine's schemes ("pre", "siamese(x=hybrid)"), or a class derived from `Scheme`, or
    a function (width, blocks) that makes one.
    width, blocks: of the streams; number of blocks.
    norm, eps, bias: "rms", "layer", or the element-wise "dyt" and "derf"; added inside the root of every norm; whether
    norms but RMSNorm have a shift.
    norm_alpha: of dyt and derf, the factor inside tanh or erf at the start; None: the engine's 0.5.
    modulated: the caller scales and shifts what `read` returns and brings a final norm of its own (DiT).
    causal: a token may not see those after it: a scheme that looks across the tokens of a sample (mv_split) is refused.
    seed: of what starts at random. device, dtype: float32 and bfloat16 are served by fused kernels where there is one.

    `stack.open(x)`, `stack[i].read(streams)`, `stack[i].write(streams, branch)`, `stack.close(streams)` are the four
    verbs; `stack(x, sublayers)` is the loop over them. Parameters are ordinary ones under the engine's names.
    """

    def __init__(
        self,
        scheme: str | MakeScheme,
        *,
        width: int,
        blocks: int,
        norm: str = "rms",
        eps: float = 1e-5,
        norm_alpha: float | None = None,
        bias: bool = False,
        modulated: bool = False,
        causal: bool = False,
        seed: int = 0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.width, self.blocks_count, self.seed = width, blocks, seed
        self._key = ""
        if not isinstance(scheme, str):
            self._build_from_python(scheme, device, dtype)
            return
        engine = binding()
        self._key = engine.scheme_key(scheme, width, blocks, norm, eps, norm_alpha, bias, modulated, causal)
        self.scheme: str | Scheme = self._key.split("|")[0]
        self.open: nn.Module = Open(self._key)
        self.close: nn.Module = Close(self._key)
        self.blocks = nn.ModuleList(Node() for _ in range(blocks))
        self._sites: list[tuple[int, str]] = []
        where = {"device": device or torch.get_default_device(), "dtype": dtype or torch.get_default_dtype()}
        for name, kind, value in engine.initial_values(self._key, -1, seed):
            end, _, rest = name.partition(".")
            getattr(self, end)._take(rest, kind, value.to(**where))
        for index in range(2 * blocks):
            site = Site(index, blocks)
            junction = Junction(self._key, site, _hints(self._key, index))
            for name, kind, value in engine.initial_values(self._key, index, seed):
                junction._take(name, kind, value.to(**where))
            self._add_junction(junction)

    def _build_from_python(self, scheme: MakeScheme, device: Any, dtype: torch.dtype | None) -> None:
        made = made_by(scheme, self.width, self.blocks_count)
        self.scheme = made.to(device=device, dtype=dtype)
        self.open = PythonEnd(made, "open")
        self.close = PythonEnd(made, "close")
        self.blocks = nn.ModuleList(Node() for _ in range(self.blocks_count))
        for index in range(2 * self.blocks_count):
            self._add_junction(PythonJunction(made, Site(index, self.blocks_count)))

    def _add_junction(self, junction: Junction) -> None:
        self.blocks[junction.site.block].add_module(f"{junction.site.kind}_junction", junction)

    def __len__(self) -> int:
        return 2 * self.blocks_count

    def __getitem__(self, site: int) -> Junction:
        """The junction at a site: 0 attention of block 0, 1 ffn of block 0, 2 attention of block 1, ..."""
        sites = 2 * self.blocks_count
        index = site + sites if site < 0 else site
        if not 0 <= index < sites:
            raise IndexError(f"site: expected 0 to {sites - 1}, got {site}")
        kind = "attention_junction" if index % 2 == 0 else "ffn_junction"
        return module_at(self, ("blocks", str(index // 2), kind))

    def forward(self, x: Tensor, sublayers: Sequence[Sublayer], checkpoint_every: int = 0) -> Tensor:
        """Embedding [batch, tokens, width] -> final hidden state, same shape.

        sublayers: one for each site, in order; each takes the branch input and returns the branch, or (branch, gate).
        checkpoint_every: blocks per segment whose activations are computed again in backward; 0 keeps all.
        """
        if len(sublayers) != len(self):
            raise UsageError(f"sublayers: expected {len(self)}, one for each site, got {len(sublayers)}")
        streams = self.open(x)
        step = 2 * checkpoint_every if checkpoint_every > 0 else len(self)
        for first in range(0, len(self), step):
            last = min(first + step, len(self))
            if checkpoint_every > 0:
                streams = checkpoint(self._run, streams, sublayers, first, last, use_reentrant=False)
            else:
                streams = self._run(streams, sublayers, first, last)
        return self.close(streams)

    def _run(self, streams: Streams, sublayers: Sequence[Sublayer], first: int, last: int) -> Streams:
        for index in range(first, last):
            streams = self[index](streams, sublayers[index])
        return streams

    def reset_parameters(self, seed: int | None = None) -> None:
        """Initial values again, in place: for a stack that was made on the meta device and then given memory."""
        if not self._key:
            raise UsageError("reset_parameters: expected a scheme of the engine, got one in Python: it starts itself")
        seed = self.seed if seed is None else seed
        own = dict(self.named_parameters())
        engine = binding()
        with torch.no_grad():
            for place in range(-1, len(self)):
                site = Site(place, self.blocks_count)
                prefix = "" if place < 0 else f"blocks.{site.block}.{site.kind}_junction."
                for name, _, value in engine.initial_values(self._key, place, seed):
                    own[prefix + name].copy_(value)

    def extra_repr(self) -> str:
        text = self.scheme if isinstance(self.scheme, str) else type(self.scheme).__name__
        return f"{text}, width={self.width}, blocks={self.blocks_count}"


class PythonEnd(Node):
    """The verb `open` or `close` of a `Scheme` written in Python."""

    def __init__(self, scheme: Scheme, verb: str) -> None:
        super().__init__()
        self._scheme = (scheme,)
        self._verb = verb

    def forward(self, given: Any) -> Any:
        """Embedding -> streams, or streams -> final hidden state."""
        return getattr(self._scheme[0], self._verb)(given)


def _hints(key: str, site: int) -> Hints:
    norm, value, ffn_input, output, depth_factor = binding().hints(key, site)
    return Hints(norm, BranchInit(value, ffn_input, output, depth_factor))
