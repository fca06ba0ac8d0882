#!/usr/bin/env python3
"""Reads the #include lines under siamese/ and python/ and fails on one that points up the room order:

    base <- {comm, config, io, kernels, plan} <- {ops, measure, text} <- nn <- residual <- models <- {data, formats, runs} <- eval <- train <- report
         <- serve <- {cli, python}

Rooms in one pair of braces do not know each other. A torch-free room includes neither LibTorch nor a room that does,
and nlohmann/json.hpp (slow to compile) stays out of headers.
"""

import re
import sys
from pathlib import Path

LEVELS = [
    ["base"],
    ["comm", "config", "io", "kernels", "plan"],
    ["ops", "measure", "text"],
    ["nn"],
    ["residual"],
    ["models"],
    ["data", "formats", "runs"],
    ["eval"],
    ["train"],
    ["report"],
    ["serve"],
    ["cli", "python"],
]
LEVEL_OF = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}
ONLY_FOR = {"measure": {"cli"}}  # the clock is no part of what it measures
TORCH_FREE = {"base", "comm", "config", "io", "kernels", "plan", "text", "data", "report", "runs"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
LIBTORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")
ROOTED = ("siamese/", "python/", "hwy/")  # Highway's foreach_target.h must be included with quotes


def complaint(room: str, is_header: bool, quote: str, target: str) -> str | None:
    """What is wrong with one include of `target` in a file of `room`, or None."""
    if room in TORCH_FREE and LIBTORCH.match(target):
        return f"room {room} is torch-free and may not include <{target}>"
    if is_header and target == "nlohmann/json.hpp":
        return "nlohmann/json.hpp belongs in .cc files only"
    if quote == '"' and not target.startswith(ROOTED):
        return f'"{target}" is not rooted at the repository: write "siamese/<room>/{Path(target).name}"'
    if not target.startswith("siamese/"):
        return None
    other = target.split("/")[1]
    if other == room:
        return None
    if other not in LEVEL_OF:
        return f"{target}: no such room as {other}"
    if LEVEL_OF[other] >= LEVEL_OF[room]:
        return f"room {room} may not include {target}: {other} is not below it"
    if room not in ONLY_FOR.get(other, {room}):
        return f"room {room} may not include {target}: {other} is for {', '.join(sorted(ONLY_FOR[other]))}"
    if room in TORCH_FREE and other not in TORCH_FREE:
        return f"room {room} is torch-free and may not include {target}: {other} uses LibTorch"
    return None


def check(root: Path) -> list[str]:
    """All complaints about the sources under root/siamese and root/python, as file:line: sentence."""
    problems = []
    for path in sorted([*(root / "siamese").rglob("*"), *(root / "python").rglob("*")]):
        if path.suffix not in (".h", ".cc"):
            continue
        name = path.relative_to(root)
        room = name.parts[1] if name.parts[0] == "siamese" else "python"
        if room not in LEVEL_OF:
            problems.append(f"{name}: {room} is not a room of tools/check_includes.py")
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            match = INCLUDE.match(line)
            problem = complaint(room, path.suffix == ".h", *match.groups()) if match else None
            if problem:
                problems.append(f"{name}:{number}: {problem}")
    return problems


def main() -> int:
    root = Path(__file__).resolve().parent.parent
    problems = check(root)
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        print("check_includes: every include points down")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
