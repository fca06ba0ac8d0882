#!/usr/bin/env python3
"""The second stage of a sweep, from the record of the first: each variant at its best learning rate, with fresh seeds.

    benchmarks/second_stage.py configs/sweeps/text.yaml                            every variant, into text-seeds.yaml beside it
    benchmarks/second_stage.py configs/sweeps/text.yaml --variants pre siamese     these alone; the first is the reference
    benchmarks/second_stage.py configs/sweeps/text.yaml --further                  first a further rate, where one is missing

A table says how each variant's best rate was found. Where that rate is the lowest or the highest that was tried, a better one
may lie beyond: then nothing is written without --anyway. --further writes a sweep of one rate more (text-lower.yaml,
text-higher.yaml) into the record of the first stage; after it, ask again. Nothing is trained, and no data are needed.
"""

import argparse
import sys
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from sweep_text import Failure, Sweep, Variant, quoted, rate_text, read_sweep  # noqa: E402

import record  # noqa: E402

SEEDS = [11, 12, 13, 14, 15]
NEAR = 0.02  # of two losses: two standard deviations of a difference between single runs on text; a choice between them is a toss
WIDTH = 128


@dataclass
class Tuned:
    """A variant and what the record says of it."""

    variant: Variant
    losses: dict[float, float | None]  # by rate, lowest first: the mean over the seeds; None: a run diverged
    seconds: float  # of a run, the quickest: the others shared the machine
    rates: list[float] = field(default_factory=list)  # best first

    def __post_init__(self) -> None:
        ended = {rate: loss for rate, loss in self.losses.items() if loss is not None}
        if not ended:
            raise Failure(f"{self.variant.name}: a run diverged at every rate: there is no best one")
        self.rates = sorted(ended, key=ended.__getitem__)  # of equals the lower rate, as in the report

    @property
    def best(self) -> float:
        return self.rates[0]

    @property
    def end(self) -> str | None:
        """At which end of the rates that were tried the best one is."""
        tried = list(self.losses)
        if len(tried) < 2:
            return None
        return "lowest" if self.best == tried[0] else "highest" if self.best == tried[-1] else None

    def ties(self) -> list[float]:
        return [rate for rate in self.rates[1:] if self.losses[rate] - self.losses[self.best] < NEAR]

    def further(self) -> float:
        return further(list(self.losses), self.end)

    def row(self) -> list[str]:
        gap = f"{self.losses[self.rates[1]] - self.losses[self.best]:+.4f} at {rate_text(self.rates[1])}" if self.rates[1:] else ""
        said = [f"the {self.end} rate that was tried: {rate_text(self.further())} may be better"] if self.end else []
        said += [f"a toss with {', '.join(map(rate_text, self.ties()))}"] if self.ties() else []
        return [self.variant.name, rate_text(self.best), f"{self.losses[self.best]:.4f}", gap, "; ".join(said)]


def further(rates: list[float], end: str) -> float:
    """The next rate of a row, lower or higher: 1e-3, 3e-3, 1e-2 goes on with 3e-2, and down with 3e-4."""
    back = 1 if len(rates) > 2 else 0  # rows of 1, 3, 10 have two steps in turn
    if end == "highest":
        return rates[-1] * rates[-1 - back] / rates[-2 - back]
    return rates[0] * rates[back] / rates[back + 1]


def tune(sweep: Sweep, names: list[str], lines: list[dict]) -> list[Tuned]:
    """Of the variants that are named, in that order, by what the record has of them."""
    by_name = {variant.name: variant for variant in sweep.variants}
    if len(sweep.rates) < 2:
        raise Failure(f"{sweep.path}: grid.optim.lr: expected several rates to choose from, got {len(sweep.rates)}")
    tuned = []
    for name in names:
        if name not in by_name:
            raise Failure(f"{sweep.path}: expected one of {'; '.join(by_name)}; got '{name}'")
        runs = {(line["lr"], line["seed"]): line for line in lines if line["variant"] == name and line["seed"] in sweep.seeds}
        missing = [f"{rate_text(rate)} seed {seed}" for rate in sweep.rates for seed in sweep.seeds if (rate, seed) not in runs]
        if missing:
            raise Failure(f"{sweep.record}: {name}: expected a run at {missing[0]}, got none ({len(missing)} are missing)")
        losses = {}
        for rate in sorted({rate for rate, _ in runs}):
            ended = [run["val_loss"] if run.get("status", "finished") != "diverged" else None
                     for (at, _), run in runs.items() if at == rate]
            losses[rate] = None if None in ended else sum(ended) / len(ended)
        tuned.append(Tuned(by_name[name], losses, min(run["seconds"] for run in runs.values())))
    return tuned


def wrapped(text: str) -> list[str]:
    """Lines of a comment."""
    lines = ["#"]
    for word in text.split(" "):
        if len(lines[-1]) + 1 + len(word) > WIDTH and lines[-1] != "#":
            lines.append("#")
        lines[-1] += " " + word
    return lines


def hours(seconds: float) -> str:
    minutes = max(1, round(seconds / 60))
    return f"{seconds / 3600:.1f} hours" if minutes >= 90 else f"{minutes} minute{'s' if minutes > 1 else ''}"


def written(header: list[str], name: str, record_name: str, sweep: Sweep, variants: list[str], grid: list[str]) -> str:
    lines = [*header, f"sweep: {name}", f"record: {record_name}", *sweep.shared, "variants:", *variants, "grid:", *grid]
    return "\n".join(lines) + "\n"


def second_stage(sweep: Sweep, tuned: list[Tuned], seeds: list[int], folder: Path) -> str:
    """The sweep file, which will lie in `folder`: the rate is a key of each variant, beside its name, and leaves the grid."""
    name = f"{sweep.name}-seeds"
    seconds = len(seeds) * sum(of.seconds for of in tuned)
    header = wrapped(f"The second stage of {sweep.path.name}: {len(tuned)} variants, each at its best rate in the record of the first "
                     f"stage, with {len(seeds)} fresh seeds. Written by benchmarks/second_stage.py. {len(tuned) * len(seeds)} runs. "
                     f"Expected: {hours(seconds)} of a core in all, by the quickest runs of the first stage.")
    for of in tuned:
        variant, rate, loss, gap, said = of.row()
        header += wrapped(f"  {variant}: {rate}, loss {loss}" + (f"; next {gap}" if gap else "") + (f"; {said}" if said else ""))
    variants = [f"  - {{{', '.join([f'label: {quoted(of.variant.name)}', *of.variant.keys, f'optim.lr: {rate_text(of.best)}'])}}}"
                for of in tuned]
    return written(header, name, sweep.record_from(folder, name), sweep, variants, [f"  train.seed: [{', '.join(map(str, seeds))}]"])


def further_rate(sweep: Sweep, tuned: list[Tuned], end: str) -> str | None:
    """The sweep of one rate more for the variants whose best is at this end; None when there are none. It shares the record,
    so that of its runs only the new ones are trained, and its table has the whole curve."""
    ending = [of for of in tuned if of.end == end]
    if not ending:
        return None
    rates = sorted({rate for of in ending for rate in [*of.losses, of.further()]})
    new = [(of, rate) for of in ending for rate in rates if rate not in of.losses]
    name = f"{sweep.name}-{'lower' if end == 'lowest' else 'higher'}"
    header = wrapped(f"One rate more for the variants of {sweep.path.name} whose best rate was the {end} that was tried. Written by "
                     f"benchmarks/second_stage.py. {len(rates) * len(ending) * len(sweep.seeds)} runs, of which "
                     f"{len(new) * len(sweep.seeds)} new; the others stand in the record, which the two sweeps share. Expected: "
                     f"{hours(sum(of.seconds for of, _ in new) * len(sweep.seeds))} of a core in all, by the seconds of those.")
    variants = [f"  - {{{', '.join([f'label: {quoted(of.variant.name)}', *of.variant.keys])}}}" for of in ending]
    grid = [f"  optim.lr: [{', '.join(map(rate_text, rates))}]", f"  train.seed: [{', '.join(map(str, sweep.seeds))}]"]
    return written(header, name, sweep.record_from(sweep.path.parent, sweep.record.stem), sweep, variants, grid)


def table(rows: list[list[str]]) -> str:
    rows = [["variant", "best", "loss", "next best", ""], *rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweep", type=Path, help="the sweep file of the first stage")
    parser.add_argument("--variants", nargs="+", metavar="NAME", help="as its table names them; default: all")
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS, help="default: 11 to 15")
    parser.add_argument("--out", type=Path, help="the second stage's file; default: NAME-seeds.yaml beside the first")
    parser.add_argument("--further", action="store_true", help="write the sweeps of a further rate, and no second stage")
    parser.add_argument("--anyway", action="store_true", help="write the second stage also where a best rate is at an end")
    arguments = parser.parse_args()
    try:
        sweep = read_sweep(arguments.sweep)
        if not sweep.record.is_file():
            raise Failure(f"{sweep.path}: expected its record {sweep.record}, which is not there")
        stale = sorted(set(arguments.seeds) & set(sweep.seeds))
        if stale:
            raise Failure(f"--seeds: expected seeds that the first stage did not use, got {stale[0]}")
        tuned = tune(sweep, arguments.variants or [variant.name for variant in sweep.variants], record.read(sweep.record))
    except (Failure, OSError) as error:
        sys.exit(f"second_stage: {error}")
    print(table([of.row() for of in tuned]))
    files: dict[Path, str] = {}
    ends = {"lowest": "lower", "highest": "higher"}
    if arguments.further:
        made = {end: further_rate(sweep, tuned, end) for end in ends}
        files = {sweep.path.with_name(f"{sweep.name}-{ends[end]}.yaml"): text for end, text in made.items() if text}
    elif not arguments.anyway and any(of.end for of in tuned):
        print("second_stage: nothing written: a better rate may lie beyond; --further writes the sweep of one rate more, --anyway the "
              "second stage as it is", file=sys.stderr)
        return 1
    else:
        out = arguments.out or sweep.path.with_name(f"{sweep.name}-seeds.yaml")
        files = {out: second_stage(sweep, tuned, arguments.seeds, out.parent)}
    for file, text in files.items():
        file.write_text(text, encoding="utf-8")
        print(f"second_stage: {file}: {text.splitlines()[0].removeprefix('# ')} ...")
    if not files:
        print("second_stage: no best rate is at an end; nothing written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
