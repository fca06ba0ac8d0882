#!/usr/bin/env python3
"""Blocks of docs/results.md are found and filled, and speeds leave no trace."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import results  # noqa: E402

TABLE = """\
| variant | val loss | tokens/s |
|---------|---------:|---------:|
| pre     |   1.2534 |    11523 |

| variant | training |  time |
|---------|---------:|------:|
| pre     |    1.00x | 0.97x |

training: how many times less training it needs; time: the same, charged with its own speed."""


class Results(unittest.TestCase):
    def test_speeds_are_left_out_of_each_table(self):
        self.assertEqual(
            results.without_speeds(TABLE),
            "| variant | val loss |\n|---------|---------:|\n| pre     |   1.2534 |\n\n"
            "| variant | training |\n|---------|---------:|\n| pre     |    1.00x |\n\n"
            "training: how many times less training it needs.",
        )

    def test_accuracy_stays_only_where_it_was_measured(self):
        rows = ["| variant | accuracy | runs |", "|---------|---------:|-----:|", "| pre     |        - |    1 |"]
        without = ["| variant | runs |", "|---------|-----:|", "| pre     |    1 |"]
        self.assertEqual(results.without_speeds("\n".join(rows)).splitlines(), without)
        rows.append("| post    |    2.0 % |    1 |")
        self.assertEqual(results.without_speeds("\n".join(rows)).splitlines(), rows)
        stuck = ["| variant | stuck |", "|---------|------:|", "| pre     |     - |"]
        self.assertEqual(results.without_speeds("\n".join(stuck)).splitlines(), stuck)

    def test_a_sweep_that_is_recorded_in_part_has_the_table_of_that_part(self):
        counts = "27 runs: 3 recorded, 0 ended here, 24 to do\n"
        self.assertEqual(
            results.filled(counts + TABLE + "\nreport: x/report.html\n", {}),
            "\nRecorded: 3 of 27 runs; the command above trains the others.\n\n" + results.without_speeds(TABLE) + "\n\n")
        self.assertEqual(results.filled("27 runs: 0 recorded, 0 ended here, 27 to do\nreport: x\n", {}),
                         "\nRecorded: 0 of 27 runs; the command above trains the others.\n\n")
        whole = results.filled("3 runs: 3 recorded, 0 ended here, 0 to do\n" + TABLE + "\nreport: x\n", {})
        self.assertEqual(whole, "\n" + results.without_speeds(TABLE) + "\n\n")
        with self.assertRaises(results.Failure):
            results.filled("nothing\n", {})

    def test_training_is_charged_with_the_price_of_a_step(self):
        table = """\
| variant                 | training |
|-------------------------|---------:|
| pre, warmup=50          |          |
| siamese, warmup=50      |    1.26x |
| pre, attention_norm=qkv |    0.89x |
| hc                      |        - |
| pre, warmup=0           |    0.55x |

training: how many times less training it needs."""
        prices = {("siamese", "pre"): 0.9, ("hc", "pre"): 1.2, ("siamese", "post"): 0.1}
        self.assertEqual(
            results.with_adjusted(table, prices),
            """\
| variant                 | training | adjusted |
|-------------------------|---------:|---------:|
| pre, warmup=50          |          |          |
| siamese, warmup=50      |    1.26x |    1.40x |
| pre, attention_norm=qkv |    0.89x |        - |
| hc                      |        - |        - |
| pre, warmup=0           |    0.55x |    0.55x |

training: how many times less training it needs.
"""
            + results.ABOUT_ADJUSTED.format("pre"),
        )

    def test_a_table_without_any_price_stays(self):
        for table in (TABLE, "| variant | training |\n|---|---:|\n| pre, 4 blocks | |\n| siamese, 4 blocks | 1.26x |"):
            self.assertEqual(results.with_adjusted(table, {("siamese", "pre"): 0.9}), table)

    def test_a_price_is_the_median_of_what_was_recorded_and_at_least_one(self):
        def line(scheme, ratio, shape="s", more=()):
            return {"shape": shape, "overrides": [f"model.residual={scheme}", *more], "against": ["model.residual=pre"], "ratio": ratio}

        lines = [line("siamese", 1.03), line("siamese", 1.01), line("siamese", 0.94), line("span", 0.95), line("hc", 1.2, "m"),
                 line("hc", 1.3, more=["engine.precision=bfloat16"]), {"shape": "s", "against": "pre", "ratio": 2}, {"part": "s"}]
        self.assertEqual(results.prices(lines), {("siamese", "pre"): 1.01, ("span", "pre"): 1.0})
        recorded = results.prices(results.record.read(results.PRICES))
        self.assertIn(("siamese", "pre"), recorded)
        self.assertGreater(recorded["hc", "pre"], 1.1)

    def test_each_block_is_filled_and_the_rest_stays(self):
        page = "a\n<!-- sweep one -->\nold\n<!-- end -->\nb\n<!-- sweep two -->\n<!-- end -->\nc\n"
        filled = results.render(page, lambda name: f"new {name}\n")
        self.assertEqual(filled, "a\n<!-- sweep one -->\nnew one\n<!-- end -->\nb\n<!-- sweep two -->\nnew two\n<!-- end -->\nc\n")
        self.assertEqual(results.render(filled, lambda name: f"new {name}\n"), filled)

    def test_the_page_has_a_block_of_each_recorded_sweep(self):
        names = [found[2] for found in results.BLOCK.finditer(results.PAGE.read_text(encoding="utf-8"))]
        self.assertEqual(len(names), len(set(names)))
        for name in names:
            self.assertTrue((results.ROOT / f"configs/sweeps/{name}.yaml").is_file(), name)


if __name__ == "__main__":
    unittest.main()
