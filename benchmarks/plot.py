"""Plots as SVG text: panels of two in a row, points and lines over linear or logarithmic axes. Colours follow the reader's
light or dark theme."""

import math
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 470, 300  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 62, 18, 68, 48
STYLE = """
    svg { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
    .ground { fill: #ffffff; }
    text { fill: #3c4450; font-size: 12px; }
    .title { fill: #1d232b; font-size: 14px; font-weight: 600; }
    .axis { stroke: #8a93a1; stroke-width: 1; fill: none; }
    .grid { stroke: #e3e7ed; stroke-width: 1; }
    .time { stroke: #1f66d1; fill: #1f66d1; }
    .flops { stroke: #c2570c; fill: #c2570c; }
    .third { stroke: #15803d; fill: #15803d; }
    .fourth { stroke: #7c3aed; fill: #7c3aed; }
    path { fill: none !important; stroke-width: 2; }
    @media (prefers-color-scheme: dark) {
      .ground { fill: #12161c; }
      text { fill: #aeb7c4; }
      .title { fill: #e6eaf0; }
      .grid { stroke: #2a313b; }
      .time { stroke: #6aa5ff; fill: #6aa5ff; }
      .flops { stroke: #ff9a52; fill: #ff9a52; }
      .third { stroke: #4ade80; fill: #4ade80; }
      .fourth { stroke: #b794ff; fill: #b794ff; }
    }"""

# Only in plots that have so many lines.
FIFTH_STYLE = """
    .fifth { stroke: #be123c; fill: #be123c; }
    @media (prefers-color-scheme: dark) {
      .fifth { stroke: #fb7185; fill: #fb7185; }
    }"""


@dataclass(frozen=True)
class Series:
    name: str
    x: list[float]
    y: list[float]
    colour: str  # a class of STYLE
    dashed: bool = False
    line: bool = True
    points: bool = True
    spread: list[tuple[float, float]] | None = None  # at each point, from the lowest to the highest


@dataclass(frozen=True)
class Panel:
    title: str
    x_label: str
    y_label: str
    series: list[Series]
    logarithmic: bool = True
    y_range: tuple[float, float] | None = None  # a linear y from here to there, whatever x is; above it: arrows
    x_ticks: list[float] | None = None  # where x is marked; else at every point
    logarithmic_y: bool = False  # with a linear x


class Scale:
    """Values to pixels, and the values that get a tick."""

    def __init__(self, low: float, high: float, begin: float, end: float, logarithmic: bool):
        self.map = math.log if logarithmic else float
        self.low, self.high, self.begin, self.end = self.map(low), self.map(high), begin, end
        self.ticks = self._logarithmic(low, high) if logarithmic else self._linear(low, high)

    def __call__(self, value: float) -> float:
        share = (self.map(value) - self.low) / ((self.high - self.low) or 1)
        return self.begin + share * (self.end - self.begin)

    @staticmethod
    def _logarithmic(low: float, high: float) -> list[float]:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        return [step * 10.0**power for power in powers for step in (1, 2, 5) if low <= step * 10.0**power <= high]

    @staticmethod
    def _linear(low: float, high: float) -> list[float]:
        rough = (high - low) / 5
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(unit * by for by in (1, 2, 5, 10) if unit * by >= rough)
        # step * i is not the number that a reader would write: 3 * 0.2.
        return [float(f"{step * i:.6g}") for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def number(value: float) -> str:
    return f"{value:g}" if value < 1e5 else f"{value:.0e}"


def draw_axes(panel: Panel, sx: Scale, sy: Scale) -> list[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = [f'<text class="title" x="{LEFT}" y="20">{escape(panel.title)}</text>',
             f'<text x="8" y="{TOP - 10}">{escape(panel.y_label)}</text>',
             f'<text x="{right}" y="{HEIGHT - 10}" text-anchor="end">{escape(panel.x_label)}</text>']
    for tick in sy.ticks:
        y = sy(tick)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{number(tick)}</text>')
    for tick in panel.x_ticks or sorted({x for series in panel.series for x in series.x}):
        x = sx(tick)
        parts.append(f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{bottom}" y2="{bottom + 4}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{number(tick)}</text>')
    parts.append(f'<path class="axis" d="M{LEFT} {TOP} V{bottom} H{right}"/>')
    return parts


def draw_series(series: Series, sx: Scale, sy: Scale, edge: float) -> list[str]:
    """What would stand above the edge stands at it, a point as an arrow."""
    places = [(sx(x), max(edge, sy(y))) for x, y in zip(series.x, series.y)]
    above = [sy(y) < edge for y in series.y]
    parts = []
    if series.line:
        dash = ' stroke-dasharray="6 4"' if series.dashed else ""
        way = " L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        parts.append(f'<path class="{series.colour}" d="M{way}"{dash}/>')
    for (low, high), (x, _) in zip(series.spread or [], places):
        parts.append(f'<path class="{series.colour}" d="M{x:.1f} {max(edge, sy(low)):.1f} V{max(edge, sy(high)):.1f}" opacity="0.45"/>')
    if series.points and not series.dashed:
        parts += [f'<path class="{series.colour}" d="M{x - 5:.1f} {y + 6} L{x:.1f} {y} L{x + 5:.1f} {y + 6}"/>' if higher
                  else f'<circle class="{series.colour}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for (x, y), higher in zip(places, above)]
    return parts


def draw_legend(panel: Panel) -> list[str]:
    parts, x, y = [], LEFT, 36
    for series in panel.series:
        wide = 50 + 7 * len(series.name)
        if x > LEFT and x + wide > WIDTH:  # a second row, above the label of y
            x, y = LEFT + 110, 52
        dash = ' stroke-dasharray="6 4"' if series.dashed else ""
        mark = (f'<path class="{series.colour}" d="M{x} {y} H{x + 24}"{dash}/>' if series.line
                else f'<circle class="{series.colour}" cx="{x + 12}" cy="{y}" r="4"/>')
        parts += [mark, f'<text x="{x + 30}" y="{y + 4}">{escape(series.name)}</text>']
        x += wide
    return parts


def draw_panel(panel: Panel) -> str:
    xs = [x for series in panel.series for x in series.x]
    ys = [y for series in panel.series for y in series.y]
    room = 1.15 if panel.logarithmic else 1.05
    log_y = panel.y_range is None and (panel.logarithmic or panel.logarithmic_y)
    low_x = min(xs) / room if panel.logarithmic else 0
    low_y = min(ys) / room if log_y else 0
    sx = Scale(low_x, max(xs) * room, LEFT, WIDTH - RIGHT, panel.logarithmic)
    low_y, high_y = panel.y_range or (low_y, max(ys) * room)
    sy = Scale(low_y, high_y, HEIGHT - BOTTOM, TOP, log_y)
    parts = draw_axes(panel, sx, sy) + draw_legend(panel)
    for series in panel.series:
        parts += draw_series(series, sx, sy, TOP if panel.y_range else -math.inf)
    return "\n    ".join(parts)


def draw(title: str, panels: list[Panel]) -> str:
    rows = math.ceil(len(panels) / 2)
    width, height = 2 * WIDTH, rows * HEIGHT
    groups = [f'  <g transform="translate({index % 2 * WIDTH} {index // 2 * HEIGHT})">\n    {draw_panel(panel)}\n  </g>'
              for index, panel in enumerate(panels)]
    fifth = any(series.colour == "fifth" for panel in panels for series in panel.series)
    style = STYLE + (FIFTH_STYLE if fifth else "")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-labelledby="title">\n'
            f'  <title id="title">{escape(title)}</title>\n  <style>{style}\n  </style>\n'
            f'  <rect class="ground" width="{width}" height="{height}"/>\n' + "\n".join(groups) + "\n</svg>\n")
