#!/usr/bin/env python3
"""The tables of docs/performance.md from a small record; needs no PyTorch."""

import argparse
import json
import sys
import tempfile
import unittest
from pathlib import Path
from xml.etree import ElementTree

sys.path.insert(0, str(Path(__file__).resolve().parent))

import growth  # noqa: E402
import plan  # noqa: E402
import plot  # noqa: E402
import recording  # noqa: E402
import render  # noqa: E402
import run  # noqa: E402
import shapes  # noqa: E402
from record import Record, by_cpu, newest  # noqa: E402
from second_stream import second_streams  # noqa: E402
from targets import targets  # noqa: E402

MACHINE = {"bench": "machine", "command": "benchmarks/run.py", "date": "2030-01-01", "cpu": "A CPU", "cores": 2,
           "simd": "AVX2", "memory_gb": 8.0, "torch": "2.13.0",
           "threads": [{"threads": 1, "fma_gflops": 100.0, "triad_gb_per_s": 20.0}]}


def step(subject: str, round_: int, ms: float, rest_mb: float = 100, shape: str = "s") -> dict:
    line = {"bench": "step", "subject": subject, "shape": shape, "round": round_, "median_ms": ms, "parameters": 6400000,
            "tokens_per_s": 1e6 / ms, "idle_rss_mb": 50, "state_mb": 30, "peak_rss_mb": 80 + rest_mb}
    if subject.startswith("ours"):
        line |= {"gflops": 50.0, "peak_share": 0.5, "part_ms": {"matmul": ms} if round_ == 0 else {}}
    return line


def kernel(name: str, share: float) -> dict:
    return {"kernel": name, "pass": "forward", "reads": 1, "writes": 1, "ms": 1.0, "gb_per_s": 10.0,
            "stream_gb_per_s": 20.0, "share": share}


def against(shape: str, label: str, ratio: float) -> dict:
    return {"bench": "step_against", "shape": shape, "label": label, "median_ms": 101, "against_ms": 100, "ratio": ratio}


def record() -> list[dict]:
    lines = [MACHINE]
    # The machine is half as fast in the second round: ratios within a round do not see it.
    for round_, slow in enumerate((1, 2, 1)):
        lines += [step("ours pre", round_, 100 * slow, 20), step("ours siamese", round_, 101 * slow, 30),
                  step("eager pre", round_, 160 * slow, 100), step("eager siamese", round_, 140 * slow, 100)]
    lines += [step("ours pre whole batch", 0, 100, 35), step("ours siamese whole batch", 0, 101, 45)]
    lines += [step("ours pre bfloat16", 0, 50), step("eager pre autocast", 0, 75), step("compile pre autocast", 0, 55)]
    lines += [against("s", "siamese / pre", 1.01), against("s", "hc / pre", 1.2),
              against("s", "siamese / pre, bfloat16", 1.1) | {"median_ms": 110}]
    kernels = [kernel("junction pre", 0.89), kernel("junction post", 0.95), kernel("junction siamese, x=hybrid ffn", 0.93), kernel("swiglu", 0.86), kernel("rope", 0.1)]
    lines.append({"bench": "kernels", "in_cache": False, "rows": 10, "width": 768, "threads": 2, "kernels": kernels})
    experts = {"bench": "experts", "rows": 1024, "width": 128, "hidden": 128, "experts": 8, "per_token": 2,
               "gflops": 60.0, "dense_gflops": 80.0, "ratio": 0.75}
    lines += [experts, experts | {"shape": "e", "width": 512}]
    lines.append({"bench": "generate", "shape": "s", "median_ms": 1.1, "against_ms": 1.0, "ratio": 1.01, "bound_ms": 1.0,
                  "of_bound": 1.7})
    lines.append(lines[-1] | {"precision": "bfloat16", "ratio": 1.03})
    for round_ in (0, 1):
        lines += [step("ours pre", round_, 100, shape="e"), step("eager pre loop", round_, 150, shape="e"),
                  step("eager pre grouped", round_, 120, shape="e"), step("compile pre grouped", round_, 116, shape="e"),
                  step("ours pre bfloat16", round_, 50, shape="e"), step("eager pre loop autocast", round_, 60, shape="e")]
        lines += [step("ours siamese recompute", round_, 100, shape="x"),
                  step("eager siamese recompute", round_, 129, shape="x")]
    return lines


class Render(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.page = Path(folder.name) / "performance.md"

    def test_targets_are_met_or_missed_by_the_ratio_within_a_round(self):
        found = {target.what: target for target in targets(Record(record()))}
        self.assertAlmostEqual(found["S: tokens/s, pre, ours / eager"].measured, 1.6)
        # Not measured: not judged. Micro-batches against a whole batch: not alike, not judged.
        self.assertFalse(any("hybrid" in what or "S: tokens/s, pre, ours / compile" == what for what in found))
        self.assertFalse(any("hc" in what or "activations and workspace, pre" in what for what in found))
        for what, measured, relation, wanted, met in (
            ("S: step, siamese / pre", 1.01, "<=", 1.015, True),
            ("S: tokens/s, pre, ours / eager", 1.6, ">=", 1.5, True),
            ("S: tokens/s, siamese, ours / eager", 140 / 101, ">=", 1.5, False),
            ("S: tokens/s, pre, ours bfloat16 / eager autocast", 1.5, ">=", 1.4, True),
            ("S: tokens/s, pre, ours bfloat16 / compile autocast", 1.1, ">=", 1.2, False),
            ("S: activations and workspace of the whole batch, pre, ours / eager", 0.35, "<=", 0.4, True),
            ("S: activations and workspace of the whole batch, siamese, ours / eager", 0.45, "<=", 0.4, False),
            ("S: generation, ms a token, siamese / pre", 1.01, "<=", 1.02, True),
            ("S: generation, ms a token against reading the weights once", 1.7, "<=", 1.6, False),
            ("S: generation, bfloat16, ms a token, siamese / pre", 1.03, "<=", 1.02, False),
            ("S: generation, bfloat16, ms a token against reading the weights once", 1.7, "<=", 1.6, False),
            ("E: tokens/s, pre, ours / eager loop", 1.5, ">=", 1.3, True),
            ("E: tokens/s, pre, ours / eager grouped", 1.2, ">=", 1.3, False),
            ("E: tokens/s, pre, ours / compile grouped", 1.16, ">=", 1.15, True),
            ("E: tokens/s, pre, ours bfloat16 / eager loop autocast", 1.2, ">=", 1.3, False),
            ("E: GFLOP/s of the experts / of a dense branch of the active size", 0.75, ">=", 0.85, False),
            ("X: tokens/s, siamese recompute, ours / eager", 1.29, ">=", 1.3, False),
            # 6 arrays of 8 x 256 rows of 256 floats at 13 places, at 20 GB/s: 8.2 ms
            ("S: the second stream, bfloat16: extra time / its extra bytes at streaming rate",
             10 / (6 * 8 * 256 * 256 * 13 * 4 / 20e6), "<=", 1.3, True),
            ("junction passes beyond cache: the least share of streaming (junction pre, forward; 1 of 3 below)", 0.89,
             ">=", 0.9, False),
            ("other passes beyond cache: the least share of streaming (swiglu, forward; 0 of 1 below)", 0.86, ">=", 0.85,
             True),
        ):
            target = found.pop(what)
            self.assertAlmostEqual(target.measured, measured, msg=what)
            self.assertEqual((target.relation, target.wanted, target.met), (relation, wanted, met), what)
        self.assertEqual([what for what in found if not what.startswith("E: activations")], [])

    def test_a_missed_target_says_its_figure(self):
        text = render.target_table(Record(record()))
        self.assertIn("| S: step, siamese / pre | 1.010 | <= 1.015 | met |", text)
        self.assertIn("| S: tokens/s, siamese, ours / eager | 1.386 | >= 1.5 | **missed** |", text)
        self.assertIn("; S: tokens/s, siamese, ours / eager: 1.386 (>= 1.5); ", text)

    def test_schemes_measured_apart_join_the_table_and_the_targets(self):
        quiet = against("s", "lambda / pre", 1.02) | {"ratio_low": 1.013, "ratio_high": 1.031}
        lines = record() + of_run("2", "schemes", quiet, against("s", "attn_res(block=1) / pre", 1.2))
        self.assertIn("| lambda / pre | 1.020 (1.013 to 1.031) |", render.generated(Record(lines)))
        self.assertIn("| S: step, attn_res(block=1) / pre | 1.200 | <= 1.1 | **missed** |", render.target_table(Record(lines)))

    def test_tables_of_prices_memory_and_experts(self):
        text = render.generated(Record(record()))
        self.assertIn("| S, float32 | 1.0 | 191 | 20.0 | 9.5 | 0.10 |", text)
        self.assertIn("| S, bfloat16 | 10.0 | 164 | 20.0 | 8.2 | 1.22 |", text)
        self.assertIn("| S, pre | 100 | 35 (0.35) | 20 (0.20) |", text)
        self.assertIn("| hc / pre | 1.200 |", text)
        self.assertIn("| S, bfloat16 | 1.100 | 1.000 | 1.030 | 1.000 | 1.700 |", text)
        self.assertIn("2 of 8 experts of 128 | 60.0 | 80.0 | 75% |", text)
        self.assertIn("| junction pre | forward | 1 + 1 | 1.000 | 10.0 | 20.0 | **89%** |", text)
        self.assertIn("| swiglu | forward | 1 + 1 | 1.000 | 10.0 | 20.0 | 86% |", text)

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


def of_run(run_id: str, part: str, *lines: dict, finished: bool = True) -> list[dict]:
    end = [{"bench": "finished", "minutes": 1}] if finished else []
    return [MACHINE | {"run": run_id, "date": run_id}, *({"run": run_id, "part": part} | line for line in (*lines, *end))]


class Runs(unittest.TestCase):
    def test_each_part_is_of_the_newest_run_that_finished_it(self):
        lines = record() + of_run("2", "s", step("ours pre", 0, 70)) + of_run("3", "x", step("ours pre", 0, 60, shape="x"))
        lines += of_run("4", "s", step("ours pre", 0, 50), finished=False)
        self.assertEqual(newest(lines), {"s": "2", "kernels": "", "e": "", "x": "3"})
        found = Record(lines)
        self.assertEqual([line["median_ms"] for line in found.of("s", "ours pre")], [70])
        self.assertEqual(found.against + found.generate, [])  # the newest run of S has none: nothing is mixed
        text = render.origin(found)
        for line in ("kernels, E: measured 2030-01-01 with", "S: measured 2 with", "X: measured 3 with"):
            self.assertIn(line, text)
        self.assertNotIn("measured 4", text)

    def test_generations_of_cpus_with_one_name_are_kept_apart(self):
        lines = record() + of_run("2", "s", step("ours pre", 0, 70))
        newer = [line | ({"cpu_family": "26"} if line["bench"] == "machine" else {})
                 for line in of_run("3", "s", step("ours pre", 0, 50))]
        kinds = by_cpu(lines + newer)
        self.assertEqual(list(kinds), ["AVX2 kernels", "AVX2 kernels, A CPU of family 26"])
        self.assertEqual(kinds["AVX2 kernels"], lines)
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "performance.md"
            render.write_tables(page, lines + newer)
            titles = [line for line in page.read_text().splitlines() if line.startswith("### ")]
        self.assertEqual(titles, ["### AVX2 kernels, A CPU of family 26", "### AVX2 kernels"])

    def test_extra_bytes_are_not_judged_by_the_memory_of_another_run(self):
        found = Record(record() + of_run("2", "s", step("ours pre", 0, 70), against("s", "siamese / pre", 1.02)))
        self.assertEqual(second_streams(found), [])

    def test_what_was_measured_stays_when_a_run_is_aborted(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "bench.jsonl"
            file.write_text(json.dumps(MACHINE) + "\n")
            words = argparse.Namespace(record=file, binary="siamese", parts=["s"], quick=True, rounds=1, command="x")
            bench = run.Bench(words)
            bench.part = "s"
            bench.measure(["sh", "-c", "echo some text; echo '{\"bench\": \"step\"}'"], shape="s", round=0)
            with self.assertRaises(SystemExit):
                bench.measure(["sh", "-c", "exit 3"])
            lines = [json.loads(line) for line in file.read_text().splitlines()]
            self.assertEqual(lines[0], MACHINE)
            self.assertEqual(lines[1], {"run": bench.run_id, "part": "s", "shape": "s", "round": 0, "bench": "step"})


class Plan(unittest.TestCase):
    def test_every_family_has_its_peers(self):
        names = {shape: [subject.name for subject in plan.subjects(shape, True)] for shape in shapes.NAMES}
        for shape in shapes.NAMES:
            self.assertEqual(len(set(names[shape])), len(names[shape]))
            for wanted in ("ours pre", "ours siamese whole batch"):
                self.assertIn(wanted, names[shape])
            self.assertTrue(all(shape in table for table in (plan.STEPS, plan.ROUNDS, plan.TURNS)))
        self.assertIn("eager siamese autocast", names["m"])
        self.assertIn("compile pre recompute", names["x"])
        self.assertIn("compile siamese loop", names["e"])
        self.assertLess({"ours pre bfloat16", "compile siamese loop autocast", "eager pre grouped autocast"}, set(names["e"]))
        self.assertIn("compile siamese autocast", names["v"])
        self.assertFalse(any("bfloat16" in subject.name for subject in plan.subjects("s", False)))
        self.assertIn("mhc / pre", [price.label for price in plan.prices("s", False)])
        self.assertIn("attn_res(block=1) / pre", [price.label for price in plan.prices("s", False)])
        self.assertIn("attn_res(block=3) / pre", [price.label for price in plan.prices("d", False)])

    def test_no_price_is_measured_in_two_parts(self):
        """A table merges the parts by shape and label."""
        apart = [(shape, price.label) for shape, price in plan.scheme_prices()]
        self.assertEqual(len(set(apart)), len(apart))
        for shape in shapes.NAMES:
            self.assertFalse({(shape, price.label) for price in plan.prices(shape, True)} & set(apart))
        self.assertIn(("v", "mv_split / pre"), apart)
        self.assertIn(("s", "lambda / pre"), apart)


def growth_result() -> dict:
    sizes = {("depth", False): (1, 2, 4), ("depth", True): (1, 2, 4), ("width", False): (8, 16), ("context", False): (4, 8),
             ("batch", False): (2, 6)}
    points = [{"axis": axis, "recompute": again, "value": value, "median_ms": 3.0 * value, "gflop": 2.0 * value,
               "gflops": 0.7, "fma_gflops": 1.0, "activations_mb": 10.0 + value}
              for (axis, again), values in sizes.items() for value in values]
    fits = [{"axis": axis, "recompute": again, "points": len(values), "time": 1.0, "flops": 1.0, "activations": 0.5}
            for (axis, again), values in sizes.items()]
    return MACHINE | {"bench": "growth", "scheme": "pre", "precision": "float32", "steps": 5, "threads": 2, "points": points,
                      "fits": fits}


class Growth(unittest.TestCase):
    def test_the_page_has_plots_exponents_and_points(self):
        with tempfile.TemporaryDirectory() as folder:
            growth.draw_all(growth_result(), Path(folder))
            time, memory = ((Path(folder) / f"growth-{name}.svg").read_text() for name in ("time", "memory"))
        for text, panels, circles in ((time, 4, 3 + 2 + 2 + 2 + 4), (memory, 2, 4 * 3)):
            tree = ElementTree.fromstring(text)
            tag = "{http://www.w3.org/2000/svg}"
            self.assertEqual(len(tree.findall(f"{tag}g")), panels)
            self.assertEqual(len(tree.findall(f".//{tag}circle")), circles)  # four of the first are in legends
            for circle in tree.iter(f"{tag}circle"):
                self.assertTrue(0 < float(circle.get("cx")) < plot.WIDTH and 0 < float(circle.get("cy")) < plot.HEIGHT)
        text = growth.tables(growth_result())
        self.assertIn("| depth, every block recomputed | 3 | 1.00 | 1.00 | 0.50 |", text)
        self.assertIn("| batch | 6 | 18.0 | 12.0 | 0.7 | 70% | 16 |", text)

    def test_ticks_lie_inside(self):
        self.assertEqual(plot.Scale(3, 120, 0, 1, True).ticks, [5, 10, 20, 50, 100])
        self.assertEqual(plot.Scale(0, 630, 0, 1, False).ticks, [0, 200, 400, 600])
        self.assertAlmostEqual(plot.Scale(1, 100, 0, 200, True)(10), 100)


class Recording(unittest.TestCase):
    def test_a_recorded_step_is_held_against_its_neighbours(self):
        steps = [{"step_ms": ms} for ms in (500, 10, 20, 37, 30, 40, 50, 60, 58, 80)]
        for at in (3, 8):
            steps[at]["sites"] = []
        self.assertEqual(recording.extra_ms(steps), (40, [37 - 25, 58 - 70]))

    def test_brackets_keep_their_commas(self):
        self.assertEqual(recording.schemes_of("pre,siamese(a=1,b=2),hc"), ["pre", "siamese(a=1,b=2)", "hc"])


class Shapes(unittest.TestCase):
    def test_the_recipes_are_read(self):
        self.assertEqual(shapes.load("m"), shapes.Shape(width=768, blocks=12, heads=12, ffn_width=2048, vocab=50304,
                                                        context=512, batch=2))
        for name in shapes.NAMES:
            self.assertGreater(shapes.load(name).width, 0)
        self.assertEqual((shapes.load("e").experts, shapes.load("e").experts_per_token), (16, 2))
        self.assertEqual((shapes.load("x").tokens, shapes.load("v").tokens), (256, 197))


if __name__ == "__main__":
    unittest.main()
