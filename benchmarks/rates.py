#!/usr/bin/env python3
"""docs/learning-rates.svg: what each scheme learned at each learning rate, from the runs of docs/results/stability.jsonl.

    benchmarks/rates.py                      draws the plot anew; nothing is trained
"""

import argparse
import json
import sys
from pathlib import Path
from statistics import mean

sys.path.insert(0, str(Path(__file__).resolve().parent))

from plot import Panel, Series, draw  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
RECORD, OUT = ROOT / "docs/results/stability.jsonl", ROOT / "docs/learning-rates.svg"
COLOURS = ("time", "flops", "third", "fourth")
# A panel each; the names of the record beside those of the legend.
PANELS = {
    "Learn at every rate that was tried": {"pre": "Pre-Norm", "siamese": "SiameseNorm", "siamese(x=hybrid)": "its hybrid form",
                                           "pre, attention_norm=qkv": "Pre-Norm with q/k/v norms"},
    "Learn nothing at the highest": {"post": "Post-Norm", "hybrid": "HybridNorm", "deepnorm": "DeepNorm", "span": "SpanNorm"},
}


def losses(record: Path) -> dict[str, dict[float, list[float]]]:
    """variant -> learning rate -> held-out losses of its seeds."""
    found: dict[str, dict[float, list[float]]] = {}
    for line in record.read_text(encoding="utf-8").splitlines():
        run = json.loads(line)
        found.setdefault(run["variant"], {}).setdefault(run["lr"], []).append(run["val_loss"])
    return found


def series(name: str, runs: dict[float, list[float]], colour: str) -> Series:
    rates = sorted(runs)
    return Series(name, rates, [mean(runs[rate]) for rate in rates], colour,
                  spread=[(min(runs[rate]), max(runs[rate])) for rate in rates])


def plot(record: Path) -> str:
    found = losses(record)
    panels = []
    for title, variants in PANELS.items():
        missing = [variant for variant in variants if variant not in found]
        if missing:
            sys.exit(f"rates: {record}: expected runs of '{missing[0]}', got {', '.join(found)}")
        panels.append(Panel(title, "learning rate", "held-out loss",
                            [series(name, found[variant], colour)
                             for (variant, name), colour in zip(variants.items(), COLOURS)], y_range=(0.9, 2.4)))
    seeds = {len(runs) for variant in found.values() for runs in variant.values()}
    count = f"{min(seeds)} seeds" if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)} seeds"
    return draw(f"Held-out loss by learning rate, mean and range of {count}, {sum(len(r) for v in found.values() for r in v.values())}"
                " runs", panels)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", type=Path, default=RECORD, help="lines of a sweep over learning rates and seeds")
    parser.add_argument("--out", type=Path, default=OUT, help="the plot")
    arguments = parser.parse_args()
    arguments.out.write_text(plot(arguments.record), encoding="utf-8")
    print(f"rates: {arguments.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
