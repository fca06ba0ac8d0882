"""Are the GPU kernels right on this machine, do they run, and how fast?

    python -m siamesenorm.selftest                 # on the first CUDA device
    python -m siamesenorm.selftest --interpret     # on the CPU, in Triton's interpreter: correctness only

Every kind of pass of the op `junction`, forward and gradient, at odd widths, against the plain expression in double;
the same bits twice; and a count of what ran: a fused path that silently does not run is worse than none. Exit 1 when
something is wrong.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

NORMS = ("branch", "x", "y", "input")
# Largest error against the largest magnitude of a tensor. Half types: what rounding a result to 8 bits may do, twice.
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2e-2}


@dataclass(frozen=True)
class Pass:
    """One use of the op: which tensors and norms there are."""

    name: str
    x: bool = False
    branch: bool = True
    norms: tuple[str, ...] = ("y",)
    layer: bool = False
    x_scale: bool = False
    gate: bool = False
    half: bool = False  # branch and input in bfloat16 beside float32 streams
    streams: torch.dtype = torch.float32
    numbers: dict[str, float] = field(default_factory=dict)


PASSES = (
    Pass("pre"),
    Pass("pre, first site", branch=False),
    Pass("lns", numbers={"input_scale": 0.7}),
    Pass("post"),
    Pass("deepnorm", numbers={"y_skip": 2.3}),
    Pass("peri", norms=("branch", "y")),
    Pass("olmo2", norms=("branch",)),
    Pass("siamese", x=True, norms=("x", "y", "input"), numbers={"x_branch": 0.6}),
    Pass("siamese, first site", x=True, branch=False, norms=("x", "y", "input")),
    Pass("siamese(input_norm=false)", x=True, norms=("x", "y"), numbers={"x_branch": 0.6}),
    Pass("siamese(form=write), read", x=True, norms=("y", "input")),
    Pass("siamese(form=write), write", numbers={"y_branch": 0.6}),
    Pass("siamese(x=hybrid), attention", x=True, norms=("y",), x_scale=True, numbers={"x_branch": 0.6}),
    Pass("siamese, gated", x=True, norms=("x", "y", "input"), gate=True, numbers={"x_branch": 0.6}),
    Pass("all of it", x=True, norms=NORMS, x_scale=True, gate=True, numbers={"x_branch": 0.6, "y_skip": 1.5}),
)


def _variants(wide: bool) -> list[tuple[Pass, int]]:
    """Passes with their widths."""
    widths = {"pre": (1, 33), "peri": (1, 33), "siamese": (1, 31, 32, 33, 257)}
    cases = [(one, width) for one in PASSES for width in widths.get(one.name, (33,))]
    cases += [(replace(one, layer=True), 33) for one in PASSES]
    cases += [(replace(one, half=True), 33) for one in PASSES if one.name in ("pre", "siamese", "all of it")]
    cases += [(replace(one, streams=torch.bfloat16), 33) for one in PASSES if one.name in ("pre", "peri", "siamese")]
    if wide:
        cases += [(one, width) for one in PASSES for width in (1024, 5000)]
    return cases


def _tensors(one: Pass, shape: tuple[int, int, int], device: str) -> dict[str, Tensor]:
    """Inputs by the op's names, random: a gain of 1 would hide a misplaced norm."""
    generator = torch.Generator().manual_seed(shape[-1] + len(one.name))

    def random(*sizes: int) -> Tensor:
        return torch.randn(*sizes, generator=generator).to(device, one.streams)

    width = shape[-1]
    made = {"y": random(*shape)}
    if one.branch:
        made["branch"] = random(*shape).bfloat16() if one.half else random(*shape)
    if one.x:
        made["x"] = random(*shape)
    if one.x_scale:
        made["x_scale"] = 1 + 0.3 * random(width)
    if one.gate:
        made["gate"] = random(shape[0], width)
    for norm in one.norms:
        made[f"{norm}_gain"] = 1 + 0.3 * random(width)
        if one.layer:
            made[f"{norm}_bias"] = 0.3 * random(width)
    return made


def _run(one: Pass, tensors: dict[str, Tensor], half: bool) -> dict[str, Tensor]:
    """Outputs and the gradient of each input for a fixed, random gradient of each output."""
    leaves = {name: value.detach().clone().requires_grad_() for name, value in tensors.items()}
    gains = [leaves.get(f"{norm}_{part}") for norm in NORMS for part in ("gain", "bias")]
    numbers = {"x_branch": 0.0, "y_branch": 1.0, "y_skip": 1.0, "input_scale": 1.0} | one.numbers
    outputs = torch.ops.siamese.junction(
        leaves.get("branch"), leaves.get("x"), leaves["y"], leaves.get("x_scale"), *gains,
        *(numbers[name] for name in ("x_branch", "y_branch", "y_skip", "input_scale")),
        [norm in one.norms for norm in NORMS], [one.layer] * 4, [1e-5] * 4, half, leaves.get("gate"),
    )  # fmt: skip
    named = zip(("y_sum", "x_out", "input"), outputs, strict=False)  # and U, which has no gradient
    made = {name: value for name, value in named if value.requires_grad}
    generator = torch.Generator().manual_seed(7)
    back = [torch.randn(value.shape, generator=generator).to(value.device, value.dtype) for value in made.values()]
    torch.autograd.backward(list(made.values()), back)
    gradients = {f"d {name}": value.grad for name, value in leaves.items() if value.grad is not None}
    return {name: value.detach() for name, value in (made | gradients).items()}


def _error(found: Tensor, exact: Tensor) -> float:
    scale = exact.abs().max().item()
    if exact.shape[-1] == 1:
        # The norm of one number is its sign: through two norms comes back a gradient of the size of eps squared, the
        # rest of a difference of numbers of size 1, so that is what an error is measured by.
        scale = max(scale, 1.0)
    return (found.double() - exact).abs().max().item() / (scale or 1.0)


def _check(one: Pass, width: int, device: str) -> tuple[float, list[str]]:
    """The largest error, and what is wrong."""
    shape = (2, 3, width)
    tensors = _tensors(one, shape, device)
    exact = _run(one, {name: value.double() for name, value in tensors.items()}, False)
    found, again = _run(one, tensors, one.half), _run(one, tensors, one.half)
    faults = [f"{name}: not there" for name in exact.keys() ^ found.keys()]
    worst = 0.0
    for name in exact.keys() & found.keys():
        error = _error(found[name], exact[name])
        worst = max(worst, error)
        bound = TOLERANCE[torch.bfloat16 if one.half else one.streams]
        if not error <= bound:
            faults.append(f"{name}: off by {error:.1e}, at most {bound:.0e} was expected")
        if not torch.equal(found[name], again[name]):
            faults.append(f"{name}: not the same bits twice")
    return worst, faults


def _seconds(action: Callable[[], object], times: int = 20) -> float:
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for _ in range(3):
        action()
    begin.record()
    for _ in range(times):
        action()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1000 / times


def _bandwidth(device: str, rows: int = 8192, width: int = 4096) -> None:
    """Of the siamese pass, as a share of what a copy of a large tensor reaches."""
    source = torch.empty(64 << 20, device=device)
    copied = torch.empty_like(source)
    peak = 2 * source.nbytes / _seconds(lambda: copied.copy_(source))
    one = next(each for each in PASSES if each.name == "siamese")
    tensors = _tensors(one, (1, rows, width), device)
    stream = tensors["y"].nbytes
    with torch.no_grad():
        gains = [tensors.get(f"{norm}_{part}") for norm in NORMS for part in ("gain", "bias")]
        plan = (0.6, 1.0, 1.0, 1.0, [norm in one.norms for norm in NORMS], [False] * 4, [1e-5] * 4, False, None)
        given = (tensors["branch"], tensors["x"], tensors["y"], None, *gains, *plan)
        forward = _seconds(lambda: torch.ops.siamese.junction_forward(*given))
        y_sum, x_out, made, x_sum, statistics = torch.ops.siamese.junction_forward(*given)
        back = (y_sum, x_out, made, None, x_sum, y_sum, None, *gains, statistics, *plan[:-2], [True] * 12 + [False])
        backward = _seconds(lambda: torch.ops.siamese.junction_backward(*back))
    # Forward reads z, x, y and writes U, V, X, input; backward reads three gradients, U, V and writes three.
    for name, seconds, streams in (("forward", forward, 7), ("backward", backward, 8)):
        rate = streams * stream / seconds
        print(f"siamese {name} [{rows}, {width}] float32: {seconds * 1e6:.0f} us, {rate / 1e9:.0f} GB/s, "
              f"{rate / peak:.0%} of a copy's {peak / 1e9:.0f} GB/s")  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    about = (__doc__ or "").split("\n\n", maxsplit=1)[0]
    parser = argparse.ArgumentParser(prog="python -m siamesenorm.selftest", description=about)
    parser.add_argument("--interpret", action="store_true", help="on the CPU, in Triton's interpreter")
    options = parser.parse_args(arguments)
    device = "cpu" if options.interpret else "cuda"
    if options.interpret and os.environ.get("TRITON_INTERPRET") != "1":
        # It is looked at when triton is imported, which torch may have done already: once more, with it set.
        os.environ["TRITON_INTERPRET"] = "1"
        os.execv(sys.executable, [sys.executable, "-m", "siamesenorm.selftest", "--interpret"])
    if not options.interpret and not torch.cuda.is_available():
        print("selftest: expected a CUDA device, got none; --interpret checks the kernels on the CPU", file=sys.stderr)
        return 2
    if importlib.util.find_spec("triton") is None:
        print("selftest: expected the package triton, got none; pip install triton", file=sys.stderr)
        return 2
    import siamesenorm  # noqa: F401  (registers the ops)

    from . import triton_junction, triton_ops

    if options.interpret:
        triton_junction.MAX_PARTS = 4  # so that a program has several rows of few
    triton_ops.register("CPU" if options.interpret else "CUDA")
    failed, cases = 0, _variants(not options.interpret)
    for one, width in cases:
        before = triton_ops.counts()
        worst, faults = _check(one, width, device)
        for op, ran in triton_ops.counts().items():
            fused, plain = (ran[kind] - before[op][kind] for kind in ("triton", "plain"))
            if (fused, plain) != (2, 1):  # two in float, one in double
                faults.append(f"{op}: expected 2 passes by Triton and 1 plain, got {fused} and {plain}")
        kind = ("layer" if one.layer else "rms") + (", bfloat16 branch" if one.half else "")
        kind += ", bfloat16 streams" if one.streams == torch.bfloat16 else ""
        print(f"{one.name}, {kind}, width {width}: {worst:.1e} {'NOT EQUAL' if faults else 'equal'}", flush=True)
        for fault in faults:
            print(f"    {fault}")
        failed += bool(faults)
    print(f"{len(cases)} passes, {failed} wrong; ran: {triton_ops.counts()}")
    if not options.interpret and not failed:
        _bandwidth(device)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
