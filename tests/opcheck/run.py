#!/usr/bin/env python3
"""Every op of libsiamese_ops.so through torch.library.opcheck, from Python with nothing but torch.ops.load_library.

    .venv/bin/python3 tests/opcheck/run.py --library build/release/rooms/ops/libsiamese_ops.so [--only NAME]

opcheck: the schema tells the truth (nothing changed in place unless it says so, no output is an input), autograd is registered, the meta
kernel agrees with the real one, and the op goes through AOT dispatch with static and dynamic shapes. An op without a
case in cases.py fails, and so does one without one of its kernels.
"""

import argparse
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent))

CHECKS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_static",
          "test_aot_dispatch_dynamic")  # fmt: skip
PART_KEYS = ("CPU", "Meta", "CompositeExplicitAutograd", "Autograd")
PAIR_KEYS = ("CompositeExplicitAutograd", "Autograd")


def our_ops() -> list[str]:
    names = torch._C._dispatch_get_all_op_names()
    return sorted(name.removeprefix("siamese::") for name in names if name.startswith("siamese::"))


def missing_kernels(op: str) -> list[str]:
    keys = PAIR_KEYS if f"{op}_forward" in our_ops() else PART_KEYS
    return [key for key in keys if not torch._C._dispatch_has_kernel_for_dispatch_key(f"siamese::{op}", key)]


def check(op: str, args: tuple) -> list[str]:
    """What opcheck finds, a line each."""
    overload = getattr(torch.ops.siamese, op).default
    result = torch.library.opcheck(overload, args, test_utils=CHECKS, raise_exception=False)
    return [f"{name}: {str(outcome).splitlines()[0]}" for name, outcome in result.items() if outcome != "SUCCESS"]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--only", help="an op, with its parts")
    options = parser.parse_args()
    torch.ops.load_library(str(options.library))
    from cases import CASES

    problems = []
    tried = 0
    for op in our_ops():
        if options.only and op not in (options.only, f"{options.only}_forward", f"{options.only}_backward"):
            continue
        problems += [f"{op}: no kernel for {key}" for key in missing_kernels(op)]
        if not CASES.get(op):
            problems.append(f"{op}: no case in tests/opcheck/cases.py")
        for number, case in enumerate(CASES.get(op, ())):
            torch.manual_seed(number)
            tried += 1
            problems += [f"{op}, case {number}: {line}" for line in check(op, case())]
    unknown = sorted(set(CASES) - set(our_ops()))
    problems += [f"{op}: a case for an op that is not there" for op in unknown]
    for problem in problems:
        print(problem)
    print(f"opcheck: {tried} cases of {len(our_ops())} ops, {len(problems)} problems")
    return 1 if problems or tried == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
