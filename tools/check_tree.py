#!/usr/bin/env python3
"""Checks what a compiler does not: no source file of ours past 400 lines, README names the two commands, .ci/run calls
`make test`, one version wherever it is named, no path of one particular machine in a file, no JSON read past
io/strict_json, and clang-format has nothing to change."""

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

MAX_LINES = 400
SOURCES = {".h", ".cc", ".py", ".js", ".css", ".sh", ".cmake"}
CPLUSPLUS = {".h", ".cc"}
# A home or work folder as the start of a path: not the middle of a longer one, nor of an address.
MACHINE_PATH = re.compile(r"(?<![\w.~-])/(?:root|home|work)/\w")


# A tree of any depth; io/strict_json.h has read_json.
RAW_JSON = re.compile(r"\bjson::parse\(")
RAW_JSON_HOME = Path("siamese/io/strict_json.cc")


# Where the version of this program is named. The first says which it is.
VERSIONS = {
    "CMakeLists.txt": r"^project\(\w+ VERSION (\S+)",
    "pyproject.toml": r'^version = "(.*)"$',
    "python/siamesenorm/__init__.py": r'^__version__ = "(.*)"$',
    "CITATION.cff": r"^version: (\S+)$",
    "docs/building.md": r"\bsiamese-(\d[\w.]*?)(?=-linux|\.tar)",
}


def our_files(root: Path) -> list[Path]:
    """Files git tracks or would track, relative to root; without git, every file that is not built or installed."""
    listing = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode == 0:
        names = [Path(name) for name in listing.stdout.split("\0") if name]
    else:
        skipped = {".git", ".venv", "build", "runs", "__pycache__"}
        names = [path.relative_to(root) for path in root.rglob("*")]
        names = [name for name in names if not skipped & set(name.parts)]
    return sorted(name for name in set(names) if (root / name).is_file())


def read(path: Path) -> str | None:
    """The text of a file, None when it is not text."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def check_text(name: Path, text: str) -> list[str]:
    problems = []
    lines = text.splitlines()
    if name.suffix in SOURCES and len(lines) > MAX_LINES:
        problems.append(f"{name}: {len(lines)} lines; past {MAX_LINES}, split")
    for number, line in enumerate(lines, start=1):
        if MACHINE_PATH.search(line):
            problems.append(f"{name}:{number}: a path of one machine: {line.strip()}")
        if name.parts[0] == "siamese" and name != RAW_JSON_HOME and RAW_JSON.search(line):
            problems.append(f"{name}:{number}: json::parse: expected read_json of siamese/io/strict_json.h")
    return problems


def check_commands(root: Path) -> list[str]:
    problems = []
    readme = read(root / "README.md") if (root / "README.md").is_file() else ""
    for command in ("make demo", "make test"):
        if command not in readme:
            problems.append(f"README.md: does not name `{command}`")
    ci = root / ".ci" / "run"
    steps = [line.strip() for line in (read(ci) or "").splitlines()] if ci.is_file() else []
    if "make test" not in steps:
        problems.append(".ci/run: does not call `make test`")
    for script in (ci, root / "setup.sh"):
        if not os.access(script, os.X_OK):
            problems.append(f"{script.relative_to(root)}: missing or not executable")
    return problems


def check_version(root: Path) -> list[str]:
    """A file that is not there names none; one that is there names it."""
    problems = []
    wanted = None
    for name, pattern in VERSIONS.items():
        text = read(root / name) if (root / name).is_file() else None
        if text is None:
            continue
        found = re.findall(pattern, text, flags=re.MULTILINE)
        if not found:
            problems.append(f"{name}: expected the version of this program, got none")
        wanted = wanted or next(iter(found), None)
        problems += [f"{name}: version {version}, where CMakeLists.txt says {wanted}" for version in dict.fromkeys(found) if version != wanted]
    return problems


def check_format(root: Path, names: list[Path]) -> list[str]:
    """Files that clang-format would change, a few at a time on every core."""

    def unformatted(batch: list[Path]) -> list[str]:
        run = subprocess.run(
            ["clang-format", "--dry-run", "-Werror", *map(str, batch)],
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode == 0:
            return []
        places = re.findall(r"^(\S+?):(\d+):\d+: error: ", run.stderr, flags=re.MULTILINE)
        if not places:
            return [f"clang-format failed: {run.stderr.strip()}"]
        first = dict(reversed(places))  # the first place in each file is enough
        return [f"{name}:{line}: not formatted; run `make format`" for name, line in first.items()]

    batches = [names[start : start + 16] for start in range(0, len(names), 16)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [problem for found in pool.map(unformatted, batches) for problem in found]


def check(root: Path) -> list[str]:
    names = our_files(root)
    problems = check_commands(root) + check_version(root)
    for name in names:
        text = read(root / name)
        if text is not None:
            problems += check_text(name, text)
    return problems + check_format(root, [name for name in names if name.suffix in CPLUSPLUS])


def main() -> int:
    problems = check(Path(__file__).resolve().parent.parent)
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        print("check_tree: file lengths, commands, version, paths and formatting are as they should be")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
