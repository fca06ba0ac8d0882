#!/usr/bin/env python3
"""The tables of docs/results.md, from the records of its sweeps, and the costs of docs/reproduce.md, from `siamese plan`: nothing
in them is typed by hand.

    benchmarks/results.py build/release/siamese            writes every block anew, from  <!-- sweep NAME -->,
                                                           <!-- table NAME -->  or  <!-- plan RECIPE... -->  to  <!-- end -->
    benchmarks/results.py build/release/siamese --check    says which block is not what its record gives, and changes nothing

A block of a sweep holds what `siamese sweep configs/sweeps/NAME.yaml --recorded` prints, without its speeds: the runs shared their
machine with other work. In their place stands the adjusted speedup, training / price, where docs/results/bench.jsonl has a
price. Of a sweep that is not recorded whole the block says how many runs are, and has the table of those. Blocks of
other tables are made by result_tables.py. Nothing is trained, and no data are needed.
"""

import argparse
import itertools
import re
import statistics
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

import record
import result_tables
import scale

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/results.md"
PAGES = (PAGE, ROOT / "docs/reproduce.md")
BLOCK = re.compile(r"(<!-- (sweep|table|plan) ([\w./ -]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
COUNTS = re.compile(r"^(\d+) runs: (\d+) recorded, \d+ ended here, \d+ to do\n", re.MULTILINE)
SPEEDS = ("tokens/s", "images/s", "time")  # columns
ONLY_WHERE_MEASURED = ("accuracy",)  # columns that the command has for all language models
PRICES = ROOT / "docs/results/bench.jsonl"
PRICED_SHAPE = "s"
BESIDE_SCHEME = re.compile(r", warmup=\d+$")  # what a variant may say that changes no step
ABOUT_ADJUSTED = (f"adjusted: training, divided by the step time against {{}} at shape {PRICED_SHAPE.upper()}\n"
                  "(median of those in [bench.jsonl](results/bench.jsonl), at least 1); -: not measured there.")
ABOUT_SPEED = re.compile(r"; time: the same, charged with its own speed")


class Failure(Exception):
    """What is told in one line."""


def siamese(binary: Path, *words: str) -> str:
    done = subprocess.run([str(binary), *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"siamese {' '.join(words)}: exit code {done.returncode}: {done.stderr.strip()[-300:]}")
    return done.stdout


def without_speeds(text: str) -> str:
    """Tables without their columns of SPEEDS, and without what the text says about those; also without columns of
    ONLY_WHERE_MEASURED in which no row has a value."""
    lines = []
    for of_table, group in itertools.groupby(text.splitlines(), lambda line: line.startswith("|")):
        if not of_table:
            lines += [ABOUT_SPEED.sub("", line) for line in group]
            continue
        rows = [line.split("|") for line in group]
        columns = [[cell.strip() for cell in column] for column in zip(*rows, strict=True)]
        keep = [i for i, (title, _, *values) in enumerate(columns)
                if title not in SPEEDS and not (title in ONLY_WHERE_MEASURED and set(values) <= {"-"})]
        lines += ["|".join(row[i] for i in keep) for row in rows]
    return "\n".join(lines)


def prices(lines: list[dict]) -> dict[tuple[str, str], float]:
    """Of step times at PRICED_SHAPE, by scheme and the one it is measured against: the median of all that were recorded,
    and not below 1. No scheme asks for less work than the one it is held against; what says so was a noisy machine."""
    found: dict[tuple[str, str], list[float]] = {}
    for line in lines:
        both = line.get("overrides"), line.get("against")
        if line.get("shape") != PRICED_SHAPE or "ratio" not in line or not all(isinstance(keys, list) for keys in both):
            continue
        if all(len(keys) == 1 and keys[0].startswith("model.residual=") for keys in both):
            found.setdefault(tuple(keys[0].removeprefix("model.residual=") for keys in both), []).append(line["ratio"])
    return {names: max(1.0, statistics.median(ratios)) for names, ratios in found.items()}


def with_adjusted(text: str, prices: dict[tuple[str, str], float]) -> str:
    """Tables with a column `training` get a column `adjusted`, if a price of one of their variants is known."""
    lines = text.splitlines()
    reference = None
    for first in [i for i, line in enumerate(lines) if line.startswith("|") and line.rstrip("| ").endswith(" training")]:
        rows = range(first + 2, next((i for i in range(first, len(lines)) if not lines[i].startswith("|")), len(lines)))
        cells = {i: [cell.strip() for cell in lines[i].split("|")[1:-1]] for i in rows}
        scheme = {i: BESIDE_SCHEME.sub("", cells[i][0]) for i in rows}
        against = scheme[rows[0]]
        price = {i: prices.get((scheme[i], against)) for i in rows}
        if any(price.values()):
            price |= {i: 1.0 for i in rows if scheme[i] == against}  # the same steps
        else:
            continue
        reference = against
        lines[first] += " adjusted |"
        lines[first + 1] += "---------:|"
        for i in rows:
            training = re.fullmatch(r"([\d.]+)x", cells[i][-1])
            adjusted = f"{float(training[1]) / price[i]:.2f}x" if training and price[i] else "" if i == rows[0] else "-"
            lines[i] += f" {adjusted:>8} |"
    return "\n".join(lines) + ("\n" + ABOUT_ADJUSTED.format(reference) if reference else "")


class Sweeps:
    """What the binary says of the sweeps of the tree, each asked once."""

    def __init__(self, binary: Path):
        self.binary = binary

    @lru_cache(maxsize=None)  # noqa: B019
    def printed(self, name: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            return siamese(self.binary, "sweep", f"configs/sweeps/{name}.yaml", "--out", f"{folder}/x", "--recorded")

    def counts(self, name: str) -> tuple[int, int] | None:
        return counted(self.printed(name)) if (ROOT / f"configs/sweeps/{name}.yaml").is_file() else None

    def block(self, kind: str, name: str, old: str) -> str:
        """What stands between the marks."""
        if kind == "sweep":
            return filled(self.printed(name), prices(record.read(PRICES)))
        if kind == "plan":
            return f"\n{scale.cost_table(self.binary, name.split())}\n"
        return result_tables.made(name, old, self.counts)


def counted(printed: str) -> tuple[int, int]:
    """The runs of a sweep, and how many are recorded."""
    counts = COUNTS.match(printed)
    if counts is None:
        raise Failure(f"siamese sweep --recorded: expected a line that counts its runs, got '{printed.splitlines()[:1]}'")
    return int(counts[1]), int(counts[2])


def filled(printed: str, prices: dict[tuple[str, str], float]) -> str:
    """A block, of what the command printed; of a sweep that is recorded in part without its comparisons."""
    runs, recorded = counted(printed)
    known = "" if recorded == runs else f"Recorded: {recorded} of {runs} runs; the sweep trains the others.\n"
    text = "\n".join(line for line in printed.splitlines()[1:] if not line.startswith("report: ")).strip()
    if recorded != runs:  # who looks at verdicts before the last seed decides by luck when to stop
        text = text.partition("\nEach variant")[0].strip()
    of_images = "top-1" in text  # prices are those of language models
    table = with_adjusted(without_speeds(text), {} if of_images else prices) + "\n" if text else ""
    return "\n" + "\n".join(filter(None, [known, table])) + "\n"


def render(text: str, fill) -> str:
    """`fill` makes a block of its kind, its name and what it holds."""
    return BLOCK.sub(lambda found: found[1] + fill(found[2], found[3], found[4]) + found[5], text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=Path)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when the page is not what the records give")
    arguments = parser.parse_args()
    sweeps = Sweeps(arguments.binary.resolve())
    stale = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        try:
            fresh = render(text, sweeps.block)
        except (Failure, ValueError) as failure:
            sys.exit(f"results: {failure}")
        blocks = list(BLOCK.finditer(text))
        if not blocks:
            sys.exit(f"results: {page.name}: expected blocks <!-- sweep NAME -->, got none")
        stale += [f"{page.relative_to(ROOT)}: {old[2]} {old[3]}" for old, new in zip(blocks, BLOCK.finditer(fresh), strict=True)
                  if old[0] != new[0]]
        if not arguments.check:
            page.write_text(fresh, encoding="utf-8")
            print(f"results: {page.relative_to(ROOT)}: {', '.join(f'{found[2]} {found[3]}' for found in blocks)}")
    if not arguments.check:
        return 0
    if stale:
        print(f"results: not what the records and `siamese plan` give: {', '.join(stale)}; run `make results`", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
