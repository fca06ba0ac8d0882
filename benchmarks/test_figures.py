#!/usr/bin/env python3
"""The figures and tables of docs/inside.md are those that the record gives, and what the page says of them is true of it."""

import sys
import tempfile
import unittest
from pathlib import Path
from statistics import mean
from xml.etree import ElementTree

sys.path.insert(0, str(Path(__file__).resolve().parent))

import figures  # noqa: E402
from plot import draw  # noqa: E402


class Figures(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.runs = figures.Runs(figures.RECORD)
        cls.page = figures.PAGE.read_text(encoding="utf-8")

    def number(self, scheme: str, of) -> float:
        return mean(of(run) for run in self.runs.of(scheme))

    def test_they_are_those_of_the_record(self):
        for name, (title, panels) in figures.figures(self.runs).items():
            text = draw(title, panels)
            ElementTree.fromstring(text)
            self.assertEqual((figures.PAGE.parent / name).read_text(encoding="utf-8"), text, "run benchmarks/figures.py --render")
            self.assertIn(f"]({name})", self.page)
        self.assertIn(figures.tables(self.runs).strip(), self.page)

    def test_every_scheme_has_every_seed(self):
        seeds = {scheme: sorted(run["seed"] for run in self.runs.of(scheme)) for scheme, _, _ in figures.SCHEMES}
        self.assertEqual(len({tuple(found) for found in seeds.values()}), 1, seeds)

    def each(self, scheme: str, of) -> list[float]:
        return [of(run) for run in self.runs.of(scheme)]

    def test_what_the_page_says_of_sizes(self):
        growth = self.each("pre", lambda run: run["rms"]["h"][-1] / run["rms"]["h"][4])
        self.assertEqual([f"{one:.2g}" for one in sorted(growth)], ["2.4", "2.9"])
        growth = self.each("siamese", lambda run: run["rms"]["Y"][-1] / run["rms"]["Y"][4])
        self.assertEqual([f"{one:.2g}" for one in sorted(growth)], ["3.4", "4.4"])
        self.assertLess(max(self.each("post", lambda run: max(run["rms"]["h"][2:]))), 1.05)
        self.assertLess(max(self.each("siamese", lambda run: max(run["rms"]["X"]))), 1.4)
        self.assertGreater(min(self.each("siamese", lambda run: run["rms"]["Y"][-1])), max(self.each("pre", lambda run: run["rms"]["h"][-1])))
        late = {scheme: sorted(self.each(scheme, lambda run: mean(run["grad_norm"][-100 // figures.BIN:]))) for scheme, _, _ in figures.SCHEMES}
        self.assertEqual([f"{one:.2f}" for one in late["siamese"]], ["1.29", "1.36"])
        self.assertEqual([f"{one:.2f}" for one in late["post"]], ["1.66", "1.67"])
        others = [*late["pre"], *late["hybrid"]]
        self.assertEqual([f"{one:.2f}" for one in (min(others), max(others))], ["1.44", "1.97"])
        self.assertLess(late["siamese"][-1], min(one for scheme, found in late.items() if scheme != "siamese" for one in found))

    def test_what_the_page_says_of_streams(self):
        for run in self.runs.of("siamese"):
            better = sum(y > x for x, y in zip(run["lens"]["X"], run["lens"]["Y"]))
            self.assertGreaterEqual(better, 22)
            self.assertLessEqual(max(run["lens"]["X"][:12]), 0.1)
            self.assertTrue(all(0.485 < share < 0.525 for share in run["share"]["X"][:-1]))
            self.assertAlmostEqual(run["share"]["X"][-1], 0.46, delta=0.005)
        self.assertAlmostEqual(self.number("siamese", lambda run: run["lens"]["X"][-1]), 0.76, delta=0.005)
        self.assertAlmostEqual(self.number("siamese", lambda run: run["lens"]["Y"][-1]), 0.86, delta=0.005)

    def test_what_the_page_says_of_blocks(self):
        def last_four(run: dict) -> float:
            return mean(run["without_block"][-4:]) - run["changed_loss"]

        for scheme, said in {"pre": ["0.31", "0.39"], "post": ["1.04", "0.98"], "siamese": ["0.69", "0.29"]}.items():
            self.assertEqual([f"{one:.2f}" for one in self.each(scheme, last_four)], said)
        self.assertLess(max(self.each("post", lambda run: run["without_block"][0] - run["changed_loss"])), 0.1)
        largest = {scheme: self.number(scheme, lambda run: max(run["without_block"]) - run["changed_loss"]) for scheme in ("pre", "siamese")}
        self.assertLess(largest["siamese"], largest["pre"] / 2)
        self.assertEqual([f"{largest[scheme]:.1f}" for scheme in ("siamese", "pre")], ["1.8", "4.0"])
        for run in self.runs.lines:
            self.assertLess(max(run["sink_first"]), 0.1)
            for name in run["max"]:
                self.assertLess(max(a / b for a, b in zip(run["max"][name], run["rms"][name])), 6.2)

    def test_a_curve_is_means_of_steps(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "metrics.jsonl"
            file.write_text("".join(f'{{"grad_norm": {1 if step < figures.BIN else 4}}}\n' for step in range(2 * figures.BIN + 3)))
            steps, norms = figures.curve(file)
        self.assertEqual(steps, [figures.BIN, 2 * figures.BIN])
        self.assertAlmostEqual(norms[0], 1)
        self.assertAlmostEqual(norms[1], 4)


if __name__ == "__main__":
    unittest.main()
