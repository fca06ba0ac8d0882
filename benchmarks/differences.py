#!/usr/bin/env python3
"""Plots of how far each variant of a sweep ends from the first, at the best rate of each: the mean of the seeds, its 95 %
interval and every seed.

    benchmarks/differences.py                  draws every plot of PLOTS that is recorded whole; nothing is trained
    benchmarks/differences.py text-seeds       that one alone; where a run is missing, an error
    benchmarks/differences.py text-seeds --record F --out P     from another record, to another file
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from statistics import mean

sys.path.insert(0, str(Path(__file__).resolve().parent))

import record  # noqa: E402
from plot import STYLE, Scale, number  # noqa: E402
from rates import bits  # noqa: E402
from recorded_plots import Failure, command, record_of  # noqa: E402
from result_tables import at_best_rate, interval  # noqa: E402

WIDTH, ROW, TOP, BOTTOM = 760, 30, 64, 46
LEFT, RIGHT = 210, 540  # of the axis; names stand before it, numbers behind


@dataclass(frozen=True)
class Plot:
    out: str
    title: str
    names: dict[str, str]  # of the record beside those of the plot; the first is what the others are held against
    seeds: int  # of each variant
    what: str = "held-out loss"
    scale: Callable[[float], float] = float  # of a loss


@dataclass(frozen=True)
class Row:
    name: str
    of_seeds: list[float]

    @property
    def interval(self) -> tuple[float, float]:
        return interval(self.of_seeds)


PLOTS = {  # by the name of the record
    "text-seeds": Plot(
        "text-seeds.svg", "English text, byte by byte",
        {"pre": "Pre-Norm", "span": "SpanNorm", "siamese": "SiameseNorm", "siamese(x=hybrid)": "SiameseNorm, hybrid form",
         "pre, attention_norm=qkv": "Pre-Norm with q/k/v norms", "attn_res(block=3)": "Attention Residuals", "post": "Post-Norm"},
        seeds=5, what="bits per byte", scale=bits),
    "images-seeds": Plot(
        "images-seeds.svg", "Fashion-MNIST, vision Transformer of 12 blocks",
        {"pre": "Pre-Norm", "post": "Post-Norm", "siamese": "SiameseNorm", "attn_res(block=3)": "Attention Residuals"}, seeds=5),
}


def rows(plot: Plot, lines: list[dict], source: Path) -> list[Row]:
    """Lowest mean first."""
    losses = {variant: at_best_rate(lines, variant) for variant in plot.names}
    for variant, of_variant in losses.items():
        if len(of_variant) != plot.seeds:
            raise Failure(f"{source}: {variant}: expected {plot.seeds} seeds that ended, got {len(of_variant)}")
    reference, *others = plot.names
    made = [Row(plot.names[variant], [plot.scale(losses[variant][seed]) - plot.scale(losses[reference][seed])
                                      for seed in sorted(losses[reference].keys() & losses[variant].keys())]) for variant in others]
    return sorted(made, key=lambda row: mean(row.of_seeds))


def draw_row(row: Row, y: float, sx: Scale) -> list[str]:
    low, high = row.interval
    at = mean(row.of_seeds)
    return [f'<text x="{LEFT - 14}" y="{y + 4:.1f}" text-anchor="end">{escape(row.name)}</text>',
            *(f'<circle class="flops" cx="{sx(value):.1f}" cy="{y:.1f}" r="2.5" opacity="0.7"/>' for value in row.of_seeds),
            f'<path class="time" d="M{sx(low):.1f} {y:.1f} H{sx(high):.1f}"/>',
            f'<circle class="time" cx="{sx(at):.1f}" cy="{y:.1f}" r="5"/>',
            f'<text x="{RIGHT + 14}" y="{y + 4:.1f}">{at:+.3f} ({low:+.3f} to {high:+.3f})</text>']


def draw(plot: Plot, shown: list[Row]) -> str:
    values = [0.0, *(value for row in shown for value in (*row.interval, *row.of_seeds))]
    room = 0.04 * (max(values) - min(values))
    sx = Scale(min(values) - room, max(values) + room, LEFT, RIGHT, logarithmic=False)
    height = TOP + ROW * len(shown) + BOTTOM
    bottom = height - BOTTOM
    reference = next(iter(plot.names.values()))
    about = f"{plot.what} less than or beyond {reference}'s: mean and 95 % interval of {plot.seeds} seeds, each seed a small dot"
    parts = [f'<text class="title" x="{LEFT}" y="22">{escape(plot.title)}</text>',
             f'<text x="{LEFT}" y="42">&#8592; better than {escape(reference)}</text>',
             f'<text x="{RIGHT}" y="42" text-anchor="end">worse &#8594;</text>']
    for tick in sx.ticks:
        x = sx(tick)
        parts.append(f'<line class="{"axis" if tick == 0 else "grid"}" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{bottom}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{"+" if tick > 0 else ""}{number(tick)}</text>')
    for index, row in enumerate(shown):
        parts += draw_row(row, TOP + ROW * (index + 0.5), sx)
    parts.append(f'<text x="{(LEFT + RIGHT) / 2}" y="{height - 8}" text-anchor="middle">difference in {escape(plot.what)} at the best rate of each; bar: 95 % interval of '
                 f'{plot.seeds} seeds; small: seeds</text>')
    body = "\n  ".join(parts)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="title">\n'
            f'  <title id="title">{escape(plot.title)}: {escape(about)}</title>\n  <style>{STYLE}\n  </style>\n'
            f'  <rect class="ground" width="{WIDTH}" height="{height}"/>\n  {body}\n</svg>\n')


def made(name: str, source: Path) -> str:
    return draw(PLOTS[name], rows(PLOTS[name], record.read(source), source))


def is_recorded(name: str) -> bool:
    """Whether every seed of every variant is there."""
    lines = record.read(record_of(name)) if record_of(name).is_file() else []
    return all(len(at_best_rate(lines, variant)) == PLOTS[name].seeds for variant in PLOTS[name].names)


if __name__ == "__main__":
    sys.exit(command(__doc__, PLOTS, made, is_recorded))
