#!/usr/bin/env python3
"""The plot of README.md is the one that the record gives, and its two headings are true of that record."""

import json
import sys
import tempfile
import unittest
from pathlib import Path
from statistics import mean

sys.path.insert(0, str(Path(__file__).resolve().parent))

import rates  # noqa: E402

BASELINE = 2.2724  # docs/results.md: the loss of knowing how often each character occurs


class Rates(unittest.TestCase):
    def test_the_plot_is_that_of_the_record(self):
        self.assertEqual(rates.OUT.read_text(encoding="utf-8"), rates.plot(rates.RECORD), "run benchmarks/rates.py")

    def test_the_headings_are_true(self):
        found = rates.losses(rates.RECORD)
        learn, fail = rates.PANELS.values()
        for variant in learn:
            for rate, losses in found[variant].items():
                self.assertLess(max(losses), 0.9 * BASELINE, (variant, rate))
        for variant in fail:
            self.assertGreater(min(found[variant][max(found[variant])]), BASELINE, variant)

    def test_the_numbers_of_the_readme(self):
        found = rates.losses(rates.RECORD)
        best = {variant: min(mean(losses) for losses in runs.values()) for variant, runs in found.items()}
        text = (rates.ROOT / "README.md").read_text(encoding="utf-8")
        self.assertEqual(min(best, key=best.get), "siamese")
        self.assertIn(f"the lowest mean: {best['siamese']:.2f}, against {best['pre']:.2f} for Pre-Norm", text)
        runs = sum(len(losses) for of_variant in found.values() for losses in of_variant.values())
        self.assertIn(f"These are {runs} small runs", text)

    def test_points_and_bars(self):
        lines = [{"variant": variant, "lr": lr, "val_loss": loss} for panel in rates.PANELS.values() for variant in panel
                 for lr in (0.001, 0.01) for loss in (1.0, 1.5, 2.0)]
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.write("\n".join(map(json.dumps, lines)))
            file.flush()
            svg = rates.plot(Path(file.name))
        self.assertEqual(svg.count("<circle"), 16)
        self.assertEqual(svg.count('opacity="0.45"'), 16)
        self.assertIn("3 seeds, 48 runs", svg)


if __name__ == "__main__":
    unittest.main()
