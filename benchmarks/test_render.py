#!/usr/bin/env python3
"""The tables of docs/performance.md from a small record; needs no PyTorch."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import render  # noqa: E402
import shapes  # noqa: E402

MACHINE = {"bench": "machine", "command": "benchmarks/run.py", "date": "2030-01-01", "cpu": "A CPU", "cores": 2,
           "simd": "AVX2", "memory_gb": 8.0, "torch": "2.13.0",
           "threads": [{"threads": 1, "fma_gflops": 100.0, "triad_gb_per_s": 20.0}]}


def step(subject: str, round_: int, ms: float, rest_mb: float = 100) -> dict:
    line = {"bench": "step", "subject": subject, "shape": "s", "round": round_, "median_ms": ms, "parameters": 6400000,
            "tokens_per_s": 1e6 / ms, "idle_rss_mb": 50, "state_mb": 30, "peak_rss_mb": 80 + rest_mb}
    if subject.startswith("ours"):
        line |= {"gflops": 50.0, "peak_share": 0.5, "part_ms": {"matmul": ms} if round_ == 0 else {}}
    return line


def record() -> list[dict]:
    lines = [MACHINE]
    # The machine is half as fast in the second round: ratios within a round do not see it.
    for round_, slow in enumerate((1, 2, 1)):
        lines += [step("ours pre", round_, 100 * slow, 40), step("ours siamese", round_, 101 * slow, 90),
                  step("eager pre", round_, 130 * slow, 100), step("eager siamese", round_, 130 * slow, 100)]
    lines.append({"bench": "step_against", "shape": "s", "label": "siamese / pre", "median_ms": 101, "against_ms": 100,
                  "ratio": 1.01})
    kernel = {"kernel": "swiglu", "pass": "forward", "reads": 1, "writes": 1, "ms": 1.0, "gb_per_s": 10.0,
              "stream_gb_per_s": 20.0, "share": 0.5}
    lines.append({"bench": "kernels", "in_cache": False, "rows": 10, "width": 768, "threads": 2, "kernels": [kernel]})
    lines.append({"bench": "experts", "rows": 1024, "width": 128, "hidden": 128, "experts": 8, "per_token": 2,
                  "gflops": 60.0, "dense_gflops": 80.0, "ratio": 0.75})
    lines.append({"bench": "generate", "shape": "s", "median_ms": 1.1, "against_ms": 1.0, "ratio": 1.1})
    return lines


class Render(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.page = Path(folder.name) / "performance.md"

    def test_targets_are_met_or_missed_by_the_ratio_within_a_round(self):
        found = {what: (measured, relation, wanted)
                 for what, measured, relation, wanted in render.targets(render.Record(record()))}
        self.assertAlmostEqual(found["S: step, siamese / pre"][0], 1.01)
        self.assertAlmostEqual(found["S: tokens/s, pre, ours / eager"][0], 1.3)
        self.assertAlmostEqual(found["S: activations and workspace, pre, ours / eager"][0], 0.4)
        self.assertFalse(any("compile" in what or "hybrid" in what for what in found))  # not measured: not judged
        text = render.target_table(render.Record(record()))
        self.assertIn("| S: step, siamese / pre | 1.010 | <= 1.02 | met |", text)
        self.assertIn("| S: tokens/s, siamese, ours / eager | 1.287 | >= 1.35 | **missed** |", text)
        self.assertIn("Missed: S: tokens/s, siamese, ours / eager; ", text)
        self.assertIn("swiglu, forward", text)
        self.assertIn("| experts, 1024 tokens: GFLOP/s, experts / dense branch of the active size | 0.750 | >= 0.6 | met |", text)
        self.assertIn("2 of 8 experts of 128 | 60.0 | 80.0 | 75% |", render.generated(render.Record(record())))

    def test_what_stands_outside_the_markers_is_kept(self):
        self.page.write_text(f"# Mine\n\nbefore\n{render.BEGIN}\nyesterday\n{render.END}\nafter\n")
        render.write_tables(self.page, record())
        text = self.page.read_text()
        self.assertTrue(text.startswith("# Mine\n\nbefore\n") and text.endswith("\nafter\n"))
        self.assertNotIn("yesterday", text)
        self.assertIn("| ours siamese | 101.0 |", text)
        render.write_tables(self.page, record())
        self.assertEqual(self.page.read_text(), text)

    def test_a_page_without_markers_is_refused(self):
        self.page.write_text("# Mine\n")
        with self.assertRaises(SystemExit):
            render.write_tables(self.page, record())
        self.assertEqual(self.page.read_text(), "# Mine\n")


class Shapes(unittest.TestCase):
    def test_the_recipes_are_read(self):
        self.assertEqual(shapes.load("m"), shapes.Shape(width=768, blocks=12, heads=12, ffn_width=2048, vocab=50304,
                                                        context=512, batch=2))
        for name in shapes.NAMES:
            self.assertGreater(shapes.load(name).width, 0)


if __name__ == "__main__":
    unittest.main()
