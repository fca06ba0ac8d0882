#!/usr/bin/env python3
"""Blocks of docs/results.md are found and filled, and speeds leave no trace."""

import re
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

    def test_prices_are_those_of_the_page_on_performance(self):
        page = (results.ROOT / "docs/performance.md").read_text(encoding="utf-8")
        prices = results.newest_prices()
        self.assertIn(("siamese", "pre"), prices)
        for (scheme, against), ratio in prices.items():
            self.assertRegex(page, rf"(?m)^\| {re.escape(f'{scheme} / {against} | {ratio:.3f}')}[ |]")

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
