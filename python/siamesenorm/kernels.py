"""Which kernels run the ops: the engine's own on the CPU, Triton's on CUDA devices, the plain expressions elsewhere."""

from __future__ import annotations

import importlib.util

import torch

from . import _native


def register_kernels() -> None:
    """Puts the Triton kernels under the ops' names, where there is a CUDA device, Triton and the compiled part."""
    if _native.is_built() and torch.cuda.is_available() and importlib.util.find_spec("triton") is not None:
        from . import triton_ops

        triton_ops.register()


def kernel_counts() -> dict[str, dict[str, int]]:
    """How often each op that has a Triton kernel ran by it and by its plain expression: {op: {"triton", "plain"}}.

    Empty where Triton is not installed. On the CPU nothing is counted: the engine's own kernels run there.
    """
    if importlib.util.find_spec("triton") is None:
        return {}
    from . import triton_ops

    return triton_ops.counts()
