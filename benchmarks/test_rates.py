#!/usr/bin/env python3
"""The plots of README.md and docs/results.md are those that the records give, and the headings of the first are true."""

import json
import math
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path
from statistics import mean

sys.path.insert(0, str(Path(__file__).resolve().parent))

import rates  # noqa: E402
from recorded_plots import ROOT, Failure, record_of  # noqa: E402

BASELINE = 2.2724  # docs/results.md: the loss of knowing how often each character occurs


def line(variant: str, lr: float, loss: float | None, status: str = "finished") -> dict:
    return {"variant": variant, "lr": lr, "val_loss": loss, "status": status}


class Rates(unittest.TestCase):
    def setUp(self):
        self.found = rates.losses(record_of("stability"))

    def test_each_plot_is_that_of_its_record(self):
        for name, what in rates.PLOTS.items():
            drawn = ROOT / "docs" / what.out
            self.assertEqual(drawn.is_file(), rates.is_recorded(name), f"{drawn.name}: run benchmarks/rates.py")
            if drawn.is_file():
                self.assertEqual(drawn.read_text(encoding="utf-8"), rates.plot(name, record_of(name)), "run benchmarks/rates.py")

    def test_the_headings_are_true(self):
        learn, fail = rates.PLOTS["stability"].panels.values()
        for variant in learn:
            for rate, losses in self.found[variant].items():
                self.assertLess(max(losses), 0.9 * BASELINE, (variant, rate))
        for variant in fail:
            self.assertGreater(min(self.found[variant][max(self.found[variant])]), BASELINE, variant)

    def test_the_numbers_of_the_readme(self):
        best = {variant: min(mean(losses) for losses in runs.values()) for variant, runs in self.found.items()}
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        self.assertEqual(min(best, key=best.get), "siamese")
        runs = sum(len(losses) for of_variant in self.found.values() for losses in of_variant.values())
        self.assertIn(f"In [{runs} runs on arithmetic]", text)


class Drawing(unittest.TestCase):
    def drawn(self, lines: list[dict], name: str = "stability") -> str:
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.write("\n".join(map(json.dumps, lines)))
            file.flush()
            return rates.plot(name, Path(file.name))

    @staticmethod
    def lines(name: str, losses: tuple[float, ...], lrs: tuple[float, ...] = (0.001, 0.01)) -> list[dict]:
        return [line(variant, lr, loss) for variants in rates.PLOTS[name].panels.values() for variant in variants
                for lr in lrs for loss in losses]

    def test_points_and_bars(self):
        svg = self.drawn(self.lines("stability", (1.0, 1.5, 2.0)))
        self.assertEqual(svg.count("<circle"), 16)
        self.assertEqual(svg.count('opacity="0.45"'), 16)
        self.assertIn("Held-out loss by learning rate, mean and range of 3 seeds, 48 runs<", svg)

    def test_nine_variants_with_one_seed_each(self):
        svg = self.drawn(self.lines("text", (1.4,), (0.001, 0.003, 0.01)), "text")
        self.assertEqual(svg.count("<circle"), 27)  # none is dropped
        self.assertIn(".fifth", svg)
        self.assertIn("Bits per byte by learning rate, one seed, 27 runs<", svg)

    def test_a_value_above_the_panel_is_an_arrow_at_its_edge(self):
        lines = self.lines("text", (1.4,), (0.001, 0.003, 0.01))
        stuck = [{**one, "val_loss": 3.1} if (one["variant"], one["lr"]) == ("post", 0.01) else one for one in lines]
        self.assertEqual(self.drawn(stuck, "text").count("<circle"), 26)
        self.assertEqual(self.drawn(stuck, "text").count("<path"), self.drawn(lines, "text").count("<path") + 1)

    def test_what_diverged_has_no_part_in_a_mean(self):
        lines = self.lines("stability", (1.0, 2.0))
        lines += [line("pre", 0.001, None, "diverged"), line("post", 0.03, None, "diverged"), line("span", 0.03, 9.0, "diverged")]
        svg = self.drawn(lines)
        self.assertEqual(svg.count("<circle"), 16)  # at 0.03 nothing ended
        self.assertIn("of 1 to 3 seeds, 35 runs, without 3 that diverged", svg)
        made = rates.series("x", {0.01: [None, 2.0, 4.0], 0.1: [None]}, "time")
        self.assertEqual((made.x, made.y, made.spread), ([0.01], [3.0], [(2.0, 4.0)]))

    def test_a_loss_of_bytes_becomes_bits(self):
        made = rates.series("x", {0.01: [math.log(2), 2 * math.log(2)]}, "time", rates.bits)
        self.assertAlmostEqual(made.y[0], 1.5)

    def test_a_range_that_shows_everything(self):
        low, high = rates.span([rates.series("x", {0.01: [1.0, 3.0]}, "time"), rates.series("y", {0.01: [2.0]}, "time")])
        self.assertTrue(low < 1 and high > 3)
        self.assertTrue(rates.span([rates.series("x", {0.01: [2.0]}, "time")])[0] < 2)

    def test_a_variant_that_is_missing_or_too_many_is_an_error(self):
        with self.assertRaisesRegex(Failure, "expected runs of 'siamese', got pre"):
            self.drawn([line("pre", 0.01, 1.0)])
        many = rates.Plot("x.svg", {"all": {f"v{i}": f"v{i}" for i in range(6)}})
        with unittest.mock.patch.dict(rates.PLOTS, {"many": many}), self.assertRaisesRegex(Failure, "at most 5"):
            self.drawn([line(f"v{i}", 0.01, 1.0) for i in range(6)], "many")


if __name__ == "__main__":
    unittest.main()
