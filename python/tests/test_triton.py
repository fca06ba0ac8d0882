"""The Triton kernels of the junctions, in Triton's interpreter on the CPU, and for what hardware they compile."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own: the interpreter is chosen when triton is imported, and kernels are replaced."""
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, env={**os.environ, **environment}, check=False
    )


def test_every_pass_equals_the_plain_expression() -> None:
    """Forward and gradients at odd widths, the same bits twice, and each op counted: see siamesenorm/selftest.py."""
    result = run("-m", "siamesenorm.selftest", "--interpret")
    assert result.returncode == 0, result.stdout + result.stderr
    last = result.stdout.splitlines()[-1]
    assert re.match(r"\d\d passes, 0 wrong", last), last


WITHOUT_TRITON = """
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "triton" else find(name, *more)
from siamesenorm import selftest
raise SystemExit(selftest.main(["--interpret"]))
"""


def test_without_triton_it_says_what_is_missing() -> None:
    result = run("-c", WITHOUT_TRITON, TRITON_INTERPRET="1")
    assert result.returncode == 2
    assert result.stderr == "selftest: expected the package triton, got none; pip install triton\n"


BREAK = """
import os
os.environ["TRITON_INTERPRET"] = "1"
import siamesenorm
from siamesenorm import selftest, triton_junction
true_forward = triton_junction.forward
def broken(tensors, plan, made):
    true_forward(tensors, {**plan, "eps": [0.1] * 4}, made)
triton_junction.forward = broken
selftest.PASSES = selftest.PASSES[:2]
raise SystemExit(selftest.main(["--interpret"]))
"""


def test_the_selftest_notices_a_wrong_kernel() -> None:
    result = run("-c", BREAK)
    assert result.returncode == 1
    assert "NOT EQUAL" in result.stdout


STACK = """
import os
os.environ["TRITON_INTERPRET"] = "1"
import torch, siamesenorm as sn
from siamesenorm import triton_ops
def gradients():
    torch.manual_seed(0)
    stack = sn.ResidualStack("siamese", width=33, blocks=2)
    x = torch.randn(2, 3, 33, requires_grad=True)
    stack(x, [torch.tanh] * 4).square().sum().backward()
    return [x.grad, *(value.grad for value in stack.parameters())]
before = gradients()
triton_ops.register("CPU")
triton_ops.register("CPU")
after = gradients()
assert all(torch.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(after, before))
counts = triton_ops.counts()
assert counts["junction_forward"] == {"triton": 5, "plain": 0}, counts
assert counts["junction_backward"] == {"triton": 5, "plain": 0}, counts
def alone(x, y):
    plan = (0.0, 0.0, 1.0, 1.0, [False, False, True, False], [False] * 4, [1e-5] * 4)
    return torch.ops.siamese.junction_forward(None, x, y, *[None] * 9, *plan)
alone(None, torch.randn(2, 3, 16400))
assert triton_ops.counts()["junction_forward"] == {"triton": 5, "plain": 1}
try:
    alone(torch.randn(2, 4, 33), torch.randn(2, 3, 33))
    raise SystemExit("a wrong shape was taken")
except RuntimeError as error:
    assert "x: expected shape [2, 3, 33]" in str(error), error
"""


def test_modules_reach_the_kernels_through_the_dispatcher() -> None:
    """A whole ResidualStack with gradients; what no kernel covers is counted as plain; wrong shapes are refused."""
    result = run("-c", STACK)
    assert result.returncode == 0, result.stderr


COMPILE = """
import torch, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
import siamesenorm
from siamesenorm import selftest, triton_junction, triton_ops
POINTERS = {torch.float32: "*fp32", torch.bfloat16: "*bf16"}
TARGETS = {"ptx": GPUTarget("cuda", 80, 32), "amdgcn": GPUTarget("hip", "gfx942", 64)}
made = set()
def compile_instead(kernel, grid, arguments, constants, warps):
    types = dict.fromkeys(constants, "constexpr")
    for name, value in zip(kernel.arg_names, arguments):
        is_tensor = isinstance(value, torch.Tensor)
        types[name] = POINTERS[value.dtype] if is_tensor else "i32" if isinstance(value, int) else "fp32"
    signature = {name: types[name] for name in kernel.arg_names}
    for code, target in TARGETS.items():
        source = ASTSource(fn=kernel, signature=signature, constexprs=constants)
        built = triton.compile(source, target=target, options={"num_warps": warps})
        assert len(built.asm[code]) > 1000
        made.add((kernel.__name__, code))
triton_junction._launch = compile_instead
triton_ops.register("CPU")
for one in selftest.PASSES:
    if one.name in ("siamese", "all of it"):
        selftest._run(one, selftest._tensors(one, (2, 3, 257), "cpu"), False)
assert len(made) == 6, made
"""


def test_the_kernels_compile_for_gpus_without_one(tmp_path: Path) -> None:
    """To PTX of sm_80 and machine code of gfx942: what the interpreter takes, a compiler might refuse."""
    result = run("-c", COMPILE, TRITON_CACHE_DIR=str(tmp_path))
    assert result.returncode == 0, result.stderr
