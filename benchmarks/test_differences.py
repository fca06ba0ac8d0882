#!/usr/bin/env python3
"""The plots of paired differences are those that the records give."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import differences  # noqa: E402
import rates  # noqa: E402
from recorded_plots import ROOT, Failure, record_of  # noqa: E402

PLOT = differences.Plot("x.svg", "A & B", {"pre": "Pre-Norm", "siamese": "SiameseNorm", "post": "Post-Norm"}, seeds=3)


def line(variant: str, seed: int, loss: float | None, lr: float = 0.01, status: str = "finished") -> dict:
    return {"variant": variant, "lr": lr, "seed": seed, "val_loss": loss, "status": status}


LINES = [line(variant, seed, loss) for variant, losses in {"pre": (1.0, 1.1, 1.2), "siamese": (0.8, 1.0, 1.2), "post": (1.5, 1.5, 1.5)}.items()
         for seed, loss in enumerate(losses)]


class Differences(unittest.TestCase):
    def test_each_plot_is_that_of_its_record(self):
        for name, plot in differences.PLOTS.items():
            drawn = ROOT / "docs" / plot.out
            self.assertEqual(drawn.is_file(), differences.is_recorded(name), f"{drawn.name}: run benchmarks/differences.py")
            if drawn.is_file():
                self.assertEqual(drawn.read_text(encoding="utf-8"), differences.made(name, record_of(name)), "run benchmarks/differences.py")

    def test_seeds_are_paired_and_the_lowest_mean_stands_first(self):
        first, second = differences.rows(PLOT, LINES, Path("r"))
        self.assertEqual((first.name, second.name), ("SiameseNorm", "Post-Norm"))
        for value, wanted in zip(first.of_seeds, (-0.2, -0.1, 0.0), strict=True):
            self.assertAlmostEqual(value, wanted)
        low, high = first.interval  # by hand: 0.1 * 4.3027 / sqrt(3) on either side of -0.1
        self.assertAlmostEqual(low, -0.34841, places=4)
        self.assertAlmostEqual(high, 0.14841, places=4)

    def test_a_loss_is_scaled_before_it_is_subtracted(self):
        plot = differences.Plot("x.svg", "t", PLOT.names, seeds=3, scale=rates.bits)
        self.assertAlmostEqual(differences.rows(plot, LINES, Path("r"))[0].of_seeds[0], -0.2 / 0.693147, places=5)

    def test_a_missing_run_is_an_error(self):
        with self.assertRaisesRegex(Failure, "r: post: expected 3 seeds that ended, got 2"):
            differences.rows(PLOT, LINES[:-1], Path("r"))

    def test_what_is_drawn(self):
        svg = differences.draw(PLOT, differences.rows(PLOT, LINES, Path("r")))
        self.assertEqual(svg.count('class="time" cx'), 2)
        self.assertEqual(svg.count('class="flops" cx'), 6)
        self.assertIn("-0.100 (-0.348 to +0.148)", svg)
        self.assertIn("A &amp; B", svg)

    def test_another_record(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            names = differences.PLOTS["text-seeds"].names
            file.write("\n".join(json.dumps(line(name, seed, 1.0 + seed / 100 + at / 50)) for at, name in enumerate(names) for seed in range(5)))
            file.flush()
            self.assertIn("SpanNorm", differences.made("text-seeds", Path(file.name)))


if __name__ == "__main__":
    unittest.main()
