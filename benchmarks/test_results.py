#!/usr/bin/env python3
"""Blocks of docs/results.md are found and filled, and speeds leave no trace."""

import math
import re
import sys
import unittest
from pathlib import Path
from statistics import mean, stdev

sys.path.insert(0, str(Path(__file__).resolve().parent))

import result_tables  # noqa: E402
import results  # noqa: E402
from sweep_text import read_sweep  # noqa: E402

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
            "\nRecorded: 3 of 27 runs; the sweep trains the others.\n\n" + results.without_speeds(TABLE) + "\n\n")
        compared = TABLE.replace("\n\n| variant | training", "\n\nEach variant against pre, seed by seed:\n\n| variant | training")
        self.assertNotIn("training", results.filled(counts + compared + "\nreport: x/report.html\n", {}))
        self.assertIn("training", results.filled(counts.replace(" 3 recorded", " 27 recorded") + compared, {}))
        self.assertEqual(results.filled("27 runs: 0 recorded, 0 ended here, 27 to do\nreport: x\n", {}),
                         "\nRecorded: 0 of 27 runs; the sweep trains the others.\n\n")
        whole = results.filled("3 runs: 3 recorded, 0 ended here, 0 to do\n" + TABLE + "\nreport: x\n", {})
        self.assertEqual(whole, "\n" + results.without_speeds(TABLE) + "\n\n")
        with self.assertRaises(results.Failure):
            results.filled("nothing\n", {})

    def test_the_price_of_a_language_model_is_not_charged_to_one_of_images(self):
        counts = "2 runs: 2 recorded, 0 ended here, 0 to do\n"
        table = "| variant | {} |\n|---|---:|\n| pre | 1 |\n\n| variant | training |\n|---|---:|\n| pre | |\n| siamese | 1.26x |\n"
        self.assertIn("1.20x", results.filled(counts + table.format("accuracy"), {("siamese", "pre"): 1.05}))
        self.assertNotIn("adjusted", results.filled(counts + table.format("top-1"), {("siamese", "pre"): 1.05}))

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
        page = "a\n<!-- sweep one -->\nold\n<!-- end -->\nb\n<!-- table two -->\n<!-- end -->\nc\n"
        filled = results.render(page, lambda kind, name, old: f"{kind} {name}\n")
        self.assertEqual(filled, "a\n<!-- sweep one -->\nsweep one\n<!-- end -->\nb\n<!-- table two -->\ntable two\n<!-- end -->\nc\n")
        self.assertEqual(results.render(filled, lambda kind, name, old: old), filled)

    def test_the_page_has_a_block_of_each_recorded_sweep(self):
        blocks = [(found[2], found[3]) for found in results.BLOCK.finditer(results.PAGE.read_text(encoding="utf-8"))]
        self.assertEqual(len(blocks), len(set(blocks)))
        shown = {name for kind, name in blocks if kind == "sweep"}
        files = {file.stem: read_sweep(file).record for file in (results.ROOT / "configs/sweeps").glob("*.yaml")}
        self.assertLessEqual(shown, files.keys())
        self.assertEqual({name for name, record in files.items() if record.is_file()} - shown, set(),
                         "recorded, without a block in docs/results.md")


    def test_the_time_in_the_head_of_a_sweep_is_that_of_its_record(self):
        said = 0
        for file in (results.ROOT / "configs/sweeps").glob("*.yaml"):
            head = " ".join(file.read_text(encoding="utf-8").split("\nsweep:")[0].replace("\n#", " ").split())
            minutes = re.search(r"(\d+) minutes of one core by the record", head)
            if minutes:
                said += 1
                seconds = sum(line["seconds"] for line in results.record.read(read_sweep(file).record))
                self.assertEqual(int(minutes[1]), round(seconds / 60), file.name)
        self.assertGreaterEqual(said, 6)


class Tables(unittest.TestCase):
    def test_runs_are_counted_and_what_is_recorded_leaves(self):
        old = """\

| question | sweep | runs | expected |
|---|---|---:|---|
| one | `configs/sweeps/one.yaml` | 7 | 1 hour |
| part | part.yaml, to be written | 7 | 2 hours |
| whole | `configs/sweeps/whole.yaml` | 7 | 3 hours |
| later | later.yaml, to be written | 30 | 4 hours |
"""
        counts = {"one": (9, 0), "part": (9, 3), "whole": (9, 9)}.get
        self.assertEqual(result_tables.made("not-run", old, counts), """\

| question | sweep | runs | expected |
|---|---|---:|---|
| one | `configs/sweeps/one.yaml` | 9 | 1 hour |
| part | `configs/sweeps/part.yaml` | 6 of 9 | 2 hours |
| later | later.yaml, to be written | 30 | 4 hours |

""")

    def test_the_losses_of_first_steps(self):
        lines = [{"variant": variant, "seed": seed, "lr": lr, "first_loss": loss}
                 for variant, seed, loss in (("a", 12, 1.5), ("a", 11, 1.25), ("b", 11, 2.0)) for lr in (1, 2)]
        self.assertEqual(result_tables.first_losses(lines), "| first step's loss | seed 11 | seed 12 |\n|---|---:|---:|\n"
                                                            "| a | 1.250000 | 1.500000 |\n| b | 2.000000 |  |\n")
        lines[0]["first_loss"] = 9.0
        with self.assertRaisesRegex(ValueError, "a: expected one loss"):
            result_tables.first_losses(lines)

    def test_distances_by_judge(self):
        def line(scheme: str, seed: int, distance: float) -> dict:
            return {"run": f"dit-micro-{scheme}-seed{seed}",
                    "samples": {"classifier": "runs/x/vit-micro-pre-seed1", "feature_distance": distance, "class_agreement": distance / 100}}

        lines = [line("pre", seed, seed) for seed in (1, 2, 3)] + [line("siamese", seed, 2 * seed + 1) for seed in (1, 2, 3)]
        rows = result_tables.distance(lines).splitlines()[2:]
        self.assertEqual(rows, [
            "| dit-micro, pre | vit-micro, pre, seed 1 | 2.00 +- 1.00 | 2.0 +- 1.0 % |",
            "| dit-micro, siamese | vit-micro, pre, seed 1 | 5.00 +- 2.00 | 5.0 +- 2.0 % |",
            # differences 2, 3, 4: 3 +- 4.3027 / sqrt(3)
            "| difference, seed by seed (95 % interval) | vit-micro, pre, seed 1 | +3.00 (+0.52 to +5.48) | +3.0 (+0.5 to +5.5) |"])

    def test_differences_by_depth(self):
        lines = [{"scheme": scheme, "config": {"model.blocks": "4"}, "lr": 0.01, "seed": seed, "val_loss": loss}
                 for scheme, losses in (("pre", (2.0, 2.0, 2.0)), ("siamese", (1.0, 1.5, 2.0))) for seed, loss in enumerate(losses)]
        self.assertEqual(result_tables.depth(lines).splitlines()[2], "| at 0.01 | -0.500 (-1.742 to +0.742) |")

    def test_the_best_rate_is_the_lowest_mean_at_which_nothing_diverged(self):
        def lines(lr: float, losses: tuple[float | None, ...]) -> list[dict]:
            return [{"variant": "pre", "lr": lr, "seed": seed, "val_loss": loss, "status": "finished" if loss else "diverged"}
                    for seed, loss in enumerate(losses)]

        self.assertEqual(result_tables.at_best_rate(lines(0.01, (1.0, 1.2)) + lines(0.03, (0.9, 1.0)), "pre"), {0: 0.9, 1: 1.0})
        self.assertEqual(result_tables.at_best_rate(lines(0.01, (1.0, 1.2)) + lines(0.03, (0.9, None)), "pre"), {0: 1.0, 1: 1.2})
        self.assertEqual(result_tables.at_best_rate(lines(0.03, (0.9, None)), "pre"), {})
        self.assertEqual(result_tables.at_best_rate(lines(0.03, (0.9, 1.0)), "post"), {})

    def test_the_chance_of_a_difference(self):
        # Of one degree of freedom 1 - 2 / pi atan(t), of two 1 - t / sqrt(2 + t^2), of three tables say t(0.05) = 3.1824.
        self.assertAlmostEqual(result_tables.student_p([1.0, 3.0]), 1 - 2 / math.pi * math.atan(2.0))
        t = 2 * 3**0.5
        self.assertAlmostEqual(result_tables.student_p([1.0, 2.0, 3.0]), 1 - t / (2 + t * t) ** 0.5)
        for freedom, quantile in result_tables.STUDENT_T.items():
            n = freedom + 1
            spread = [(-1.0) ** i for i in range(n)]
            centred = [value - mean(spread) for value in spread]
            values = [value + quantile * stdev(centred) / n**0.5 for value in centred]
            self.assertAlmostEqual(result_tables.student_p(values), 0.05, places=5, msg=str(freedom))
        self.assertEqual([round(p, 3) for p in result_tables.holm([0.04, 0.01, 0.03, 0.02])], [0.06, 0.04, 0.06, 0.06])

    def test_the_table_of_all_comparisons(self):
        def lines(name: str, losses: tuple[float, ...]) -> list[dict]:
            return [{"variant": name, "lr": 0.01, "seed": seed, "val_loss": loss} for seed, loss in enumerate(losses)]

        records = {"stability": lines("pre", (2.0, 2.0, 2.1)) + lines("siamese", (1.0, 1.5, 2.0)) + lines("span", (0.5, 0.5, 0.5)),
                   "depth": lines("pre, 48 blocks", (2.0, 2.0, 2.0)) + lines("siamese, 4 blocks", (1.0, 1.0, 1.0)),
                   "text-seeds": lines("pre", (2.0,) * 4) + lines("siamese", (2.0,) * 5),  # a seed is missing
                   "families": lines("vit-micro, pre", (1.0, 1.0, 1.0)) + lines("vit-micro, siamese", (2.0, 2.1, 2.2))
                   + lines("moe-micro, siamese", (0.1, 0.1, 0.1))}
        # Differences -1, -0.5, -0.1: mean -0.5333, standard deviation 0.4509, t 2.0486, p 0.177; 1, 1.1, 1.2: t 19.05, p 0.00274.
        rows = result_tables.summary(lambda name: records.get(name, [])).splitlines()[2:]
        self.assertEqual(rows, [
            "| [arithmetic](#learning-rates), 12 blocks, the first stage of these | searched with these seeds | 3 | 2.033 | -0.533 (-1.654 to +0.587) | 0.177 |  | `span` of 3 |",
            "| [drawn shapes](#families), vision | 1e-3 for both | 3 | 1.000 | +1.100 (+0.852 to +1.348) | 0.005 |  |  |"])

    def test_depth_on_text(self):
        def lines(variant: str, rate: float, losses: list[float], first_seed: int = 11) -> list[dict]:
            return [{"variant": variant, "lr": rate, "seed": first_seed + at, "val_loss": loss * math.log(2)} for at, loss in enumerate(losses)]

        shallow = [*lines("pre", 3e-3, [2.0, 2.0, 2.0]), *lines("attn_res(block=3)", 3e-3, [1.9, 1.8, 1.7, 9.0])]
        deep = [*lines("pre", 3e-3, [2.5, 2.5, 2.5]), *lines("attn_res(block=6)", 3e-3, [2.2, 2.1, 2.0]),
                *lines("pre", 1e-2, [2.6, 2.6, 2.6]), *lines("attn_res(block=6)", 1e-2, [2.9, 2.9, 2.9])]
        self.assertEqual(result_tables.text_depth(deep, shallow).splitlines()[2:], [
            "| attn_res | -0.200 (-0.448 to +0.048) | -0.400 (-0.648 to -0.152) | -0.200 (-0.200 to -0.200) |"])

    def test_no_verdict_before_the_last_run(self):
        for name in ("text-depth", "largest-rate"):
            self.assertEqual(result_tables.made(name, "", lambda name: (24, 23)).strip(), "", name)
            self.assertEqual(result_tables.made(name, "", lambda name: None).strip(), "", name)

    def test_the_largest_rates(self):
        def runs(variant: str, losses: dict[float, float | None]) -> list[dict]:
            return [{"variant": variant, "lr": lr, "val_loss": loss, "baseline": 3.0, "status": "finished" if loss else "diverged"}
                    for lr, loss in losses.items()]

        lines = (runs("pre, 12 blocks, warmup=40", {0.01: 1.0, 0.03: 1.1, 0.1: 2.0})  # 95 %, then half of the way
                 + runs("pre, 12 blocks, warmup=0", {0.01: 1.0, 0.03: 1.3, 0.1: 1.0})  # 85 % lies between
                 + runs("pre, 48 blocks, warmup=40", {0.01: 1.0, 0.03: 1.0, 0.1: 1.0})
                 + runs("post, 12 blocks, warmup=40", {0.001: 2.9, 0.003: 1.0, 0.01: None}))
        self.assertEqual(result_tables.largest_rates(lines).splitlines(), [
            "| usable up to (not stuck up to) | 12 blocks, warm-up | 12 blocks, none | 48 blocks, warm-up |",
            "|---|---|---|---|",
            "| pre | 0.03 (0.1) | 0.01 (0.1) | 0.1 or more |",
            "| post | below 0.001 (0.003) |  |  |"])
        self.assertEqual(result_tables.largest_rates([]), "")

    def test_what_a_wrong_rate_costs(self):
        def runs(variant: str, losses: dict[float, list[float | None]]) -> list[dict]:
            return [{"variant": variant, "lr": lr, "val_loss": loss, "baseline": 3.0, "status": "finished" if loss else "diverged"}
                    for lr, of in losses.items() for loss in of]

        text = runs("pre", {1: [1.0], 2: [1.3]}) + runs("post", {1: [1.2], 2: [9.0]}) + runs("siamese", {1: [1.0], 2: [1.0], 3: [None]})
        other = runs("pre", {1: [2.0, 2.2], 2: [2.1, None]})  # means 2.1 and 2.55
        self.assertEqual(result_tables.sensitivity({"text": text, "other": other}).splitlines()[2:],
                         ["| siamese | 0.000 |  |", "| pre | 0.150 | 0.225 |", "| post | 0.900 |  |"])

    def test_a_table_that_nobody_makes(self):
        with self.assertRaisesRegex(ValueError, "expected not-run, depth, distance, first-losses, summary, sensitivity, text-depth, largest-rate"):
            result_tables.made("gone", "", lambda name: None)


if __name__ == "__main__":
    unittest.main()
