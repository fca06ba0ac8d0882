#!/usr/bin/env python3
"""The pages of `siamese report`, `siamese analyze` and `siamese watch` (live.py), in a real browser, at the width of a desk and of a hand.

    tests/browser/run.py --binary build/release/siamese [--keep FOLDER]

Trains three tiny runs, writes one page about them and asks Chromium (devtools.py): no error in the console, no request,
nothing wider than the window; then drives it as a reader would: zoom by dragging, back, axes from log to linear, the
horizontal axis by another measure, variants switched off and on, a table sorted, keys, the tooltip. --keep also leaves
the pages and pictures of them.
"""

import argparse
import base64
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import devtools
from live import WatchInABrowser  # noqa: F401  (its tests are run here)
from samples import SamplesInABrowser  # noqa: F401

TINY = ["model.width=16", "model.blocks=2", "model.heads=2", "train.batch=4", "train.steps=40", "train.eval_every=10",
        "train.record_every=10", "eval.batches=1", "engine.threads=1"]
RUNS = {
    "pre": ["arithmetic-small", "model.residual=pre", "model.context=24", "data.digits=1", "eval.problems=2"],
    "wide": ["arithmetic-small", "model.residual=siamese", "model.width=32", "model.context=24", "data.digits=1", "eval.problems=2",
             "optim.lr=5e-3", "train.steps=60"],
    "images": ["vit-micro", "model.residual=siamese"],
}

# What the tests ask the page for, by what a reader sees: a chart by its title, a button by its words.
HELPERS = """
window.card = (title) => [...document.querySelectorAll('.card.chart')].find(card => card.querySelector('h3').textContent === title);
window.button = (within, text) => [...within.querySelectorAll('button')].find(one => one.textContent.trim() === text);
window.place = (node) => { node.scrollIntoView({block: 'center'}); const box = node.getBoundingClientRect();
  return {x: box.x, y: box.y, width: box.width, height: box.height}; };
window.ticks = (title, axis) => [...window.card(title).querySelectorAll('.plot svg text')].map(one => one.textContent);
window.lines = (title) => [...window.card(title).querySelectorAll('.plot svg [data-group] path, .plot svg path[data-group]')].map(one => one.getAttribute('d'));
"""

WIDE, NARROW = 1400, 400
STABILITY = pathlib.Path(__file__).resolve().parents[2] / "configs" / "sweeps" / "stability.yaml"  # 72 recorded runs
SWEEP = "stability/report.html"


def siamese(*words, folder):
    result = subprocess.run([OPTIONS.binary, *map(str, words)], cwd=folder, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise AssertionError(f"siamese {' '.join(map(str, words))}: exit code {result.returncode}: {result.stderr}")
    return result.stdout


class ReportInABrowser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="siamese_report_")
        cls.folder = pathlib.Path(OPTIONS.keep or cls.temporary.name)
        cls.folder.mkdir(parents=True, exist_ok=True)
        for name, words in RUNS.items():
            own = {word.split("=")[0] for word in words}
            rest = [word for word in TINY if word.split("=")[0] not in own]
            siamese("train", *words, *rest, "--quiet", "--overwrite", "--out", name, folder=cls.folder)
        siamese("report", *RUNS, "--out", "page.html", "--csv", "table.csv", folder=cls.folder)
        siamese("report", "pre", folder=cls.folder)
        siamese("analyze", "images", "--samples", "4", "--all-ranges", "--out", "analysed", folder=cls.folder)
        siamese("analyze", "--compare", "pre", "wide", "--samples", "4", "--out", "both", folder=cls.folder)
        siamese("train", *RUNS["pre"], *[word for word in TINY if not word.startswith("model.blocks")], "model.blocks=3", "--quiet", "--overwrite", "--out", "deeper", folder=cls.folder)
        siamese("analyze", "--compare", "deeper", "wide", "--samples", "4", "--out", "deep", folder=cls.folder)
        siamese("sweep", STABILITY, "--out", "stability", folder=cls.folder)
        cls.browser = devtools.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.temporary.cleanup()

    def open(self, width, file="page.html"):
        page = devtools.Page(self.browser, width)
        page.open(self.folder / file)
        page.ask(HELPERS)
        self.addCleanup(lambda: self.assertEqual(page.complaints(), []))
        return page

    def picture(self, page, name):
        if not OPTIONS.keep:
            return
        shot = page.call("Page.captureScreenshot", captureBeyondViewport=True)
        (self.folder / name).write_bytes(base64.b64decode(shot["data"]))

    def press(self, page, card, text):
        page.press(f"button(card({card!r}), {text!r})")

    def too_wide(self, page):
        """What sticks out to the right of the window, and does not scroll within its own box."""
        return page.ask("""[...document.querySelectorAll('body *')].filter(node => {
          const box = node.getBoundingClientRect();
          if (!box.width || box.right <= window.innerWidth + 1) return false;
          for (let up = node.parentElement; up; up = up.parentElement)
            if (['auto', 'scroll', 'hidden'].includes(getComputedStyle(up).overflowX)) return false;
          return !node.closest('svg') || node.tagName === 'svg';
        }).map(node => node.tagName + '.' + node.className).slice(0, 5)""")

    def test_both_widths_show_everything_without_overflow(self):
        for width in (WIDE, NARROW):
            for file in ("page.html", "pre/report.html"):
                with self.subTest(width=width, file=file):
                    page = self.open(width, file)
                    self.assertLessEqual(page.ask("document.documentElement.scrollWidth"), width)
                    self.assertEqual(self.too_wide(page), [])
                    self.assertTrue(page.ask("card('Loss') !== undefined && lines('Loss').length > 0"))
                    self.picture(page, f"{file.replace('/', '-')}-{width}.png")

    def test_an_analysis_alone_and_side_by_side(self):
        for file, panels in (("analysed/analysis.html", 1), ("both/analysis.html", 2)):
            for width in (WIDE, NARROW):
                with self.subTest(width=width, file=file):
                    page = self.open(width, file)
                    self.assertLessEqual(page.ask("document.documentElement.scrollWidth"), width)
                    self.assertEqual(self.too_wide(page), [])
                    charts = page.ask("document.querySelectorAll('#lens .card.chart').length")
                    self.assertGreaterEqual(charts, 3 * panels)
                    self.assertEqual(charts % panels, 0)
                    self.assertTrue(page.ask("[...document.querySelectorAll('#lens .plot svg path.line')].every(one => one.getAttribute('d'))"))
                    self.assertIn("X", page.ask("document.querySelector('#use').textContent"))
                    self.assertGreater(page.ask("document.querySelectorAll('#peaks tbody tr').length"), 0)
                    tokens = page.ask("[...document.querySelectorAll('#peaks tbody tr')].map(row => row.cells[6].textContent)")
                    for token in tokens:  # its number and its text; of images none
                        self.assertRegex(token, "^\u2013$" if panels == 1 else r'^\d+ "[^"]+"$')
                    self.assertRegex(page.ask("document.body.textContent"), r"Effective depth, in sites[0-4] of 4")
                    self.assertEqual(page.ask("document.querySelectorAll('#similarity .map-plot image').length"), 2 * panels)
                    ranges = page.ask("[...document.querySelectorAll('#pruning .map-plot')].map(one => one.getAttribute('aria-label'))")
                    self.assertEqual(len(ranges), panels)  # of two blocks, 1 and 2 are every range
                    if panels == 1:
                        self.assertIn("first by last, 2 by 2", ranges[0])
                        said = page.ask("(() => { const map = document.querySelector('#pruning .map-plot'); map.dispatchEvent("
                                        "new KeyboardEvent('keydown', { key: 'ArrowRight' })); return map.nextSibling.textContent; })()")
                        self.assertRegex(said, r"^from block 0, to block 1: -?[0-9.]+$")
                    makers = page.ask("[...document.querySelectorAll('details.fold')].map(one => one.textContent)")
                    self.assertEqual(len(makers), panels)
                    self.assertRegex(makers[0], r"^Made by siamese .*LibTorch .* thread.*siamese analyze ")
                    self.assertIn("close", page.ask("[...document.querySelector('#similarity .map-plot').querySelectorAll('.tick')].map(one => one.textContent)"))
                    said = page.ask("(() => { const map = document.querySelector('#similarity .map-plot'); map.dispatchEvent("
                                    "new KeyboardEvent('keydown', { key: 'ArrowRight' })); return map.nextSibling.textContent; })()")
                    self.assertRegex(said, r"^Site 0 .* attention, Site 1 .* ffn: -?[0-9.]+$")
                    self.picture(page, f"{file.replace('/', '-')}-{width}.png")

    def test_a_comparison_names_every_run(self):
        page = self.open(WIDE)
        self.assertEqual(page.ask("document.querySelector('h1').textContent"), "3 runs compared")
        self.assertEqual(page.ask("document.querySelector('.kicker').textContent"), "siamese \u00b7 comparison")
        words = page.ask("document.body.textContent")
        for name in RUNS:
            self.assertIn(name, words)
        self.assertEqual(page.ask("document.querySelectorAll('.family').length"), 2)  # text and images share no chart

    def test_dragging_zooms_and_goes_back(self):
        for width in (WIDE, NARROW):
            with self.subTest(width=width):
                page = self.open(width)
                before = page.ask("lines('Loss')")
                box = page.ask("place(card('Loss').querySelector('.plot'))")
                middle = box["y"] + box["height"] / 2
                page.drag((box["x"] + box["width"] * 0.4, middle), (box["x"] + box["width"] * 0.7, middle))
                zoomed = page.ask("lines('Loss')")
                self.assertNotEqual(zoomed, before)
                self.assertFalse(page.ask("button(card('Loss'), 'Reset zoom').hidden"))
                self.press(page, "Loss", "Reset zoom")
                self.assertEqual(page.ask("lines('Loss')"), before)
                self.assertTrue(page.ask("button(card('Loss'), 'Reset zoom').hidden"))

    def test_axes_switch_between_log_and_linear(self):
        page = self.open(WIDE)
        before = page.ask("lines('Loss')")
        for group in ("Vertical axis", "Horizontal axis"):
            choice = f"card('Loss').querySelector('[aria-label=\"{group}\"]')"
            pressed = f"[...{choice}.querySelectorAll('button')].map(one => one.getAttribute('aria-pressed')).indexOf('true')"
            at = page.ask(pressed)
            other = "Log" if at == 0 else "Linear"
            page.press(f"button({choice}, {other!r})")
            self.assertEqual(page.ask(pressed), 1 - at)
            after = page.ask("lines('Loss')")
            self.assertNotEqual(after, before)
            before = after

    def test_the_horizontal_axis_has_other_measures(self):
        page = self.open(WIDE)
        choice = "card('Loss').querySelector('[aria-label=\"Loss against\"]')"
        names = page.ask(f"{choice} ? [...{choice}.querySelectorAll('button')].map(one => one.textContent) : []")
        self.assertLessEqual({"Steps", "Tokens"}, set(names))
        labels = set()
        for name in names:
            page.press(f"button({choice}, {name!r})")
            self.assertTrue(page.ask("lines('Loss').length > 0"), name)
            labels.add(tuple(page.ask("ticks('Loss')")))
        self.assertEqual(len(labels), len(names))

    def test_the_final_loss_is_drawn_against_the_rate(self):
        page = self.open(WIDE, SWEEP)
        title = "Final validation loss by learning rate"
        drawn = f"[...card({title!r}).querySelectorAll('.plot svg path')].map(one => one.getAttribute('d'))"
        before = page.ask(drawn)
        self.assertGreater(len(before), 8)  # a line for each of eight variants, and the baseline
        self.assertTrue({"0.003", "0.01", "0.03"} <= set(page.ask(f"ticks({title!r})")), page.ask(f"ticks({title!r})"))
        page.press(f"button(card({title!r}).querySelector('[aria-label=\"Vertical axis\"]'), 'Linear')")
        self.assertNotEqual(page.ask(drawn), before)

    def test_variants_are_switched_off_and_on(self):
        page = self.open(WIDE)
        chip = "document.querySelector('.legend .chip.variant')"
        whole = page.ask("lines('Loss').length")
        page.press(f"{chip}")
        self.assertEqual(page.ask(f"{chip}.getAttribute('aria-pressed')"), "false")
        self.assertLess(page.ask("lines('Loss').length"), whole)
        page.press(chip)
        self.assertEqual(page.ask("lines('Loss').length"), whole)
        for words, count in (("None", 0), ("All", whole)):
            page.press(f"button(document.querySelector('.legend'), {words!r})")
            self.assertEqual(page.ask("lines('Loss').length"), count)

    def test_the_training_curve_is_switched_off(self):
        page = self.open(WIDE)
        before = page.ask("lines('Loss').length")
        self.press(page, "Loss", "Train")
        self.assertLess(page.ask("lines('Loss').length"), before)

    def test_the_pointer_and_the_keys_read_values(self):
        page = self.open(WIDE)
        box = page.ask("place(card('Loss').querySelector('.plot'))")
        page.mouse("mouseMoved", box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.settle()
        tooltip = "card('Loss').querySelector('.tooltip')"
        self.assertFalse(page.ask(f"{tooltip}.hidden"))
        first = page.ask(f"{tooltip}.textContent")
        self.assertIn("tep ", first)
        page.ask("card('Loss').querySelector('.plot').focus()")
        for kind in ("keyDown", "keyUp"):
            page.call("Input.dispatchKeyEvent", type=kind, key="ArrowRight", code="ArrowRight", windowsVirtualKeyCode=39)
        page.settle()
        self.assertNotEqual(page.ask(f"{tooltip}.textContent"), first)

    def test_a_table_is_sorted_by_its_head(self):
        page = self.open(WIDE)
        column = "[...document.querySelectorAll('table.data tbody')][0]"
        head = "[...document.querySelectorAll('table.data')][0].querySelector('thead button')"
        names = f"[...{column}.rows].map(row => row.cells[0].textContent)"
        orders = []
        for _ in range(2):
            page.press(f"{head}")
            orders.append(page.ask(names))
        self.assertEqual(orders[0], sorted(orders[0]))
        self.assertEqual(orders[1], orders[0][::-1])

    def test_the_table_stands_in_a_file(self):
        rows = (self.folder / "table.csv").read_text().splitlines()
        self.assertTrue(rows[0].startswith("family,variant,lr,runs,"))
        self.assertEqual(len(rows), 4)

    def test_the_headline_says_what_the_seeds_allow(self):
        page = self.open(WIDE, SWEEP)
        words = page.ask("document.querySelector('.headline').textContent")
        results = json.loads(siamese("report", "stability", "--json", folder=self.folder))
        self.assertEqual(words, results["comparisons"][0]["headline"])
        # The difference is the record's, which a retraining changes; the words are ours.
        self.assertRegex(words, r"^siamese is \d\.\d\d (lower|higher) than pre at the best rate of each(, which is within noise)? \(95 % interval ")
        self.assertIn("3 seeds", words)

    def test_the_loss_is_seen_on_a_narrow_screen(self):
        page = self.open(NARROW, SWEEP)
        hidden = page.ask("""[...document.querySelectorAll('table.data')].map(table => {
          const head = [...table.querySelectorAll('thead th')].find(one => one.textContent === 'Val loss');
          if (!head || !head.offsetWidth) return null;
          const cells = [head, ...[...table.tBodies[0].rows].map(row => row.cells[head.cellIndex])];
          return cells.filter(one => one.getBoundingClientRect().right > Math.min(window.innerWidth, table.parentElement.getBoundingClientRect().right) + 1).length;
        }).filter(one => one !== null)""")
        self.assertGreaterEqual(len(hidden), 2)
        self.assertEqual(set(hidden), {0})

    def test_a_colour_means_one_thing(self):
        page = self.open(WIDE, SWEEP)
        rates = page.ask("[...document.querySelectorAll('.legend .chip.rate .swatch line')].map(one => getComputedStyle(one).stroke)")
        self.assertEqual(len(rates), 24)
        self.assertEqual(len(set(rates)), 24)  # eight hues of three shades
        page = self.open(WIDE)  # with recorded streams
        variants = "new Set([...document.querySelectorAll('.legend .chip .dot')].map(one => getComputedStyle(one).backgroundColor))"
        streams = "[...document.querySelectorAll('[id$=depth] .plot path.line')].map(one => getComputedStyle(one).stroke)"
        self.assertTrue(page.ask(f"{streams}.length > 4 && {streams}.every(one => {variants}.has(one))"), page.ask(streams))

    def test_heat_maps_over_depth_and_time(self):
        page = self.open(WIDE, "pre/report.html")
        self.assertEqual(page.ask("document.querySelectorAll('.heat-map .heat-cells rect').length"), 5 * 4)  # steps 1, 10, 20, 30, 40 by four sites
        page.ask("document.querySelector('.heat-plot').focus()")
        page.key("ArrowUp", 38)
        self.assertIn("Step 40 \u00b7 site 0", page.ask("document.querySelector('.heat-map .tooltip').textContent"))

    def test_side_by_side_colours_and_axes_mean_the_same(self):
        page = self.open(WIDE, "deep/analysis.html")  # of two blocks and of three
        panels = page.ask("""[...document.querySelectorAll('section .card')].filter(card => card.querySelector(':scope > .panel-grid .plot svg.chart-svg .series')).map(card =>
          [...card.querySelectorAll(':scope > .panel-grid > .card')].filter(one => one.querySelector('.plot svg')).map(one =>
            [...one.querySelectorAll('.plot svg .tick')].filter(tick => tick.getAttribute('text-anchor') === 'middle').map(tick => tick.textContent)))""")
        self.assertGreater(len(panels), 10)
        for ticks in panels:
            self.assertEqual(len({tuple(one) for one in ticks}), 1, ticks)
        keys = page.ask("""[...document.querySelectorAll('.chart-legend .key')].map(key => { const line = key.querySelector('.swatch line, .swatch circle');
          return [key.textContent, getComputedStyle(line)[line.tagName === 'circle' ? 'fill' : 'stroke'] + ' ' + (line.getAttribute('stroke-dasharray') || '')]; })""")
        looks = {}
        for name, look in keys:
            looks.setdefault(name, set()).add(look)
        self.assertTrue({"X", "Y", "h", "nothing changed", "all streams"} <= set(looks), looks)
        self.assertEqual({name: look for name, look in looks.items() if len(look) > 1}, {})
        self.assertEqual(len({min(look) for look in looks.values()}), len(looks), looks)

    def test_every_chart_is_saved_as_a_file(self):
        for file, chart, keys in (("page.html", "Loss", ["pre \u00b7 0.002 \u00b7 train", "siamese \u00b7 0.005 \u00b7 val"]), ("pre/report.html", "Over depth and time: Gradient norm", ["log scale"]),
                                  ("both/analysis.html", "Norm: siamese", ["X", "Y"]), ("both/analysis.html", "Linear CKA: pre", ["0", "1", "site (depth)", "close"])):
            page = self.open(WIDE, file)
            self.assertEqual(page.ask("[...document.querySelectorAll('.card.chart')].filter(card => card.querySelector('.plot svg') && !card.querySelector('.svg-button')).length"), 0)
            drawn, texts = page.saved_pictures()
            self.assertEqual(len(texts), drawn)
            for text in texts:
                root = xml.etree.ElementTree.fromstring(text)
                self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
                self.assertTrue(float(root.get("width")) > 200 and float(root.get("height")) > 100)
                for foreign in ("var(", "color(", "class=", "<script", "NaN"):
                    self.assertNotIn(foreign, text)
            # A picture alone says what it is of, and what its lines and colours are.
            words = [[one.text or "" for one in xml.etree.ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}text")] for text in texts]
            titled = [said for said in words if said[0].startswith(chart)]
            self.assertEqual(len(titled) > 0, True, (chart, [said[:1] for said in words]))
            for key in keys:
                self.assertTrue(any(key in word for word in titled[0]), (key, titled[0]))

    def test_everything_has_a_name_for_those_who_cannot_see_it(self):
        for file in ("page.html", SWEEP, "both/analysis.html"):
            page = self.open(WIDE, file)
            self.assertEqual(page.nameless(), [])
            self.assertTrue(page.ask("[...document.querySelectorAll('.plot')].every(one => one.tabIndex === 0 && one.getAttribute('aria-label').length > 10)"))
            self.assertTrue(page.ask("[...document.querySelectorAll('[role=group]')].every(one => one.getAttribute('aria-label'))"))
        self.assertEqual(page.ask("document.documentElement.lang"), "en")

    def test_dark_and_printed(self):
        page = self.open(WIDE)
        dark = [{"name": "prefers-color-scheme", "value": "dark"}]
        self.assertGreater(page.lightness("backgroundColor"), 0.9)
        page.call("Emulation.setEmulatedMedia", media="screen", features=dark)
        self.assertLess(page.lightness("backgroundColor"), 0.1)
        self.assertGreater(page.lightness("color"), 0.8)
        self.picture(page, "dark.png")
        page.call("Emulation.setEmulatedMedia", media="print", features=dark)  # paper is white
        self.assertGreater(page.lightness("backgroundColor"), 0.9)
        self.assertLess(page.lightness("color"), 0.2)
        self.assertTrue(page.ask("[...document.querySelectorAll('nav, .tools, .control-bar, .svg-button')].every(one => !one.offsetWidth)"))
        self.assertGreater(len(page.call("Page.printToPDF", printBackground=True)["data"]), 10000)

    def test_who_made_it_is_said(self):
        version = siamese("--version", folder=self.folder).split()[1]
        for file in ("page.html", "pre/report.html"):
            words = self.open(WIDE, file).ask("document.querySelector('.provenance').textContent")
            self.assertIn(f"siamese {version}", words)
            self.assertIn("float32", words)
            self.assertIn("siamese train arithmetic-small", words)
            self.assertIn(" UTC", words)

    def test_an_error_of_the_script_would_be_seen(self):
        page = devtools.Page(self.browser, WIDE)
        broken = self.folder / "broken.html"
        broken.write_text((self.folder / "page.html").read_text().replace("build();\n", "build(); missing();\n"))
        page.open(broken)
        self.assertIn("missing is not defined", " ".join(page.complaints()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True, type=lambda path: str(pathlib.Path(path).resolve()))
    parser.add_argument("--keep", help="a folder for the pages and pictures of them")
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
