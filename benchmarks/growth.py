#!/usr/bin/env python3
"""How time and memory of a training step grow: runs `siamese bench growth`, keeps what it said in
docs/results/growth.jsonl, and makes the plots and tables of docs/growth.md from that.

    benchmarks/growth.py                           measures (four minutes, with nothing else running), then draws
    benchmarks/growth.py --render                  draws what is in the record
"""

import argparse
import datetime
import json
import math
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
from plot import Panel, Series, draw  # noqa: E402
from render import table, write_between  # noqa: E402
from run import commit  # noqa: E402

BEGIN = "<!-- growth: begin -->"
END = "<!-- growth: end -->"
AXES = {"depth": "blocks", "width": "width", "context": "tokens of a sample", "batch": "samples of a step"}


def measure(binary: Path, words: list[str]) -> dict:
    command = [str(binary), "bench", "growth", *words, "--json"]
    run = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"growth: {' '.join(command)}: exit {run.returncode}")
    labels = {"command": " ".join(["siamese", "bench", "growth", *words]), "date": datetime.date.today().isoformat(),
              "commit": commit()}
    return labels | json.loads(run.stdout.strip().splitlines()[-1])


def points(result: dict, axis: str, recompute: bool = False) -> list[dict]:
    return [point for point in result["points"] if (point["axis"], point["recompute"]) == (axis, recompute)]


def fit(result: dict, axis: str, recompute: bool = False) -> dict:
    return next(fit for fit in result["fits"] if (fit["axis"], fit["recompute"]) == (axis, recompute))


def time_panel(result: dict, axis: str) -> Panel:
    """Measured times, and times that would be proportional to FLOPs: at the mean rate of the axis."""
    found, of = points(result, axis), fit(result, axis)
    x = [point["value"] for point in found]
    ms = [point["median_ms"] for point in found]
    rate = math.exp(sum(math.log(point["median_ms"] / point["gflop"]) for point in found) / len(found))
    title = f"{axis}: exponent of time {of['time']:.2f}, of FLOPs {of['flops']:.2f}"
    return Panel(title, AXES[axis], "ms a step", [
        Series("proportional to FLOPs", x, [rate * point["gflop"] for point in found], "flops", dashed=True),
        Series("measured", x, ms, "time", line=False)])


def memory_panel(result: dict) -> Panel:
    """The activations of each depth."""
    series = [Series(f"{name} (^{fit(result, 'depth', recompute)['activations']:.2f})",
                     [point["value"] for point in points(result, "depth", recompute)],
                     [point["activations_mb"] for point in points(result, "depth", recompute)], colour)
              for name, recompute, colour in (("kept", False, "flops"), ("recomputed", True, "time"))]
    return Panel("activations and workspace", "blocks", "MB", series, logarithmic=False)


def step_panel(result: dict) -> Panel:
    series = [Series(name, [point["value"] for point in points(result, "depth", recompute)],
                     [point["median_ms"] for point in points(result, "depth", recompute)], colour)
              for name, recompute, colour in (("kept", False, "flops"), ("recomputed", True, "time"))]
    return Panel("time of a step", "blocks", "ms a step", series, logarithmic=False)


def draw_all(result: dict, folder: Path) -> None:
    (folder / "growth-time.svg").write_text(draw(
        "Step time against depth, width, context and batch", [time_panel(result, axis) for axis in AXES]))
    (folder / "growth-memory.svg").write_text(draw(
        "Memory and time against depth, with and without recomputation", [memory_panel(result), step_panel(result)]))


def tables(result: dict) -> str:
    def name(entry: dict) -> str:
        return entry["axis"] + (", every block recomputed" if entry["recompute"] else "")

    fits = table(["against", "points", "time", "FLOPs", "activations"], [
        [name(entry), str(entry["points"]), f"{entry['time']:.2f}", f"{entry['flops']:.2f}", f"{entry['activations']:.2f}"]
        for entry in result["fits"]])
    rows = table(["axis", "value", "step ms", "GFLOP a step", "GFLOP/s", "of peak", "activations MB"], [
        [name(point), str(point["value"]), f"{point['median_ms']:.1f}", f"{point['gflop']:.1f}", f"{point['gflops']:.1f}",
         f"{point['gflops'] / point['fma_gflops']:.0%}", f"{point['activations_mb']:.0f}"] for point in result["points"]])
    commit_text = f" of commit {result['commit']}" if result.get("commit") else ""
    return f"""
Measured {result['date']} with `{result['command']}`{commit_text} on {result['cpu']}, {result['cores']} cores, {result['simd']}
kernels, {result['threads']} threads, LibTorch {result['torch']}: scheme {result['scheme']}, {result['precision']}, medians of
{result['steps']} steps.

![Step time against depth, width, context and batch](growth-time.svg)

![Memory and time against depth, with and without recomputation](growth-memory.svg)

### Exponents

{fits}
### Points

{rows}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORD", help="config and overrides of `siamese bench growth`")
    parser.add_argument("--steps", default="5", help="timed at each point")
    parser.add_argument("--render", action="store_true", help="measure nothing")
    parser.add_argument("--record", type=Path, default=ROOT / "docs/results/growth.jsonl")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/growth.md", help="the page; plots go beside it")
    parser.add_argument("--binary", type=Path, default=ROOT / "build/release/siamese", help="what is measured")
    arguments = parser.parse_args()
    if not arguments.render:
        words = [*(arguments.words or ["bench/s"]), "--steps", arguments.steps]
        arguments.record.write_text(json.dumps(measure(arguments.binary.resolve(), words)) + "\n")
    result = json.loads(arguments.record.read_text().splitlines()[-1])
    draw_all(result, arguments.out.parent)
    write_between(arguments.out, BEGIN, END, tables(result), "Growth")
    print(f"wrote {arguments.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
