"""The Triton kernels under the names of the ops: torch.ops.siamese.junction_forward and junction_backward on CUDA.

The dispatcher then takes them wherever an op of the library meets a CUDA tensor: in modules, in compiled graphs, in C++
schemes. What they do not cover (double precision, rows past 16384 numbers, empty tensors) goes to the plain expression,
which was there before; `counts()` says how often each ran, so that nobody believes in a kernel that does not run.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from . import triton_junction

OPS = ("junction_forward", "junction_backward")
_counts = {op: {"triton": 0, "plain": 0} for op in OPS}
_libraries: dict[str, torch.library.Library] = {}  # by dispatch key; dropping one would take its kernels back

# The gradients of junction_backward, in order: the op's slots.
SLOTS = ("branch", "x", "y", "x_scale", *triton_junction.AFFINE_NAMES, "gate")


def counts() -> dict[str, dict[str, int]]:
    """How often each op ran by its Triton kernel and by its plain expression, since the process began."""
    return {op: dict(of_op) for op, of_op in _counts.items()}


def _keys(device: str) -> torch._C.DispatchKeySet:
    return torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, device))


class _Op:
    """One op: its Triton form, and the two others that any device has."""

    def __init__(self, name: str):
        self.name = name
        self.op = getattr(torch.ops.siamese, name).default
        self.run = {"junction_forward": _forward, "junction_backward": _backward}[name]

    def plain(self, *arguments):
        """The expression in PyTorch's own operators: what a device gets that nobody wrote a kernel for."""
        return self.op.redispatch(_keys("PrivateUse3"), *arguments)

    def shapes(self, *arguments):
        """The outputs, not yet filled, on the device of the tensors; the arguments are checked on the way."""
        return self.op.redispatch(_keys("Meta"), *arguments)

    def __call__(self, *arguments):
        made = self.run(self.shapes, *arguments)
        _counts[self.name]["plain" if made is None else "triton"] += 1
        return self.plain(*arguments) if made is None else made


def _forward(
    shapes, branch: Tensor | None, x: Tensor | None, y: Tensor, x_scale: Tensor | None,
    branch_gain: Tensor | None, branch_bias: Tensor | None, x_gain: Tensor | None, x_bias: Tensor | None,
    y_gain: Tensor | None, y_bias: Tensor | None, input_gain: Tensor | None, input_bias: Tensor | None,
    x_branch: float, y_branch: float, y_skip: float, input_scale: float, norms: Sequence[bool],
    layer: Sequence[bool], eps: Sequence[float], half_input: bool = False, gate: Tensor | None = None,
):  # fmt: skip
    """None: there is no kernel for this."""
    if not triton_junction.covers(y, branch):
        return None
    affine = (branch_gain, branch_bias, x_gain, x_bias, y_gain, y_bias, input_gain, input_bias)
    made = shapes(
        branch, x, y, x_scale, *affine, x_branch, y_branch, y_skip, input_scale, norms, layer, eps, half_input,
        gate,
    )  # fmt: skip
    plan = _plan(x_branch, y_branch, y_skip, input_scale, norms, layer, eps)
    tensors = {"branch": branch, "x": x, "y": y, "x_scale": x_scale, "gate": gate}
    triton_junction.forward(tensors | dict(zip(triton_junction.AFFINE_NAMES, affine, strict=False)), plan, made)
    return made


def _backward(
    shapes, d_y_sum: Tensor | None, d_x_out: Tensor | None, d_input: Tensor | None, branch: Tensor | None,
    x_sum: Tensor | None, y_sum: Tensor, x_scale: Tensor | None, branch_gain: Tensor | None,
    branch_bias: Tensor | None, x_gain: Tensor | None, x_bias: Tensor | None, y_gain: Tensor | None,
    y_bias: Tensor | None, input_gain: Tensor | None, input_bias: Tensor | None, statistics: Tensor,
    x_branch: float, y_branch: float, y_skip: float, input_scale: float, norms: Sequence[bool],
    layer: Sequence[bool], eps: Sequence[float], wanted: Sequence[bool], half_input: bool = False,
    half_branch: bool = False, gate: Tensor | None = None,
):  # fmt: skip
    if not triton_junction.covers(y_sum, branch, d_input):
        return None
    affine = (branch_gain, branch_bias, x_gain, x_bias, y_gain, y_bias, input_gain, input_bias)
    made = shapes(
        d_y_sum, d_x_out, d_input, branch, x_sum, y_sum, x_scale, *affine, statistics, x_branch, y_branch,
        y_skip, input_scale, norms, layer, eps, wanted, half_input, half_branch, gate,
    )  # fmt: skip
    plan = _plan(x_branch, y_branch, y_skip, input_scale, norms, layer, eps)
    tensors = {
        "d_y_sum": d_y_sum, "d_x_out": d_x_out, "d_input": d_input, "branch": branch, "x": x_sum, "y": y_sum,
        "x_scale": x_scale, "gate": gate,
    }  # fmt: skip
    # A gradient that is not wanted, or whose tensor is not there, has no elements.
    gradients = {name: made[slot] for slot, name in enumerate(SLOTS) if made[slot].numel() > 0}
    tensors |= dict(zip(triton_junction.AFFINE_NAMES, affine, strict=False))
    totals = triton_junction.backward(tensors, plan, gradients)
    return [totals.get(name, made[slot]) for slot, name in enumerate(SLOTS)]


def _plan(x_branch, y_branch, y_skip, input_scale, norms, layer, eps) -> dict:
    return {
        "x_branch": x_branch, "y_branch": y_branch, "y_skip": y_skip, "input_scale": input_scale, "norms": norms,
        "layer": layer, "eps": eps,
    }  # fmt: skip


def register(key: str = "CUDA") -> None:
    """Once for a dispatch key; the operator library must be loaded. ("CPU" is for tests, in Triton's interpreter.)"""
    if key in _libraries:
        return
    library = torch.library.Library("siamese", "IMPL", key)
    for name in OPS:
        library.impl(name, _Op(name), allow_override=key == "CPU")
    _libraries[key] = library
