"""Launches the Triton kernels of the op `junction` (triton_kernels.py): sizes, parts, and which pointers are there.

Nothing here knows the dispatcher: triton_ops.py registers the op for CUDA.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
from torch import Tensor

from .triton_kernels import add_parts_kernel, backward_kernel, forward_kernel

MAX_COLS = 16384  # a row is held in registers
MAX_PARTS = 256  # programs that add up rows in backward: fixed, so that sums do not depend on the device
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
NONE, RMS, LAYER = 0, 1, 2  # kinds of a norm
AFFINE_NAMES = (
    "branch_gain", "branch_bias", "x_gain", "x_bias", "y_gain", "y_bias", "input_gain", "input_bias",
)  # fmt: skip
SUMMED = ("x_scale", "gate", *AFFINE_NAMES)  # gradients that are sums over rows
SHORT = ("SCALE", "GATE", "GB", "BB", "GX", "BX", "GY", "BY", "GI", "BI")  # the same in the kernel: S_*


def _total(sums: Tensor, like: Tensor) -> Tensor:
    count, parts, cols = sums.shape
    out = torch.empty(count, cols, dtype=torch.float32, device=sums.device)
    _launch(add_parts_kernel, (count, triton.cdiv(cols, 128)), (sums, out, parts, cols), {"BLOCK": 128}, 4)
    return out.to(like.dtype)


def _warps(cols: int) -> int:
    return 4 if cols <= 1024 else 8 if cols <= 2048 else 16


def _launch(kernel, grid: tuple[int, ...], arguments: tuple, constants: dict, warps: int) -> None:
    """The one door to the device (a test compiles here instead)."""
    kernel[grid](*arguments, **constants, num_warps=warps)


def _kinds(norms: Sequence[bool], layer: Sequence[bool]) -> list[int]:
    return [(LAYER if is_layer else RMS) if there else NONE for there, is_layer in zip(norms, layer, strict=False)]


def _dense(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.contiguous()


def covers(y: Tensor, *others: Tensor | None) -> bool:
    """Whether there is a kernel for these tensors, of which y is a stream."""
    fits = all(other is None or other.dtype in DTYPES for other in (y, *others))
    return fits and y.numel() > 0 and y.shape[-1] <= MAX_COLS


def forward(tensors: dict, plan: dict, made: Sequence[Tensor]) -> None:
    """Fills `made` (V, X, input, U, statistics; what the plan does not make has no elements)."""
    y = tensors["y"].contiguous()
    given = {name: _dense(tensor) for name, tensor in tensors.items()}
    kinds = _kinds(plan["norms"], plan["layer"])
    kinds[0] *= given["branch"] is not None
    kinds[1] *= given["x"] is not None
    places = [sum(kinds[:norm]) for norm in range(4)]  # RMS has one row of statistics, LAYER two
    cols = y.shape[-1]
    rows = y.numel() // cols
    gate = given["gate"]
    has_branch = given["branch"] is not None
    pointers = [given[name] if given[name] is not None else y for name in ("branch", "x")]
    affine = [given[name] for name in AFFINE_NAMES]
    outputs = [output if output.numel() > 0 else y for output in made]
    arguments = (
        *pointers, y, given["x_scale"] if given["x_scale"] is not None else y, gate if gate is not None else y,
        *(value if value is not None else y for value in affine), *outputs,
        rows, cols, rows // gate.shape[0] if gate is not None else rows,
        plan["x_branch"], plan["y_branch"], plan["y_skip"], plan["input_scale"], *plan["eps"],
    )  # fmt: skip
    constants = dict(
        BRANCH=has_branch, X=given["x"] is not None, ADDS_TO_X=has_branch and plan["x_branch"] != 0,
        SCALE=given["x_scale"] is not None, GATE=has_branch and gate is not None,
        NORM_B=kinds[0], NORM_X=kinds[1], NORM_Y=kinds[2], NORM_I=kinds[3], AFFINE=_bits(affine),
        AT_B=places[0], AT_X=places[1], AT_Y=places[2], AT_I=places[3],
        MAKES_V=made[0].numel() > 0, MAKES_X=made[1].numel() > 0, MAKES_INPUT=made[2].numel() > 0,
        MAKES_U=made[3].numel() > 0, BLOCK=triton.next_power_of_2(cols),
    )  # fmt: skip
    _launch(forward_kernel, (rows,), arguments, constants, _warps(cols))


def _bits(affine: Sequence[Tensor | None]) -> int:
    return sum((value is not None) << bit for bit, value in enumerate(affine))


def backward(tensors: dict, plan: dict, gradients: dict[str, Tensor]) -> dict[str, Tensor]:
    """tensors: d_y_sum, d_x_out, d_input, branch, x (U), y (V), x_scale, gate and the gains, or None. `gradients`: a
    tensor for each that is wanted; those of branch, x and y are filled, the sums are returned."""
    given = {name: _dense(tensor) for name, tensor in tensors.items()}
    y, gate = given["y"], given["gate"]
    kinds = _kinds(plan["norms"], plan["layer"])
    kinds[0] *= given["branch"] is not None
    kinds[1] *= given["x"] is not None
    cols = y.shape[-1]
    rows = y.numel() // cols
    groups = gate.shape[0] if gate is not None else 1
    group_rows = rows // groups
    group_parts = min(group_rows, max(1, MAX_PARTS // groups))
    part_rows = triton.cdiv(group_rows, group_parts)
    group_parts = triton.cdiv(group_rows, part_rows)
    parts = groups * group_parts
    summed = [name for name in SUMMED if name in gradients]
    sums = torch.empty(max(1, len(summed)), parts, cols, dtype=torch.float32, device=y.device)
    slots = zip(SHORT, SUMMED, strict=True)
    places = {f"S_{short}": summed.index(name) if name in gradients else -1 for short, name in slots}
    affine = [given[name] for name in AFFINE_NAMES]

    def at(name: str) -> Tensor:
        return given[name] if given[name] is not None else y

    to_branch = any(name in gradients for name in ("branch", "gate", "branch_gain", "branch_bias"))
    arguments = (
        at("d_y_sum"), at("d_x_out"), at("d_input"), at("branch"), at("x"), y, at("x_scale"), at("gate"),
        *(value if value is not None else y for value in affine),
        gradients.get("branch", y), gradients.get("x", y), gradients.get("y", y), sums,
        cols, group_rows, part_rows, group_parts, parts,
        plan["x_branch"], plan["y_branch"], plan["y_skip"], plan["input_scale"], *plan["eps"],
    )  # fmt: skip
    constants = dict(
        DV=given["d_y_sum"] is not None, DX=given["d_x_out"] is not None, DI=given["d_input"] is not None,
        Z=given["branch"] is not None, X=given["x"] is not None, SCALE=given["x_scale"] is not None,
        GATE=gate is not None, NORM_B=kinds[0], NORM_X=kinds[1], NORM_Y=kinds[2], NORM_I=kinds[3],
        AFFINE=_bits(affine), TO_BRANCH=to_branch, D_BRANCH="branch" in gradients, D_X="x" in gradients,
        D_Y="y" in gradients, **places, BLOCK=triton.next_power_of_2(cols),
    )  # fmt: skip
    _launch(backward_kernel, (parts,), arguments, constants, _warps(cols))
    if not summed:
        return {}
    totals = dict(zip(summed, _total(sums, y), strict=False))
    if "gate" in totals:
        of_gate = sums[summed.index("gate")].view(groups, group_parts, cols)
        totals["gate"] = _total(of_gate, y)
    return totals
