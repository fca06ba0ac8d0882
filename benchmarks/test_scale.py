#!/usr/bin/env python3
"""The tables of docs/scale.md from invented answers and measurements; starts nothing."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import ranks  # noqa: E402
import scale  # noqa: E402

MIB = 1 << 20


class FakePlan:
    """A machine that computes 1e9 operations at the given rate, updates in 10 ms and sends 1e8 bytes a step."""

    def plan(self, shape: str, devices: int, *words: str, shard: str = "none") -> dict:
        given = dict(zip(words[::2], words[1::2]))
        compute = 1e9 / devices / (float(given.get("--device-flops", "1G")[:-1]) * 1e9)
        link = float(given.get("--node-link", "1000MB/s").removesuffix("MB/s").removesuffix("GB/s"))
        link *= 1e9 if given.get("--node-link", "").endswith("GB/s") else 1e6
        send = 0 if devices == 1 else 1e8 / link
        moments = 100 * MIB / (devices if shard == "optimizer" else 1)
        return {"compute_seconds": compute, "update_seconds": 0.01, "communication_seconds": send,
                "step_seconds": compute + 0.01 + send, "bytes": {"moments": moments, "total": 200 * MIB + moments}}


def record(times: dict[tuple[str, str], float], peaks: dict[str, float]) -> ranks.Record:
    lines = [{"kind": "machine", "date": "2030-01-01", "commit": "abc", "cpu": "A CPU", "cores": 2, "simd": "AVX2",
              "torch": "2", "memory_gb_per_s": 10.0, "idle_mb": 100}]
    lines += [{"kind": "run", "shape": shape, "setting": setting, "round": 0, "step_ms": [ms, ms, 9 * ms],
               "peak_mb": peaks[setting]} for (shape, setting), ms in times.items()]
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.write("\n".join(map(json.dumps, lines)))
        file.flush()
        return ranks.Record(Path(file.name))


PEAKS = {"1 x 1": 400, "1 x 2": 400, "2 x 1": 400, "2 x 1 divided": 350}


class Ranks(unittest.TestCase):
    def setUp(self):
        # Of S, two ranks compute 500 ms, update 10 and send the rest; M waits longer than that.
        times = {("s", "1 x 1"): 1010, ("s", "1 x 2"): 600, ("s", "2 x 1"): 610, ("s", "2 x 1 divided"): 610,
                 ("m", "1 x 1"): 2010, ("m", "1 x 2"): 1100, ("m", "2 x 1"): 1250, ("m", "2 x 1 divided"): 1250}
        self.record = record(times, PEAKS)
        self.prediction = ranks.Prediction(FakePlan(), self.record)

    def test_the_machine_is_fitted_at_s(self):
        self.assertEqual(self.prediction.rate("s"), "1.000000G")
        self.assertEqual(self.prediction.rate("m"), "0.500000G")
        self.assertEqual(self.prediction.link, "1000MB/s")
        self.assertAlmostEqual(self.prediction.step("m", 2, self.prediction.link)["step_seconds"], 1.11)

    def test_targets(self):
        text = ranks.target_table(self.record, self.prediction)
        self.assertIn("| S: 2 ranks x 1 thread against 1 process x 2 threads | 0.984 | >= 0.97 | met |", text)
        self.assertIn("| M: 2 ranks x 1 thread against 1 process x 2 threads | 0.880 | >= 0.97 | **missed** |", text)
        self.assertIn("| M: 2 ranks x 1 thread against 1 process x 1 threads | 1.608 | >= 1.85 | **missed** |", text)
        self.assertIn("of all | 0.500 | 0.5 within 5 % | met |", text)

    def test_predictions_stand_beside_measurements(self):
        text = ranks.tables(self.record, self.prediction)
        self.assertIn("| S | 2 x 1 | 610.0 | 610 | +0% (fitted) | 400 | 400 | +0% |", text)
        self.assertIn("| M | 2 x 1 | 1250.0 | 1110 | -11% | 400 | 400 | +0% |", text)
        self.assertIn("| M | 2 x 1 divided | 1250.0 | 1110 | -11% | 350 | 350 | +0% |", text)
        self.assertIn("| M | 1 x 2 | 1100.0 | - |  | 400 | 400 | +0% |", text)


def answer(devices: int, *plans: tuple[str, bool, bool, float]) -> scale.Answer:
    made = [{"sharding": sharding, "recompute": recompute, "fits": fits, "step_seconds": seconds, "micro_batch": 2,
             "bytes": {"total": 4e9, "activations": 1e9}, "sent_bytes": 5e8, "communication_share": 0.1,
             "communication_seconds": seconds / 2, "days": seconds, "price": 7.0}
            for sharding, recompute, fits, seconds in plans]
    return scale.Answer(devices, 16, {"plans": made, "model": {"tokens_each_step": 1000}})


class Scale(unittest.TestCase):
    def test_the_fastest_that_fits(self):
        some = answer(4, ("none", False, False, 1.0), ("optimizer", False, True, 3.0), ("fsdp", True, True, 2.0))
        self.assertEqual(some.best()["sharding"], "fsdp")
        self.assertIsNone(answer(1, ("none", False, False, 1.0)).best())
        text = scale.best_table([answer(1, ("none", False, False, 1.0)), some])
        self.assertIn("| 1 | 16 | nothing fits |", text)
        self.assertIn("| 4 | 16 | fsdp, recomputed | 2 | 4 | 0.5 | 2 s | 10.0% | 50.0% | 500 | 2 | 7 |", text)

    def test_the_plot_begins_where_something_fits(self):
        panel = scale.panel("x", [answer(1, ("none", False, False, 9.0)), answer(2, ("fsdp", False, True, 4.0)),
                                  answer(4, ("fsdp", False, True, 3.0))])
        self.assertEqual((panel.series[1].x, panel.series[1].y), ([2.0, 4.0], [4.0, 3.0]))
        self.assertEqual(panel.series[0].y, [4.0, 2.0])

    def test_times(self):
        self.assertEqual([scale.time_text(seconds) for seconds in (0.05, 5, 90, 7200, 864000)],
                         ["50 ms", "5 s", "1.5 min", "2 h", "10 days"])


if __name__ == "__main__":
    unittest.main()
