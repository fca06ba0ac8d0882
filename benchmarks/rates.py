#!/usr/bin/env python3
"""Plots of what each scheme learned at each learning rate, from the record of a sweep: a U-curve for each variant.

    benchmarks/rates.py                      draws every plot of PLOTS whose sweep is recorded; nothing is trained
    benchmarks/rates.py text                 that one alone; where nothing is recorded, an error
    benchmarks/rates.py stability --record F --out P     from another record, to another file
"""

import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

sys.path.insert(0, str(Path(__file__).resolve().parent))

from plot import Panel, Series, draw  # noqa: E402
from recorded_plots import Failure, command, record_of  # noqa: E402

COLOURS = ("time", "flops", "third", "fourth", "fifth")

Losses = dict[str, dict[float, list[float | None]]]  # variant -> learning rate -> of each seed; None: it diverged


@dataclass(frozen=True)
class Plot:
    out: str
    panels: dict[str, dict[str, str]]  # title -> names of the record beside those of the legend
    y_range: tuple[float, float] | None = None  # None: so that every point of every panel is seen
    label: str = "held-out loss"
    scale: Callable[[float], float] = float  # of a loss


def bits(loss: float) -> float:
    """Of a model of bytes."""
    return loss / math.log(2)


PLOTS = {  # by the name of the record
    "stability": Plot(
        "learning-rates.svg",
        {"Learn at every rate that was tried": {"pre": "Pre-Norm", "siamese": "SiameseNorm", "siamese(x=hybrid)": "its hybrid form",
                                                "pre, attention_norm=qkv": "Pre-Norm with q/k/v norms"},
         "Learn nothing at the highest": {"post": "Post-Norm", "hybrid": "HybridNorm", "deepnorm": "DeepNorm", "span": "SpanNorm"}},
        y_range=(0.9, 2.4)),
    "text": Plot(
        "text-rates.svg",
        {"Pre-Norm and SiameseNorm": {"pre": "Pre-Norm", "siamese": "SiameseNorm", "siamese(x=hybrid)": "its hybrid form",
                                      "pre, attention_norm=qkv": "Pre-Norm with q/k/v norms"},
         "Other schemes": {"post": "Post-Norm", "hybrid": "HybridNorm", "span": "SpanNorm", "attn_res(block=3)": "Attention Residuals",
                           "mhc": "mHC"}},
        y_range=(1.85, 2.13), label="bits per byte", scale=bits),
}


def losses(record: Path) -> Losses:
    found: Losses = {}
    for line in record.read_text(encoding="utf-8").splitlines():
        run = json.loads(line)
        ended = run.get("status", "finished") != "diverged" and run["val_loss"] is not None
        found.setdefault(run["variant"], {}).setdefault(run["lr"], []).append(run["val_loss"] if ended else None)
    return found


def series(name: str, runs: dict[float, list[float | None]], colour: str, scale: Callable[[float], float] = float) -> Series:
    """The mean of the seeds that did not diverge, with a bar from the lowest to the highest. A rate at which all did has no
    point."""
    ended = {rate: [scale(loss) for loss in runs[rate] if loss is not None] for rate in sorted(runs)}
    ended = {rate: values for rate, values in ended.items() if values}
    return Series(name, list(ended), [mean(values) for values in ended.values()], colour,
                  spread=[(min(values), max(values)) for values in ended.values()])


def span(lines: list[Series]) -> tuple[float, float]:
    """From the lowest to the highest value, and a little more."""
    values = [value for line in lines for both in line.spread or [] for value in both]
    low, high = min(values), max(values)
    room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return low - room, high + room


def title(found: Losses, label: str) -> str:
    counts = {len(runs) for variant in found.values() for runs in variant.values()}
    seeds = f"{min(counts)} seed{'' if max(counts) == 1 else 's'}" if len(counts) == 1 else f"{min(counts)} to {max(counts)} seeds"
    of_all = [loss for variant in found.values() for runs in variant.values() for loss in runs]
    what = f"one seed, {len(of_all)} runs" if counts == {1} else f"mean and range of {seeds}, {len(of_all)} runs"
    diverged = of_all.count(None)
    return f"{label[:1].upper()}{label[1:]} by learning rate, {what}" + (f", without {diverged} that diverged" if diverged else "")


def plot(name: str, record: Path) -> str:
    what = PLOTS[name]
    found = losses(record)
    shown = {}
    for heading, variants in what.panels.items():
        missing = [variant for variant in variants if variant not in found]
        if missing:
            raise Failure(f"{record}: expected runs of '{missing[0]}', got {', '.join(found) or 'none'}")
        if len(variants) > len(COLOURS):
            raise Failure(f"{name}: {heading}: expected at most {len(COLOURS)} variants, got {len(variants)}")
        lines = [series(label, found[variant], colour, what.scale)
                 for (variant, label), colour in zip(variants.items(), COLOURS, strict=False)]
        shown[heading] = [line for line in lines if line.x]  # one that always diverged is in the tables
    y_range = what.y_range or span([line for lines in shown.values() for line in lines])
    panels = [Panel(heading, "learning rate", what.label, lines, y_range=y_range) for heading, lines in shown.items() if lines]
    return draw(title({variant: found[variant] for of in what.panels.values() for variant in of}, what.label), panels)


def is_recorded(name: str) -> bool:
    """Whether every variant of a plot has a curve to show: runs at three rates."""
    found = losses(record_of(name)) if record_of(name).is_file() else {}
    return all(len(found.get(variant, {})) >= 3 for variants in PLOTS[name].panels.values() for variant in variants)


if __name__ == "__main__":
    sys.exit(command(__doc__, PLOTS, plot, is_recorded))
