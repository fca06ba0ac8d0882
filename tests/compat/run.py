#!/usr/bin/env python3
"""What earlier versions wrote stays usable: each folder of tests/fixtures is copied, and every verb of the binary is
tried on it (resume, eval, generate, sample, inspect, convert, upcycle, report, --overwrite, sweep with its record; since 0.2.0
prepare, tokenizer and analyze). The answers must be those of the version that made it.

    tests/compat/run.py --binary build/release/siamese

Numbers may differ by 1e-4, as golden losses may: the fixtures were made on another kind of CPU. Weights that are only
renamed must keep their bits. Standard library only.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import answers

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
TOLERANCE = 1e-4


def differences(where: str, expected, got) -> list[str]:
    """What the version said and we do not; what we say more is no difference: later versions may add fields."""
    if isinstance(expected, dict) and isinstance(got, dict):
        missing = [f"{where}/{key}: missing" for key in expected if key not in got]
        # A later version may write a later schema.
        return missing + [text for key, value in expected.items() if key in got and key != "schema"
                          for text in differences(f"{where}/{key}", value, got[key])]  # fmt: skip
    if isinstance(expected, list) and isinstance(got, list):
        if len(expected) != len(got):
            return [f"{where}: expected {len(expected)} entries, got {len(got)}"]
        return [text for i, pair in enumerate(zip(expected, got)) for text in differences(f"{where}/{i}", *pair)]
    if isinstance(expected, float) and isinstance(got, float | int):
        allowed = TOLERANCE * max(1.0, abs(expected))
        return [] if abs(expected - got) <= allowed else [f"{where}: expected {expected}, got {got}"]
    return [] if expected == got else [f"{where}: expected {expected!r}, got {got!r}"]


def check(binary: Path, fixtures: Path) -> list[str]:
    expected = json.loads((fixtures / "answers.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="siamese_compat_") as folder:
        try:
            got = answers.ask(binary, fixtures, Path(folder) / "copy")
        except (RuntimeError, OSError, ValueError, KeyError) as error:
            return [f"{type(error).__name__}: {error}"]
    for family in answers.families(fixtures):  # trained from the first step, the losses are those of the resumed run
        expected[family]["overwritten"] = expected[family]["metrics"]
    return differences(fixtures.name, expected, got)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, required=True)
    binary = parser.parse_args().binary
    versions = sorted(path for path in FIXTURES.iterdir() if (path / "answers.json").is_file())
    if not versions:
        raise SystemExit(f"{FIXTURES}: expected fixtures, got none")
    failed = False
    for version in versions:
        problems = check(binary, version)
        print(f"{version.name}: {'the same answers' if not problems else f'{len(problems)} differ'}")
        for problem in problems[:40]:
            print(f"  {problem}")
        failed = failed or bool(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
