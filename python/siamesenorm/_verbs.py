"""The four verbs as functions of tensors. torch.compile takes each as it is and traces the ops that it calls, so that
one graph holds the whole residual path (the C++ code needs no copy in Python).

`key` is the text of `scheme_key`: it describes the scheme completely, so that a graph which names it means the same in
any process.
"""

from __future__ import annotations

from torch import Tensor
from torch.compiler import allow_in_graph

from ._native import binding


@allow_in_graph
def open_streams(key: str, ends: list[Tensor], x: Tensor) -> list[Tensor]:
    """Embedding -> streams."""
    return binding().open(key, ends, x)


@allow_in_graph
def read_streams(key: str, site: int, parameters: list[Tensor], streams: list[Tensor]) -> list[Tensor]:
    """Streams -> streams, and the branch input as the last."""
    return binding().read(key, site, parameters, streams)


@allow_in_graph
def write_streams(
    key: str, site: int, parameters: list[Tensor], streams: list[Tensor], branch: Tensor, gate: Tensor | None
) -> list[Tensor]:
    """Streams, branch and gate -> streams."""
    return binding().write(key, site, parameters, streams, branch, gate)


@allow_in_graph
def close_streams(key: str, ends: list[Tensor], streams: list[Tensor]) -> Tensor:
    """Streams -> final hidden state."""
    return binding().close(key, ends, streams)
