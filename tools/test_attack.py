#!/usr/bin/env python3
"""tools/attack.py can fail: the shim does what it is told at the call it is told, and what is the same as what."""

import errno
import json
import signal
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from attacks import lab as ground  # noqa: E402
from attacks.flips import verdict  # noqa: E402
from attacks.held import Held  # noqa: E402
from attacks.lab import Done, bad_manners, differences, snapshot  # noqa: E402

# Stands for the binary: three calls that change a file, one that reads, and calls elsewhere that do not count.
PROGRAM = """
import os, sys
os.write(1, b"not counted")
file = os.open("a.tmp", os.O_WRONLY | os.O_CREAT)
os.write(file, b"0123456789")
os.rename("a.tmp", "a")
os.close(os.open("a", os.O_RDONLY))
"""


class Shim(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.lab = ground.Lab(Path(sys.executable), Path(cls.scratch.name), 1, short=True, minutes=0, jobs=1)
        cls.lab.binary = Path(sys.executable)  # not where its link points: a virtual environment is found by it

    def setUp(self):
        self.home = self.lab.new_folder() / "home"
        self.home.mkdir()

    def run_program(self, **shim: str) -> Done:
        return self.lab.run(self.home, ["-c", PROGRAM], **shim)

    def test_counts_calls_below_the_folder_only(self):
        calls = self.lab.calls(self.home, ["-c", PROGRAM])
        self.assertEqual(calls, [("open", "/a.tmp"), ("write", "/a.tmp"), ("rename", "/a")])

    def test_counts_reads_when_asked(self):
        calls = self.lab.calls(self.home, ["-c", PROGRAM], reads="1")
        self.assertIn(("open", "/a"), calls)
        self.assertNotIn(("rename", "/a"), calls)

    def test_kills_before_a_call(self):
        self.assertEqual(self.run_program(at="3", do="kill").code, -signal.SIGKILL)
        self.assertEqual(snapshot(self.home).keys(), {"a.tmp"})

    def test_kills_in_the_middle_of_a_write(self):
        self.assertEqual(self.run_program(at="2", do="half").code, -signal.SIGKILL)
        self.assertEqual((self.home / "a.tmp").read_bytes(), b"01234")

    def test_lets_a_call_fail(self):
        done = self.run_program(at="2", do=str(errno.ENOSPC), stays="1")
        self.assertEqual(done.code, 1)
        self.assertIn("No space left", done.error)

    def test_holds_a_call(self):
        held = Held(self.lab, self.home, ["-c", PROGRAM], 3)
        self.assertTrue(held.reached)
        self.assertEqual(snapshot(self.home).keys(), {"a.tmp"})
        held.release()
        self.assertEqual(ground.finish(held.process).code, 0)
        self.assertEqual(snapshot(self.home).keys(), {"a"})


class Judgement(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def snapshot(self, loss: float, clock: float, weights: str = "weights", more: str = "") -> dict:
        run = self.root / f"{loss}-{clock}-{weights}-{more}"
        run.mkdir()
        (run / "metrics.jsonl").write_text(json.dumps({"loss": loss, "step_ms": clock}) + "\n")
        (run / "model.safetensors").write_text(weights)
        if more:
            (run / more).write_text("half")
        return snapshot(run)

    def test_only_the_clock_may_differ(self):
        whole = self.snapshot(2.5, 1)
        self.assertEqual(differences(whole, self.snapshot(2.5, 2)), [])
        self.assertEqual(differences(whole, self.snapshot(2.6, 1)), ["differs: metrics.jsonl"])
        self.assertEqual(differences(whole, self.snapshot(2.5, 1, "weightz")), ["differs: model.safetensors"])
        self.assertEqual(differences(whole, self.snapshot(2.5, 1, more="a.tmp-1")), ["left over: a.tmp-1"])

    def test_manners(self):
        self.assertEqual(bad_manners(Done(2, "", "siamese: run: exists already\n")), [])
        self.assertNotEqual(bad_manners(Done(1, "", "No space left\n")), [])
        self.assertNotEqual(bad_manners(Done(-signal.SIGSEGV, "", "")), [])
        self.assertNotEqual(bad_manners(Done(1, "", "terminate called\nsiamese: x\n")), [])

    def test_damage_is_named_or_harmless(self):
        self.assertEqual(verdict(Done(0, "", ""), ["optim.safetensors"], []), [])
        self.assertEqual(verdict(Done(3, "", "siamese: step3/optim.safetensors: m.x\n"), ["optim.safetensors"], []), [])
        self.assertNotEqual(verdict(Done(0, "", ""), ["optim.safetensors"], ["differs: model"]), [])
        self.assertNotEqual(verdict(Done(3, "", "siamese: something\n"), ["optim.safetensors"], []), [])


if __name__ == "__main__":
    unittest.main()
