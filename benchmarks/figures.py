#!/usr/bin/env python3
"""The figures of docs/inside.md: trains the runs of configs/figures/inside.yaml, looks into each with `siamese analyze`, keeps
what the figures show in docs/results/inside.jsonl, and draws them from that.

    benchmarks/figures.py                          trains and analyses what is missing in runs/figures, then draws
    benchmarks/figures.py --render                 draws what is in the record; nothing is trained
"""

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
from plot import Panel, Series, draw  # noqa: E402
from render import table, write_between  # noqa: E402

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
RECORD, PAGE = ROOT / "docs/results/inside.jsonl", ROOT / "docs/inside.md"
SWEEP, RUNS = "configs/figures/inside.yaml", ROOT / "runs/figures"
BIN = 25  # steps that a point of a curve over training is the mean of
# Every stream that is drawn: scheme, its name there, ours, its colour; the same colour in all figures.
STREAMS = [("pre", "h", "pre", "time"), ("post", "h", "post", "flops"), ("hybrid", "h", "hybrid", "third"),
           ("siamese", "X", "siamese X", "fourth"), ("siamese", "Y", "siamese Y", "fifth")]
SCHEMES = [("pre", "pre", "time"), ("post", "post", "flops"), ("hybrid", "hybrid", "third"), ("siamese", "siamese", "fourth")]


def siamese(binary: Path, *words: str) -> None:
    command = [str(binary), *words]
    run = subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    if run.returncode != 0:
        sys.exit(f"figures: {' '.join(command)}: exit {run.returncode}")


def curve(metrics: Path) -> tuple[list[int], list[float]]:
    """The gradient norm of the whole model over training: means of BIN steps each, in the logarithm."""
    lines = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
    steps, norms = [], []
    for first in range(0, len(lines) - BIN + 1, BIN):
        found = [line["grad_norm"] for line in lines[first:first + BIN] if line["grad_norm"]]
        steps.append(first + BIN)
        norms.append(math.exp(mean(math.log(norm) for norm in found)))
    return steps, norms


def numbers(run: Path, analysis: dict) -> dict:
    """What the figures need of one run."""
    places = analysis["places"]

    def of_streams(number) -> dict[str, list[float]]:
        names = [stream["name"] for stream in places[-1]["streams"]]
        return {name: [number(next(s for s in place["streams"] if s["name"] == name)) for place in places] for name in names}

    steps, norms = curve(run / "metrics.jsonl")
    config = json.loads((run / "run.json").read_text(encoding="utf-8"))
    return {
        "scheme": analysis["scheme"], "seed": config["seed"], "step": analysis["step"], "loss": analysis["loss"],
        "parameters": analysis["parameters"], "samples": analysis["samples"], "lens_tokens": analysis["lens_tokens"],
        "rms": of_streams(lambda stream: stream["values"]["rms"]),
        "max": of_streams(lambda stream: stream["values"]["max"]),
        "lens": of_streams(lambda stream: stream["lens"]["agreement"]),
        "share": of_streams(lambda stream: stream["share"]),
        "lens_all": [place["lens"]["agreement"] for place in places],
        "changed_loss": analysis["changed_loss"],
        "without_block": [entry["loss"] for entry in analysis["ranges"] if entry["blocks"] == 1],
        "sink_first": [place["branch"]["sink_first"] for place in places if place["kind"] == "attention"],
        "steps": steps, "grad_norm": norms,
    }


def rounded(value):
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return {key: rounded(one) for key, one in value.items()} if isinstance(value, dict) else value


def measure(binary: Path, record: Path) -> None:
    siamese(binary, "sweep", SWEEP, "--out", str(RUNS.relative_to(ROOT)))
    lines = []
    for entry in json.loads((RUNS / "sweep.json").read_text(encoding="utf-8"))["runs"]:
        run = RUNS / entry["dir"]
        folder = run / "analysis" / (run / "latest").read_text(encoding="utf-8").strip()
        if not (folder / "analysis.json").is_file():
            siamese(binary, "analyze", str(run.relative_to(ROOT)), "--changed-samples", "16")
        analysis = json.loads((folder / "analysis.json").read_text(encoding="utf-8"))
        lines.append(json.dumps(rounded(numbers(run, analysis))))
    record.write_text("\n".join(lines) + "\n", encoding="utf-8")


class Runs:
    """The record, by scheme; every number is a mean over the seeds, with its range."""

    def __init__(self, record: Path):
        self.lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]

    def of(self, scheme: str) -> list[dict]:
        found = [line for line in self.lines if line["scheme"] == scheme]
        if not found:
            sys.exit(f"figures: expected runs of {scheme} in the record, got none")
        return found

    def series(self, name: str, colour: str, scheme: str, number, x=None, dashed: bool = False) -> Series:
        """`number(run)`: its values over x."""
        columns = list(zip(*[number(run) for run in self.of(scheme)]))
        places = [(at if x is None else x[at], values) for at, values in enumerate(columns) if None not in values]
        return Series(name, [at for at, _ in places], [mean(values) for _, values in places], colour, dashed=dashed,
                      points=False, spread=None if dashed else [(min(values), max(values)) for _, values in places])

    def mean(self, scheme: str, number) -> str:
        values = [number(run) for run in self.of(scheme)]
        return f"{mean(values):.3g} ({min(values):.3g} to {max(values):.3g})"


def of_stream(key: str, stream: str):
    return lambda run: run[key][stream]


def figures(runs: Runs) -> dict[str, tuple[str, list[Panel]]]:
    sites = list(range(0, len(runs.lines[0]["lens_all"]), 4))
    steps = runs.lines[0]["steps"]
    norms = [runs.series(name, colour, scheme, of_stream("rms", stream)) for scheme, stream, name, colour in STREAMS]
    outliers = [runs.series(name, colour, scheme, lambda run, of=stream: [a / b for a, b in zip(run["max"][of], run["rms"][of])])
                for scheme, stream, name, colour in STREAMS]
    gradients = [runs.series(name, colour, scheme, lambda run: run["grad_norm"], x=steps) for scheme, name, colour in SCHEMES]
    pruning = [runs.series(name, colour, scheme, lambda run: [loss - run["changed_loss"] for loss in run["without_block"]])
               for scheme, name, colour in SCHEMES]
    highest = max(high for series in pruning for _, high in series.spread)
    lens = [runs.series(name, colour, scheme, of_stream("lens", stream)) for scheme, stream, name, colour in STREAMS
            if scheme in ("pre", "siamese")]
    lens.append(runs.series("siamese, both", "flops", "siamese", lambda run: run["lens_all"], dashed=True))
    shares = [runs.series(name, colour, scheme, of_stream("share", stream)) for scheme, stream, name, colour in STREAMS
              if scheme == "siamese"]
    return {
        "inside-norms.svg": ("Size of the streams by depth, and gradient norm over training", [
            Panel("Hidden states by depth", "site", "root mean square", norms, logarithmic=False, logarithmic_y=True, x_ticks=sites),
            Panel("Gradient norm over training", "step", f"norm, mean of {BIN} steps", gradients, logarithmic=False,
                  logarithmic_y=True, x_ticks=[step for step in steps if step % 100 == 0])]),
        "inside-lens.svg": ("Agreement of each stream with the output, and share of each stream", [
            Panel("Lens: first choice as the output's", "site", "share of tokens", lens, logarithmic=False, y_range=(0, 1.02),
                  x_ticks=sites),
            Panel("Contribution to what is read", "site", "share", shares, logarithmic=False, y_range=(0, 1.02), x_ticks=sites)]),
        "inside-pruning.svg": ("Loss with one block left out, and largest values of the streams", [
            Panel("One block left out", "block", "rise of the held-out loss", pruning, logarithmic=False,
                  y_range=(min(0.0, *(low for s in pruning for low, _ in s.spread)), 1.05 * highest)),
            Panel("Largest value by depth", "site", "largest / RMS", outliers, logarithmic=False, logarithmic_y=True,
                  x_ticks=sites)]),
    }


def tables(runs: Runs) -> str:
    def last(key: str, stream: str):
        return lambda run: run[key][stream][-1]

    close = table(["stream at the close", "root mean square", "largest / root mean square", "agrees with the output", "share in the output"], [
        [name, runs.mean(scheme, last("rms", stream)),
         runs.mean(scheme, lambda run, of=stream: run["max"][of][-1] / run["rms"][of][-1]),
         runs.mean(scheme, last("lens", stream)) if scheme == "siamese" else "the output itself",
         runs.mean(scheme, last("share", stream)) if scheme == "siamese" else "all"] for scheme, stream, name, _ in STREAMS])
    whole = table(["scheme", "held-out loss", "gradient norm, last 100 steps", "largest rise without one block", "weight on the first token, last block"], [
        [name, runs.mean(scheme, lambda run: run["loss"]),
         runs.mean(scheme, lambda run: mean(run["grad_norm"][-100 // BIN:])),
         runs.mean(scheme, lambda run: max(run["without_block"]) - run["changed_loss"]),
         runs.mean(scheme, lambda run: run["sink_first"][-1])] for scheme, name, _ in SCHEMES])
    seeds = len(runs.of("siamese"))
    one = runs.lines[0]
    return (f"\nMeans of {seeds} seeds, with their range, after {one['step']} steps; {one['samples']} held-out samples, "
            f"{one['lens_tokens']} tokens read by lenses.\n\n{close}\n{whole}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--render", action="store_true", help="train and analyse nothing")
    parser.add_argument("--record", type=Path, default=RECORD)
    parser.add_argument("--out", type=Path, default=PAGE, help="the page; figures go beside it")
    parser.add_argument("--binary", type=Path, default=ROOT / "build/release/siamese")
    arguments = parser.parse_args()
    if not arguments.render:
        measure(arguments.binary, arguments.record)
    runs = Runs(arguments.record)
    for name, (title, panels) in figures(runs).items():
        (arguments.out.parent / name).write_text(draw(title, panels), encoding="utf-8")
    write_between(arguments.out, BEGIN, END, tables(runs), "Inside")
    print(f"figures: {arguments.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
