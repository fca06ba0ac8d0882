#!/usr/bin/env python3
"""Our chart code beside uPlot, in Chromium: the same curves, drawn first, drawn again, zoomed, read under the pointer.

    npm pack uplot && tar xzf uplot-*.tgz
    benchmarks/charts.py package [--runs 200] [--points 512] [--repeats 7]

Prints medians in ms. "page" is until the script has handed everything over; "shown" until the second frame after it, so
with layout and painting (a canvas paints its commands after the script, and SVG after layout); "core" is what all
processes of the browser took of a processor, which is what counts where others use the machine, too.
"""

import argparse
import gzip
import json
import pathlib
import statistics
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "browser"))
import devtools
from watch import browser_seconds

ASSETS = ROOT / "siamese" / "report" / "assets"
OURS = ("dom.js", "format.js", "colors.js", "scale.js", "svg_file.js", "chart_draw.js", "chart.js")
REPLACED = ("scale.js", "chart_draw.js", "chart.js")  # what a library would stand for
STYLES = ("base.css", "components.css")

CURVES = """
const X = Array.from({ length: POINTS }, (_, at) => 10 * at + 5);
const curve = (run, turn) => X.map((x, at) => 0.5 + 0.1 * (run % 8) + 2 * Math.exp(-x / 1000) + 0.05 * (((at * 7919 + run * 31 + turn) % 97) / 97));
const CURVES = [0, 1].map((turn) => Array.from({ length: RUNS }, (_, run) => curve(run, turn)));
const frames = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
const timed = async (work) => {
  await frames();
  const begin = performance.now();
  work();
  await Promise.resolve();  // uPlot draws at the end of the task
  const page = performance.now() - begin;
  await frames();
  return { page, shown: performance.now() - begin };
};
const hue = (run) => `hsl(${45 * (run % 8)} 60% 45%)`;
"""

OUR_DRAWING = """
const content = (turn) => ({ series: CURVES[turn].map((y, run) => ({ name: "run " + run, color: hue(run), x: X, y, width: 1, opacity: 0.55 })) });
let chart = null;
const first = () => {
  document.body.replaceChildren();
  chart = createChart({ title: "Loss", xLabel: "step", height: 380, yLog: true });
  document.body.append(chart.node);
  chart.update(content(0));
};
const again = (turn) => chart.update(content(turn));
const zoom = (turn) => chart.update({ ...content(0), scales: { xDomain: turn ? [1000, 3000] : null } });
const plot = () => document.querySelector(".plot");
"""

UPLOT_DRAWING = """
let chart = null;
const options = { width: 1300, height: 380, scales: { x: { time: false }, y: { distr: 3 } }, legend: { show: false },
  series: [{}, ...CURVES[0].map((_, run) => ({ label: "run " + run, stroke: hue(run), width: 1, points: { show: false } }))] };
const first = () => { document.body.replaceChildren(); chart = new uPlot(options, [X, ...CURVES[0]], document.body); };
const again = (turn) => chart.setData([X, ...CURVES[turn]]);
const zoom = (turn) => chart.setScale("x", turn ? { min: 1000, max: 3000 } : { min: X[0], max: X[X.length - 1] });
const plot = () => document.querySelector(".u-over");
"""

POINT = """
const point = (turn) => { const box = plot().getBoundingClientRect();
  for (const kind of ["pointermove", "mousemove"]) plot().dispatchEvent(new (kind === "pointermove" ? PointerEvent : MouseEvent)(kind,
    { clientX: box.left + box.width * (0.3 + 0.01 * turn), clientY: box.top + box.height / 2, bubbles: true })); };
"""


def page_text(styles, scripts, options):
    sizes = f"const RUNS = {options.runs}, POINTS = {options.points};"
    return (f'<!doctype html><meta charset="utf-8"><style>{styles}</style><body></body>'
            + "".join(f"<script>{text}</script>" for text in (*scripts[:-1], sizes + CURVES + scripts[-1] + POINT)))


def measure(browser, file, name, options):
    page = devtools.Page(browser, 1400)
    page.open(file)
    print(name)
    for what, call in (("drawn first", "first()"), ("drawn again", "again(%d)"), ("zoomed", "zoom(%d)"), ("under the pointer", "point(%d)")):
        took, before = [], browser_seconds(browser)
        for turn in range(options.repeats):
            took.append(page.ask(f"timed(() => {{ {call.replace('%d', str((turn + 1) % 2))} }})"))
        core = 1000 * (browser_seconds(browser) - before) / options.repeats
        median = {key: statistics.median(one[key] for one in took) for key in took[0]}
        print(f"  {what:18} page {median['page']:6.1f}  shown {median['shown']:6.1f}  core {core:6.0f}")
    elements = page.ask("document.querySelectorAll('*').length")
    heap = page.ask("performance.memory.usedJSHeapSize") / 2**20
    print(f"  {elements} elements, heap {heap:.1f} MB")
    if options.pictures:
        import base64
        shot = page.call("Page.captureScreenshot")["data"]
        (pathlib.Path(options.pictures) / (name + ".png")).write_bytes(base64.b64decode(shot))
    if page.complaints():
        sys.exit("the page complains: " + json.dumps(page.complaints()))
    page.call("Page.navigate", url="about:blank")


def size_text(files):
    text = b"".join(file.read_bytes() for file in files)
    return f"{len(text) / 1000:.1f} kB, {len(gzip.compress(text, 9)) / 1000:.1f} kB with gzip"


def main(options):
    library = [options.uplot / "dist" / name for name in ("uPlot.iife.min.js", "uPlot.min.css")]
    print(f"uPlot {json.loads((options.uplot / 'package.json').read_text())['version']}: {size_text(library)}; "
          f"what it would replace, as it is embedded: {size_text([ASSETS / name for name in REPLACED])}")
    with tempfile.TemporaryDirectory(prefix="siamese_charts_") as made, devtools.Browser() as browser:
        for name, styles, scripts in (
                ("ours", [ASSETS / one for one in STYLES], [*[(ASSETS / one).read_text() for one in OURS], OUR_DRAWING]),
                ("uPlot", library[1:], [library[0].read_text(), UPLOT_DRAWING])):
            file = pathlib.Path(made) / (name + ".html")
            file.write_text(page_text("".join(one.read_text() for one in styles), scripts, options))
            measure(browser, file, name, options)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("uplot", type=pathlib.Path, help="the unpacked package of npm")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--points", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--pictures", help="a folder for a picture of each")
    main(parser.parse_args())
