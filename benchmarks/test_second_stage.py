#!/usr/bin/env python3
"""A second stage has each variant at the rate that the record of the first says is best, and all else as the first has it."""

import io
import json
import sys
import tempfile
import unittest
import unittest.mock
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import second_stage  # noqa: E402
from sweep_text import Failure, rate_text, read_sweep  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
SWEEP = """\
# About the first stage.
sweep: first
record: ../results/first.jsonl
config: tiny
set:
  train.steps: 300      # a comment of its own
  data.train: [a, b]
variants:
  - {model.residual: pre}
  - {model.residual: pre, model.attention_norm: qkv}
  - {label: "mine, deep", model.residual: "siamese(x=hybrid, input_norm=false)"}
grid:
  optim.lr: [1e-3, 3e-3, 1e-2]
  train.seed: [1, 2]
"""
MIDDLE, LOW, HIGH = (1.5, 1.0, 2.0), (1.0, 1.5, 2.0), (2.0, 1.5, 1.0)


class SecondStage(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "sweeps").mkdir()
        (self.folder / "results").mkdir()
        self.file = self.folder / "sweeps/first.yaml"
        self.file.write_text(SWEEP)
        self.lines = []

    def runs(self, variant: str, losses, rates=(0.001, 0.003, 0.01), seconds=60.0, status="finished") -> None:
        self.lines += [{"variant": variant, "lr": rate, "seed": seed, "val_loss": loss, "seconds": seconds, "status": status}
                       for rate, loss in zip(rates, losses, strict=True) for seed in (1, 2)]

    def all_in_the_middle(self) -> None:
        for name in ("pre", "pre, attention_norm=qkv", "mine, deep"):
            self.runs(name, MIDDLE)

    def main(self, *words: str) -> tuple[int | str, str]:
        (self.folder / "results/first.jsonl").write_text("".join(json.dumps(line) + "\n" for line in self.lines))
        said = io.StringIO()
        with unittest.mock.patch.object(sys, "argv", ["second_stage.py", str(self.file), *words]), \
                redirect_stdout(said), redirect_stderr(said):
            try:
                code = second_stage.main()
            except SystemExit as exit_:
                code = exit_.code
        return code, said.getvalue()

    def written(self, name: str) -> str:
        return (self.folder / f"sweeps/{name}.yaml").read_text()

    def test_the_file_it_writes(self):
        self.all_in_the_middle()
        self.assertEqual(self.main()[0], 0)
        header, body = self.written("first-seeds").split("sweep: ", 1)
        self.assertEqual(body, """\
first-seeds
record: ../results/first-seeds.jsonl
config: tiny
set:
  train.steps: 300      # a comment of its own
  data.train: [a, b]
variants:
  - {label: "pre", model.residual: pre, optim.lr: 3e-3}
  - {label: "pre, attention_norm=qkv", model.residual: pre, model.attention_norm: qkv, optim.lr: 3e-3}
  - {label: "mine, deep", model.residual: "siamese(x=hybrid, input_norm=false)", optim.lr: 3e-3}
grid:
  train.seed: [11, 12, 13, 14, 15]
""")
        plain = " ".join(header.replace("#", "").split())
        self.assertIn("3 variants, each at its best rate in the record of the first stage, with 5 fresh seeds", plain)
        self.assertIn("15 runs. Expected: 15 minutes of a core in all", plain)
        self.assertIn("pre: 3e-3, loss 1.0000; next +0.5000 at 1e-3", plain)
        self.assertTrue(all(len(line) <= second_stage.WIDTH for line in header.splitlines()))

    def test_variants_and_seeds_that_are_asked_for_in_that_order(self):
        self.all_in_the_middle()
        self.assertEqual(self.main("--variants", "mine, deep", "pre", "--seeds", "7", "8")[0], 0)
        sweep = read_sweep(self.folder / "sweeps/first-seeds.yaml")
        self.assertEqual([variant.name for variant in sweep.variants], ["mine, deep", "pre"])
        self.assertEqual(sweep.seeds, [7, 8])

    def test_a_file_elsewhere_names_the_same_record(self):
        self.all_in_the_middle()
        self.assertEqual(self.main("--out", str(self.folder / "mine.yaml"))[0], 0)
        self.assertIn("\nrecord: results/first-seeds.jsonl\n", (self.folder / "mine.yaml").read_text())

    def test_a_best_rate_at_an_end_is_told_and_nothing_written(self):
        self.runs("pre", LOW)
        self.runs("mine, deep", HIGH)
        words = ("--variants", "pre", "mine, deep")
        code, said = self.main(*words)
        self.assertEqual(code, 1)
        self.assertIn("the lowest rate that was tried: 3e-4 may be better", said)
        self.assertIn("the highest rate that was tried: 3e-2 may be better", said)
        self.assertEqual([file.name for file in self.file.parent.iterdir()], ["first.yaml"])
        self.assertEqual(self.main(*words, "--anyway")[0], 0)
        self.assertIn('{label: "pre", model.residual: pre, optim.lr: 1e-3}', self.written("first-seeds"))

    def test_the_sweep_of_a_further_rate_shares_the_record(self):
        self.runs("pre", LOW)
        self.runs("pre, attention_norm=qkv", MIDDLE)
        self.runs("mine, deep", HIGH, seconds=90.0)
        self.assertEqual(self.main("--further")[0], 0)
        low, high = self.written("first-lower"), self.written("first-higher")
        for text, name, rates in ((low, "pre", "3e-4, 1e-3, 3e-3, 1e-2"), (high, "mine, deep", "1e-3, 3e-3, 1e-2, 3e-2")):
            self.assertIn("record: ../results/first.jsonl\n", text)
            self.assertIn(f"  optim.lr: [{rates}]\n  train.seed: [1, 2]\n", text)
            self.assertEqual(text.count("label:"), 1)
            self.assertIn(f'label: "{name}"', text)
        self.assertIn("8 runs, of which 2 new", " ".join(high.replace("#", "").split()))
        self.assertIn("Expected: 3 minutes of a core", " ".join(high.replace("#", "").split()))
        # With the further rate recorded the best is inside, and the second stage goes ahead.
        self.runs("mine, deep", (1.2,), (0.03,))
        self.runs("pre", (0.9,), (0.0003,))
        code, said = self.main("--variants", "mine, deep")
        self.assertEqual(code, 0, said)
        self.assertIn("1e-4 may be better", self.main("--variants", "pre")[1])

    def test_a_rate_at_which_a_run_diverged_is_not_the_best_and_ends_the_search(self):
        self.runs("pre", (1.5, 1.0), (0.001, 0.003))
        self.runs("pre", (None,), (0.01,), status="diverged")
        code, said = self.main("--variants", "pre")
        self.assertEqual(code, 0, said)
        self.assertIn("optim.lr: 3e-3", self.written("first-seeds"))

    def test_a_tie_is_told_and_the_lower_rate_taken(self):
        self.runs("pre", (1.2, 1.0, 1.0))
        code, said = self.main("--variants", "pre")
        self.assertIn("a toss with 1e-2", said)
        self.assertIn("optim.lr: 3e-3", self.written("first-seeds"))
        self.assertEqual(code, 0)

    def test_what_is_not_recorded_or_not_known_is_an_error(self):
        self.runs("pre", LOW[:2], (0.001, 0.003))
        self.assertIn("pre: expected a run at 1e-2 seed 1, got none (2 are missing)", str(self.main("--variants", "pre")[0]))
        self.assertIn("got 'post'", str(self.main("--variants", "post")[0]))
        self.assertIn("got 1", str(self.main("--seeds", "11", "1")[0]))
        self.file.write_text(SWEEP.replace("[1e-3, 3e-3, 1e-2]", "[1e-3]"))
        self.assertIn("expected several rates", str(self.main()[0]))
        self.file.write_text(SWEEP.replace("- {model.residual: pre}", "- model.residual: pre"))
        self.assertIn("on one line", str(self.main()[0]))

    def test_rates_go_on_in_their_own_steps(self):
        for rates, low, high in (((0.001, 0.003, 0.01), "3e-4", "3e-2"), ((0.003, 0.01), "9e-4", "3.333e-2"),
                                 ((0.001, 0.002, 0.004), "5e-4", "8e-3")):
            self.assertEqual(rate_text(second_stage.further(list(rates), "lowest")), low)
            self.assertEqual(rate_text(second_stage.further(list(rates), "highest")), high)

    def test_every_sweep_of_the_tree_is_understood_and_its_variants_named_as_in_its_record(self):
        for file in sorted((ROOT / "configs/sweeps").glob("*.yaml")):
            sweep = read_sweep(file)
            lines = second_stage.record.read(sweep.record) if sweep.record.is_file() else []
            recorded = {line["variant"] for line in lines if line["sweep"] == sweep.name}  # a run may have come from another
            self.assertLessEqual(recorded, {variant.name for variant in sweep.variants}, file.name)


if __name__ == "__main__":
    unittest.main()
