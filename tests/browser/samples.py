"""What models made, continuations of prompts and pictures, on the page of a report in a real browser (tests/browser/run.py)."""

import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

import devtools
import live


def grey_png(size):
    """A square picture, whose size tells which one it is."""
    part = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">2I5B", size, size, 8, 0, 0, 0, 0))
            + part(b"IDAT", zlib.compress((b"\0" + b"\x80" * size) * size)) + part(b"IEND", b""))


class SamplesInABrowser(unittest.TestCase):
    def setUp(self):
        made = tempfile.TemporaryDirectory(prefix="siamese_samples_")
        self.addCleanup(made.cleanup)
        self.folder = pathlib.Path(made.name)
        talk, draw = live.WrittenRun(self.folder / "talk"), live.WrittenRun(self.folder / "draw")
        (draw.folder / "config.yaml").write_text("model:\n  family: dit\n")
        (draw.folder / "samples").mkdir()
        for step in (30, 60):
            talk.train(30)
            talk.evaluate(1.5, prompts=[{"prompt": "<b>one", "text": f" and {step}\n" + live.HOSTILE}])
            draw.train(30)
            (draw.folder / "samples" / f"step{step}.png").write_bytes(grey_png(step))
            draw.evaluate(1.5, samples={"count": 4, "grid": f"samples/step{step}.png"})
        subprocess.run([sys.modules["__main__"].OPTIONS.binary, "report", "talk", "draw", "--out", "said.html"], cwd=self.folder, check=True, capture_output=True)
        self.browser = devtools.Browser()
        self.addCleanup(self.browser.__exit__)

    def test_a_slider_shows_what_was_made_at_each_evaluation(self):
        said = "document.querySelector('[id$=prompts] .continuation').textContent"
        picture = "document.querySelector('[id$=samples] img.sample-grid')"
        for width in (1400, 400):
            with self.subTest(width=width):
                page = devtools.Page(self.browser, width)
                page.open(self.folder / "said.html")
                self.assertLessEqual(page.ask("document.documentElement.scrollWidth"), width)
                self.assertEqual(page.ask(said), "<b>one and 60\n" + live.HOSTILE)
                self.assertEqual(page.ask("document.querySelectorAll('.continuation strong').length"), 1)
                self.assertEqual(page.ask("document.querySelectorAll('.continuation img, .continuation b').length"), 0)
                page.wait(f"{picture}.complete")
                self.assertEqual(page.ask(f"[{picture}.naturalWidth, {picture}.alt]"), [60, "Samples of pre \u00b7 lr 0.001 \u00b7 seed 1 at step 60"])
                for part in ("prompts", "samples"):  # back to the evaluation before
                    page.ask(f"document.querySelector('[id$={part}] input[type=range]').focus()")
                    page.key("ArrowLeft", 37)
                self.assertIn(" and 30\n", page.ask(said))
                page.wait(f"{picture}.complete && {picture}.naturalWidth === 30")
                self.assertEqual(page.nameless(), [])
                self.assertIsNone(page.ask("window.pwned"))
                self.assertEqual(page.complaints(), [])
