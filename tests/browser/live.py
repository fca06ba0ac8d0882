"""The live page of `siamese watch` in a real browser, over runs that this file writes step by step (tests/browser/run.py)."""

import json
import math
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import devtools

HOSTILE = "<img src=x onerror=window.pwned=1>"
WIDE, NARROW = 1400, 400

HELPERS = """
window.card = (title) => [...document.querySelectorAll('.card.chart')].find(card => card.querySelector('h3').textContent === title);
window.lines = (title) => [...card(title).querySelectorAll('.plot svg .series path.line')].map(one => one.getAttribute('d'));
window.rows = () => [...document.querySelectorAll('.watch-table tbody tr:not(.group-row)')];
window.row = (name) => rows().find(one => one.querySelector('a').textContent === name);
window.groups = () => [...document.querySelectorAll('.watch-table .group-row .fold-button')].map(one => one.textContent.slice(2).split(' \\u2013')[0]);
window.cell = (name, title) => { const heads = [...document.querySelectorAll('.watch-table thead th')].map(one => one.textContent);
  return row(name).children[heads.indexOf(title)].textContent.replaceAll('\\u2009', ''); };
window.button = (within, text) => [...within.querySelectorAll('button')].find(one => one.textContent.trim() === text);
window.alerts = () => [...document.querySelectorAll('.alert-list li')].map(one => one.textContent);
"""


class WrittenRun:
    """A run directory as a trainer of version 0.1.0 writes it: lines without checksums."""

    def __init__(self, folder, scheme="pre", lr=0.001, seed=1, steps=400, status="running"):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True)
        self.about = {"schema": 1, "status": status, "scheme": scheme, "label": scheme, "step": 0, "steps": steps, "parameters": 1000,
                      "seed": seed, "lr": lr}
        self.say()
        self.step = 0

    def say(self, **about):
        self.about.update(about)
        (self.folder / "run.json").write_text(json.dumps(self.about))

    def line(self, step, loss):
        line = {"schema": 1, "step": step, "tokens": 64 * step, "loss": loss, "grad_norm": 1 / step + 0.1, "lr": 0.001, "tokens_per_s": 1000,
                "samples_per_s": 10, "step_ms": 10, "skipped": False}
        if step == 1 or step % 20 == 0:
            line["sites"] = [{"site": at, "block": at // 2, "kind": "ffn" if at % 2 else "attention", "grad_norm": 0.1 * (at + 1), "branch_in": 1,
                              "branch_out": 0.5, "streams": [{"name": name, "before": 1 + at + step / 100, "after": 1} for name in "XY"]}
                             for at in range(4)]
        return json.dumps(line) + "\n"

    def train(self, steps, loss=lambda step: 1 + 2 * math.exp(-step / 100)):
        with open(self.folder / "metrics.jsonl", "a", encoding="utf-8") as file:
            for _ in range(steps):
                self.step += 1
                file.write(self.line(self.step, loss(self.step)))

    def evaluate(self, loss, **more):
        with open(self.folder / "eval.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps({"schema": 1, "step": self.step, "loss": loss, "tokens": 10, **more}) + "\n")

    def cut(self, steps):
        """As `resume` does: the lines after a step are gone, the file is another one."""
        path = self.folder / "metrics.jsonl"
        lines = path.read_text().splitlines(keepends=True)[:steps]
        aside = path.with_suffix(".aside")
        aside.write_text("".join(lines))
        aside.rename(path)
        self.step = steps


class Watching:
    """`siamese watch` on a folder; its address once it is printed."""

    def __init__(self, folder, port=0, binary=None, interval=0.1):
        command = [binary or sys.modules["__main__"].OPTIONS.binary, "watch", str(folder), "--port", str(port), "--interval", str(interval)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("watching at "):
            raise AssertionError(f"watch said: {line}")
        self.address = line.split()[-1]

    def stop(self):
        self.process.terminate()
        code = self.process.wait(60)
        self.process.stdout.close()
        return code


class WatchInABrowser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = devtools.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="siamese_watch_")) / "runs"
        self.addCleanup(shutil.rmtree, self.folder.parent)
        self.one = WrittenRun(self.folder / "one", "siamese", 0.001)
        self.two = WrittenRun(self.folder / "two", "siamese", 0.004, seed=2)
        self.three = WrittenRun(self.folder / "three", "pre", 0.001)
        for run in (self.one, self.two, self.three):
            run.train(60)
            run.evaluate(1.5)
        self.server = Watching(self.folder)
        self.addCleanup(lambda: self.assertEqual(self.server.stop(), 0))

    def open(self, width=WIDE, count=3, before=""):
        page = devtools.Page(self.browser, width)
        page.call("Page.addScriptToEvaluateOnNewDocument", source=before)
        page.open(self.server.address + "/")
        page.ask(HELPERS)
        page.wait(f"rows().length === {count} && lines('Training loss').length === {count}")
        self.addCleanup(page.call, "Page.navigate", url="about:blank")  # or its stream would stay open
        self.addCleanup(lambda: self.assertEqual(page.complaints(), []))
        return page

    def test_curves_and_numbers_grow_with_the_run(self):
        page = self.open()
        self.assertEqual(page.ask("cell('one', 'Step')"), "60/400")
        before = page.ask("lines('Training loss')")
        self.one.train(30)
        self.one.evaluate(1.25)
        page.wait("cell('one', 'Step') === '90/400' && cell('one', 'Val loss') === '1.2500'")
        page.wait(f"JSON.stringify(lines('Training loss')) !== {json.dumps(json.dumps(before, separators=(',', ':')))}")
        self.one.say(status="finished")
        page.wait("cell('one', 'State') === 'finished'")
        self.assertEqual(page.ask("document.querySelectorAll('.title-row .pill.finished').length"), 2)  # "live", and one run

    def test_a_resumed_run_goes_on_from_where_it_was_cut(self):
        page = self.open()
        self.two.cut(40)
        page.wait("cell('two', 'Step') === '40/400'")
        self.two.train(5)
        with open(self.two.folder / "metrics.jsonl", "a", encoding="utf-8") as file:
            file.write(self.two.line(46, 1)[:30])  # half a line
        page.wait("cell('two', 'Step') === '45/400'")
        self.assertEqual(page.ask("alerts()"), [])

    def test_runs_are_deleted_and_added_while_they_are_watched(self):
        page = self.open()
        shutil.rmtree(self.three.folder)
        page.wait("rows().length === 2 && document.body.textContent.includes('three: deleted while it was watched')")
        WrittenRun(self.folder / "deep" / "four", "post").train(10)
        page.wait("row('deep/four') && cell('deep/four', 'Step') === '10/400'")

    def test_names_with_html_stay_text_and_nothing_runs(self):
        hostile = WrittenRun(self.folder / "\u202e\x1b[31m<b>", "<script>window.pwned=1</script>" + HOSTILE)
        hostile.train(5)
        hostile.say(status="diverged", message=HOSTILE)
        page = devtools.Page(self.browser, WIDE)
        page.open(self.server.address + "/")
        page.ask(HELPERS)
        page.wait("rows().length === 4")
        page.wait("alerts().length === 1")
        self.assertIn(HOSTILE, page.ask("alerts()[0]"))
        self.assertIsNone(page.ask("window.pwned"))
        self.assertEqual(page.ask("document.querySelectorAll('main img, main script, main b').length"), 0)
        self.assertEqual(page.complaints(), [])
        page.call("Page.navigate", url="about:blank")

    def test_filter_groups_and_pins(self):
        page = self.open()
        self.assertEqual(page.ask("groups()"), ["siamese", "pre"])
        colors = page.ask("rows().map(one => getComputedStyle(one.querySelector('.dot')).backgroundColor)")
        self.assertEqual(len(set(colors)), 3)  # two rates of one variant are two shades
        hue = page.ask("getComputedStyle(row('three').querySelector('.dot')).backgroundColor")
        other = WrittenRun(self.folder / "images", "pre", 0.1)  # a family of its own: its rate is no shade of pre here
        (other.folder / "config.yaml").write_text("model:\n  family: vit\n")
        page.wait("document.querySelector('.watch-bar [aria-label=Family]')")
        self.assertEqual(page.ask("getComputedStyle(row('three').querySelector('.dot')).backgroundColor"), hue)
        self.assertEqual(page.ask("rows().length"), 3)
        page.ask("document.querySelector('.filter').focus()")
        page.call("Input.insertText", text="siamese -0.004")
        page.wait("rows().length === 1 && row('one') && lines('Training loss').length === 1")
        self.assertEqual(page.ask("getComputedStyle(row('one').querySelector('.dot')).backgroundColor"), colors[0])
        page.ask("(() => { const box = document.querySelector('.filter'); box.value = ''; box.dispatchEvent(new Event('input')); })()")
        page.press("button(document.querySelector('.watch-bar'), 'Variant and rate')")
        self.assertEqual(page.ask("groups()"), ["siamese \u00b7 0.001", "siamese \u00b7 0.004", "pre \u00b7 0.001"])
        page.press("row('two').querySelector('.pin')")
        self.assertEqual(page.ask("row('two').querySelector('.pin').getAttribute('aria-pressed')"), "true")
        page.press("button(document.querySelector('.watch-bar'), 'Only pinned')")
        page.wait("lines('Training loss').length === 1")
        self.assertEqual(page.ask("document.querySelectorAll('.heat-map').length"), 1)
        self.assertEqual(page.ask("document.querySelector('.heat-map h3').textContent"), "two")
        page.press("button(document.querySelector('.watch-bar'), 'Unpin all')")
        page.wait("lines('Training loss').length === 3")
        page.press("button(document.querySelector('.group-row'), 'Hide curves')")
        page.wait("lines('Training loss').length === 2 && rows().length === 3")

    def test_it_opens_on_the_family_that_is_running(self):
        for at in range(2):
            WrittenRun(self.folder / f"old{at}", "pre", 0.1, at, status="finished").train(3)
            (self.folder / f"old{at}" / "config.yaml").write_text("model:\n  family: dit\n")
        page = self.open()
        page.wait("document.querySelector('.watch-bar [aria-label=Family] [aria-pressed=true]').textContent === 'lm'")
        page.wait("document.querySelector('.watch-bar').textContent.includes('3 of 3 runs, 2 in other families')")

    def test_heat_maps_follow_and_are_read_by_keys(self):
        page = self.open()
        cells = "document.querySelectorAll('.heat-map .heat-cells rect').length"
        page.wait(f"{cells} === 16")  # steps 1, 20, 40, 60 by 4 sites
        name = page.ask("document.querySelector('.heat-map h3').textContent")
        run = {"one": self.one, "two": self.two, "three": self.three}[name]
        run.train(20)
        page.wait(f"{cells} === 20")
        page.ask("document.querySelector('.heat-plot').focus()")
        page.key("ArrowUp", 38)
        self.assertIn("Step 80 \u00b7 site 0", page.ask("document.querySelector('.heat-map .tooltip').textContent"))
        page.key("ArrowLeft", 37)
        self.assertIn("Step 60", page.ask("document.querySelector('.heat-map .tooltip').textContent"))
        page.ask("(() => { const choice = document.querySelector('.heat-map select'); choice.selectedIndex = 0; choice.dispatchEvent(new Event('change')); })()")
        self.assertIn("from 0.1 to 0.4", page.ask("document.querySelector('.heat-plot').getAttribute('aria-label')"))

    def test_nothing_moves_when_a_depth_profile_comes(self):
        for width in (WIDE, NARROW):
            with self.subTest(width=width):
                page = self.open(width, before="const asked = fetch; const held = new Promise(done => { window.release = done; }); window.fetch = async (...what) => { await held; return asked(...what); };")
                page.wait("document.querySelector('.heat-map').textContent.includes('Reading')")
                top = page.ask("document.querySelector('.watch-table').getBoundingClientRect().top")
                page.ask("release()")
                page.wait("document.querySelectorAll('.heat-map .heat-cells rect').length === 16")
                self.assertEqual(page.ask("document.querySelector('.watch-table').getBoundingClientRect().top"), top)

    def test_alerts_name_the_run_and_the_step(self):
        page = self.open()
        self.one.train(1, lambda step: 40)
        self.one.train(5)
        page.wait("alerts().some(text => text.startsWith('spike one loss 40 at step 61'))")
        self.three.train(300, lambda step: 2.27)
        page.wait("alerts().some(text => text.startsWith('plateau three'))")

    def test_the_page_finds_a_server_that_was_started_again(self):
        page = self.open()
        page.press("row('one').querySelector('.pin')")
        self.assertEqual(page.ask("row('one').querySelector('.pin').getAttribute('aria-pressed')"), "true")
        self.assertEqual(self.server.stop(), 0)
        page.wait("document.querySelector('.title-row .pill').textContent.startsWith('no answer')")
        self.one.train(7)
        self.server = Watching(self.folder, self.server.address.rsplit(":", 1)[-1])
        page.wait("document.querySelector('.title-row .pill').textContent === 'live' && rows().length === 3 && cell('one', 'Step') === '67/400'")
        self.assertEqual(page.ask("row('one').querySelector('.pin').getAttribute('aria-pressed')"), "true")
        # What the console says of a server that is gone is no fault of the page.
        self.browser.events = [event for event in self.browser.events if "ERR_" not in json.dumps(event)]

    def test_both_widths_without_overflow(self):
        for width in (WIDE, NARROW):
            with self.subTest(width=width):
                page = self.open(width)
                self.assertLessEqual(page.ask("document.documentElement.scrollWidth"), width)

    def test_everything_has_a_name_for_those_who_cannot_see_it(self):
        other = WrittenRun(self.folder / "images", "pre", 0.1)  # a second family, a pinned run, an alert: all controls there are
        (other.folder / "config.yaml").write_text("model:\n  family: vit\n")
        self.one.train(1, lambda step: 40)
        page = self.open()
        page.wait("document.querySelector('.watch-bar [aria-label=Family]') && alerts().length && document.querySelector('.heat-map')")
        page.press("row('one').querySelector('.pin')")
        self.assertEqual(page.nameless(), [])
        self.assertTrue(page.ask("[...document.querySelectorAll('.plot')].every(one => one.tabIndex === 0 && one.getAttribute('aria-label').length > 10)"))
        self.assertTrue(page.ask("[...document.querySelectorAll('[role=group]')].every(one => one.getAttribute('aria-label'))"))
        self.assertEqual(page.ask("row('one').querySelector('.pin').getAttribute('aria-label')"), "Pin one")
        self.assertEqual(page.ask("document.documentElement.lang"), "en")

    def test_dark_and_printed(self):
        for at in range(40):  # more rows than the table shows at once
            WrittenRun(self.folder / f"more{at}", "pre", 0.01, at).train(2)
        page = self.open(count=43)
        dark = [{"name": "prefers-color-scheme", "value": "dark"}]
        self.assertGreater(page.lightness("backgroundColor"), 0.9)
        page.call("Emulation.setEmulatedMedia", media="screen", features=dark)
        self.assertLess(page.lightness("backgroundColor"), 0.1)
        self.assertGreater(page.lightness("color"), 0.8)
        box = "document.querySelector('.watch-table').parentElement"
        self.assertGreater(page.ask(f"{box}.scrollHeight - {box}.clientHeight"), 100)
        page.call("Emulation.setEmulatedMedia", media="print", features=dark)  # paper is white, and nobody scrolls it
        self.assertGreater(page.lightness("backgroundColor"), 0.9)
        self.assertLess(page.lightness("color"), 0.2)
        self.assertLessEqual(page.ask(f"{box}.scrollHeight - {box}.clientHeight"), 1)
        self.assertIn("Stream ", page.ask("document.querySelector('.heat-scale').innerText"))  # what is drawn: the choice of it is not printed
        page.ask("rows()[40].scrollIntoView()")  # the head does not follow
        self.assertLess(page.ask("document.querySelector('.watch-table th').getBoundingClientRect().top - document.querySelector('.watch-table').getBoundingClientRect().top"), 2)
        self.assertTrue(page.ask("[...document.querySelectorAll('.watch-bar, .pin, .tools, .svg-button, .quiet-button')].every(one => !one.offsetWidth)"))
        self.assertGreater(len(page.call("Page.printToPDF", printBackground=True)["data"]), 10000)

    def test_every_chart_is_saved_as_a_file(self):
        page = self.open()
        page.wait("document.querySelector('.heat-map .heat-cells rect')")
        drawn, texts = page.saved_pictures()
        self.assertEqual(len(texts), drawn)
        roots = [xml.etree.ElementTree.fromstring(text) for text in texts]
        words = [[one.text or "" for one in root.iter("{http://www.w3.org/2000/svg}text")] for root in roots]
        titles = [said[0] for said in words]
        self.assertEqual(titles[:3], ["Training loss", "Held-out loss", "Gradient norm"])
        self.assertGreater(drawn, 3, titles)  # and maps
        self.assertTrue({"siamese", "pre"} <= set(words[0]), words[0])  # the legend
        for text, root in zip(texts, roots):
            self.assertTrue(float(root.get("width")) > 200 and float(root.get("height")) > 100)
            for foreign in ("var(", "color(", "class=", "<script", "NaN"):
                self.assertNotIn(foreign, text)

    def test_the_report_of_a_run_as_it_is_now(self):
        page = self.open()
        address = page.ask("row('one').querySelector('a').href")
        report = devtools.Page(self.browser, WIDE)
        report.open(address)
        self.assertEqual(report.ask("document.querySelector('h1').textContent"), "one")
        self.assertEqual(report.complaints(), [])
        self.assertFalse((self.one.folder / "report.html").exists())
