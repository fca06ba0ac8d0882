#!/usr/bin/env python3
"""Two processes beside one: step time and memory of the benchmark shapes S, D and M with one process of one thread, one
of two threads, and `mpirun -n 2` of one thread each, also with divided moments, beside what `siamese plan` predicts.
Measurements are kept in docs/results/ranks.jsonl; the tables go between the markers of docs/scale.md.

    benchmarks/ranks.py                            measures (a quarter of an hour, with nothing else running), then renders
    benchmarks/ranks.py --steps 1 --rounds 1 --shapes s --record build/ranks.jsonl --out build/ranks.md    does it work?
    benchmarks/ranks.py --render                   tables of what is in the record

The settings take turns, round after round; a figure is the median over all timed steps. Of 2 ranks, memory is that of
the larger. What the machine can do, `plan` is told: the operations a second of each shape as one process of one thread
reached them, the link between two ranks as two ranks at S had it (so S with two ranks is fitted, D and M are predicted).
How much of the exchange of gradients lies behind backward is measured by `siamese bench step` under mpirun, once a shape.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
from render import table, write_between  # noqa: E402
from run import commit  # noqa: E402

BEGIN = "<!-- ranks: begin -->"
END = "<!-- ranks: end -->"
SHAPES = ("s", "d", "m")
STEPS = {"s": 10, "d": 6, "m": 4}  # timed in each round
WARMUP = 2
ROUNDS = 3
# Processes x threads, and how moments are shared out (engine.shard).
SETTINGS = {"1 x 1": (1, 1, "none"), "1 x 2": (1, 2, "none"), "2 x 1": (2, 1, "none"),
            "2 x 1 divided": (2, 1, "optimizer")}
MIB = 1 << 20
# Starts a rank and leaves its peak of memory in a file of its own.
WRAPPER = """import os, resource, subprocess, sys
code = subprocess.call(sys.argv[2:])
rank = os.environ.get("OMPI_COMM_WORLD_RANK", "0")
with open(f"{sys.argv[1]}/rss{rank}", "w") as file:
    file.write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))
sys.exit(code)
"""


class Measurement:
    def __init__(self, arguments: argparse.Namespace):
        self.arguments = arguments
        self.binary = str(arguments.binary.resolve())
        self.environment = os.environ | {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def output(self, command: list[str]) -> str:
        run = subprocess.run(command, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            sys.exit(f"ranks: {' '.join(command)}: exit {run.returncode}\n{run.stderr.strip()}")
        return run.stdout

    def ours(self, *words: str) -> dict:
        return json.loads(self.output([self.binary, *words, "--json"]).strip().splitlines()[-1])

    def exchange(self, shape: str) -> dict:
        """How long two ranks exchange gradients in a step, and the share of that during which backward still runs."""
        steps = self.arguments.steps or STEPS[shape]
        command = ["mpirun", "--oversubscribe", "--bind-to", "core", "-n", "2", self.binary, "bench", "step", f"bench/{shape}",
                   "engine.threads=1", "--steps", str(steps), "--warmup", str(WARMUP), "--part-steps", "0", "--json"]
        made = json.loads(self.output(command).strip().splitlines()[-1])
        return {key: made[key] for key in ("median_ms", "exchange_ms", "hidden_share")}

    def train(self, shape: str, processes: int, threads: int, shard: str) -> dict:
        """One run: the milliseconds of its timed steps, and the largest memory of a rank."""
        steps = self.arguments.steps or STEPS[shape]
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-c", WRAPPER, folder, self.binary, "train", f"bench/{shape}",
                       f"engine.threads={threads}", f"engine.shard={shard}", f"train.steps={WARMUP + steps}", "eval.held_out=2", "--quiet", "--out",
                       f"{folder}/run"]
            if processes > 1:
                command = ["mpirun", "--oversubscribe", "--bind-to", "core", "-n", str(processes), *command]
            self.output(command)
            lines = [json.loads(line) for line in Path(folder, "run/metrics.jsonl").read_text().splitlines()]
            peaks = [int(path.read_text()) / 1024 for path in Path(folder).glob("rss*")]
        return {"step_ms": [line["step_ms"] for line in lines[WARMUP:]], "peak_mb": max(peaks)}

    def measure(self) -> None:
        self.arguments.record.parent.mkdir(parents=True, exist_ok=True)
        machine = self.ours("bench", "machine")
        idle = self.ours("bench", "step", "bench/s", "engine.threads=1", "--steps", "1", "--warmup", "0", "--part-steps", "0")
        with self.arguments.record.open("w") as record:
            def keep(line: dict) -> None:
                record.write(json.dumps(line) + "\n")
                record.flush()

            keep({"kind": "machine", "schema": 1, "date": datetime.date.today().isoformat(), "commit": commit(),
                  "cpu": machine["cpu"], "cores": machine["cores"], "simd": machine["simd"], "torch": machine["torch"],
                  "memory_gb_per_s": machine["threads"][0]["triad_gb_per_s"], "idle_mb": idle["idle_rss_mb"]})
            for round_ in range(self.arguments.rounds):
                for shape in self.arguments.shapes:
                    for setting, how in SETTINGS.items():
                        made = self.train(shape, *how)
                        keep({"kind": "run", "shape": shape, "setting": setting, "round": round_, **made})
                        print(f"ranks: round {round_ + 1}, {shape.upper()}, {setting}: {median(made['step_ms']):.1f} ms, "
                              f"{made['peak_mb']:.0f} MB", flush=True)

            for shape in self.arguments.shapes:
                made = self.exchange(shape)
                keep({"kind": "exchange", "shape": shape, **made})
                print(f"ranks: {shape.upper()}: gradients are exchanged for {made['exchange_ms']:.1f} ms a step, "
                      f"{made['hidden_share']:.0%} of it during backward", flush=True)

    def plan(self, shape: str, devices: int, *words: str, shard: str = "none") -> dict:
        answer = self.ours("plan", f"bench/{shape}", "--devices", str(devices), "--overlap", "0", "--latency-us", "0", *words)
        return next(plan for plan in answer["plans"] if (plan["sharding"], plan["recompute"]) == (shard, False))


class Record:
    def __init__(self, path: Path):
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        self.machine = next((line for line in lines if line["kind"] == "machine"), None)
        self.runs = [line for line in lines if line["kind"] == "run"]
        self.exchanges = {line["shape"]: line for line in lines if line["kind"] == "exchange"}
        self.shapes = [shape for shape in SHAPES if any(run["shape"] == shape for run in self.runs)]

    def ms(self, shape: str, setting: str) -> float:
        return median(ms for run in self.of(shape, setting) for ms in run["step_ms"])

    def peak_mb(self, shape: str, setting: str) -> float:
        return median(run["peak_mb"] for run in self.of(shape, setting))

    def of(self, shape: str, setting: str) -> list[dict]:
        return [run for run in self.runs if (run["shape"], run["setting"]) == (shape, setting)]


class Prediction:
    """Of each shape with one and two ranks, by a machine whose rates are taken from the record."""

    def __init__(self, measurement: Measurement, record: Record):
        self.measurement, self.record = measurement, record
        self.memory_rate = f"{int(record.machine['memory_gb_per_s'] * 1000)}MB/s"
        self.link = self.fitted_link("s") if "s" in record.shapes else None

    def rate(self, shape: str) -> str:
        """Operations a second of one thread, such that one process takes as long as it did."""
        one = self.measurement.plan(shape, 1, "--device-flops", "1G", "--utilization", "1", "--memory-rate", self.memory_rate)
        computing = max(1e-6, self.record.ms(shape, "1 x 1") / 1e3 - one["update_seconds"])
        return f"{one['compute_seconds'] / computing:.6f}G"

    def step(self, shape: str, devices: int, link: str, shard: str = "none") -> dict:
        return self.measurement.plan(shape, devices, "--device-flops", self.rate(shape), "--utilization", "1",
                                     "--memory-rate", self.memory_rate, "--node-link", link, shard=shard)

    def fitted_link(self, shape: str) -> str:
        free = self.step(shape, 2, "1GB/s")
        waiting = self.record.ms(shape, "2 x 1") / 1e3 - free["compute_seconds"] - free["update_seconds"]
        rate = free["communication_seconds"] * 1e9 / max(waiting, 1e-4)
        return f"{max(1, int(rate / 1e6))}MB/s"


def share(measured: float, predicted: float) -> str:
    return f"{predicted / measured - 1:+.0%}"


def target_table(record: Record, prediction: Prediction) -> str:
    def row(shape: str, other: str, wanted: float) -> list[str]:
        ratio = record.ms(shape, other) / record.ms(shape, "2 x 1")
        return [f"{shape.upper()}: 2 ranks x 1 thread against 1 process x {SETTINGS[other][1]} threads", f"{ratio:.3f}",
                f">= {wanted}", "met" if ratio >= wanted else "**missed**"]

    def saved(shape: str) -> list[str]:
        moments = prediction.measurement.plan(shape, 2)["bytes"]["moments"] / MIB
        kept = 1 - (record.peak_mb(shape, "2 x 1") - record.peak_mb(shape, "2 x 1 divided")) / moments
        return [f"{shape.upper()}: moments of a rank with engine.shard=optimizer, of all", f"{kept:.3f}", "0.5 within 5 %",
                "met" if abs(kept - 0.5) <= 0.025 else "**missed**"]

    rows = [row(shape, "1 x 2", 0.97) for shape in record.shapes]
    if "m" in record.shapes:
        rows.append(row("m", "1 x 1", 1.85))
    return table(["", "measured", "target", ""], rows + [saved(shape) for shape in record.shapes])


def tables(record: Record, prediction: Prediction) -> str:
    machine, idle = record.machine, record.machine["idle_mb"]
    rows = []
    for shape in record.shapes:
        for setting, (processes, _, shard) in SETTINGS.items():
            ms, mb = record.ms(shape, setting), record.peak_mb(shape, setting)
            plan = prediction.step(shape, processes, prediction.link or "1GB/s", shard)
            seconds = "-" if processes == 1 or not prediction.link else f"{plan['step_seconds'] * 1e3:.0f}"
            said = idle + plan["bytes"]["total"] / MIB
            note = " (fitted)" if (shape, setting) == ("s", "2 x 1") else ""
            rows.append([shape.upper(), setting, f"{ms:.1f}", seconds,
                         share(ms, plan["step_seconds"] * 1e3) + note if seconds != "-" else "", f"{mb:.0f}",
                         f"{said:.0f}", share(mb, said)])
    steps = ", ".join(f"{sum(len(run['step_ms']) for run in record.of(shape, '1 x 1'))} at {shape.upper()}"
                      for shape in record.shapes)
    exchanged = [[shape.upper(), f"{made['median_ms']:.1f}", f"{made['exchange_ms']:.1f}", f"{made['hidden_share']:.0%}"]
                 for shape, made in record.exchanges.items()]
    return f"""
Measured {machine['date']} by `benchmarks/ranks.py` of commit {machine['commit']} on {machine['cpu']}, {machine['cores']}
cores, {machine['simd']} kernels, LibTorch {machine['torch']}: medians of steps in turns ({steps}). One thread
reads and writes {machine['memory_gb_per_s']:.1f} GB/s; the link fitted at S is {prediction.link}; an idle process has {idle:.0f} MB.

{target_table(record, prediction)}
{table(["shape", "processes x threads", "step ms", "predicted", "off by", "peak MB", "predicted", "off by"], rows)}
Two ranks of one thread, by `bench step`: how long gradients are exchanged, and how much of that lies behind backward.

{table(["shape", "step ms", "exchange ms", "behind backward"], exchanged)}
"""


def memory_only(measurement: Measurement) -> str:
    rows = [[shape.upper(), str(ranks), shard, *[f"{plan['bytes'][key] / MIB:.0f}" for key in
                                                 ("weights", "gradients", "moments", "activations", "total")]]
            for shape in SHAPES for ranks, shard in ((1, "none"), (2, "none"), (2, "optimizer"))
            for plan in [measurement.plan(shape, ranks, shard=shard)]]
    return f"""
Not measured yet. Predicted MB of a rank, beside the 120 MB or so of an idle process:

{table(["shape", "ranks", "engine.shard", "weights", "gradients", "moments", "activations", "total"], rows)}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--render", action="store_true", help="measure nothing")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--steps", type=int, default=0, help="timed in each round, instead of some seconds' worth")
    parser.add_argument("--shapes", type=lambda text: text.split(","), default=list(SHAPES))
    parser.add_argument("--record", type=Path, default=ROOT / "docs/results/ranks.jsonl")
    parser.add_argument("--out", type=Path, default=ROOT / "docs/scale.md")
    parser.add_argument("--binary", type=Path, default=ROOT / "build/release/siamese")
    arguments = parser.parse_args()
    measurement = Measurement(arguments)
    if not arguments.render:
        measurement.measure()
    record = Record(arguments.record)
    text = tables(record, Prediction(measurement, record)) if record.runs else memory_only(measurement)
    write_between(arguments.out, BEGIN, END, text, "Ranks")
    print(f"wrote {arguments.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
