#!/usr/bin/env python3
"""What recording costs (docs/run-directory.md): trains some steps of the bench shapes, every fifth of them recorded, and
compares each recorded step with the steps around it.

    benchmarks/recording.py build/release/siamese [--shapes s,d,m] [--schemes pre,siamese,hc] [--recorded 12]

Prints a row for each shape and scheme: the median step that records nothing, the median of what a recorded step takes
longer than the mean of its two neighbours, with the quartiles of that, and the share of all time at the default of every 50
steps. What a step takes varies; a negative number says that recording is less than that.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median, quantiles

EVERY = 5
BY_DEFAULT = 50


def extra_ms(steps: list[dict]) -> tuple[float, list[float]]:
    """The median of steps that record nothing, and of each recorded one how much longer it took than its neighbours."""
    times = [step["step_ms"] for step in steps]
    recorded = [at for at, step in enumerate(steps) if "sites" in step]
    plain = [time for at, time in enumerate(times) if at not in recorded and at > 0]
    around = [times[at] - (times[at - 1] + times[at + 1]) / 2 for at in recorded if 1 < at < len(times) - 1]
    return median(plain), around


def measure(binary: str, shape: str, scheme: str, recorded: int) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        words = ["train", f"bench/{shape}", f"model.residual={scheme}", f"train.steps={EVERY * (recorded + 2)}",
                 f"train.record_every={EVERY}", "train.eval_every=0", "train.checkpoint_every=0", "--out", str(run)]
        done = subprocess.run([binary, *words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"recording: siamese {' '.join(words)}: exit {done.returncode}\n{done.stderr.strip()}")
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    plain, extra = extra_ms([line for line in lines if "step_ms" in line])
    low, middle, high = quantiles(extra, n=4)
    return [shape.upper(), scheme, f"{plain:.1f}", f"{middle:+.1f}", f"{low:+.1f} to {high:+.1f}",
            f"{middle / (BY_DEFAULT * plain + middle):+.3%}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--shapes", default="s,d,m")
    parser.add_argument("--schemes", default="pre,siamese,hc,attn_res(block=3)")
    parser.add_argument("--recorded", type=int, default=12, help="recorded steps of each")
    options = parser.parse_args()
    header = ["", "scheme", "step ms", "a recorded one ms longer", "quartiles", f"every {BY_DEFAULT} steps"]
    for cells in (header, ["---"] * len(header)):
        print("| " + " | ".join(cells) + " |")
    for shape in options.shapes.split(","):
        for scheme in schemes_of(options.schemes):
            print("| " + " | ".join(measure(options.binary, shape, scheme, options.recorded)) + " |", flush=True)


def schemes_of(text: str) -> list[str]:
    """Split at the commas that stand outside of brackets."""
    found, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return found


if __name__ == "__main__":
    main()
