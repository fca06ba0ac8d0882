#!/usr/bin/env python3
"""`make bench`: the training step of the engine beside the same model in plain PyTorch, eager and compiled, in
interleaved rounds of separate processes; what each scheme costs, every kernel, experts and generation. Each measurement
is a line that is appended to the record; the tables go between the markers of docs/performance.md and take each part
from the newest run that finished it (record.py), what stands outside the markers is kept.

    benchmarks/run.py                              everything
    benchmarks/run.py --parts x,kernels            only these; the others stay as they were measured
    benchmarks/run.py --quick                      one block of every family, into build/bench: does everything work?
    benchmarks/run.py --render docs/results/bench.jsonl --out docs/performance.md     tables only
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
import plan  # noqa: E402
import record  # noqa: E402
from render import write_tables  # noqa: E402

PYTHON = ROOT / ".venv/bin/python"


class Bench:
    def __init__(self, arguments: argparse.Namespace):
        self.arguments = arguments
        self.binary = Path(arguments.binary).resolve()
        self.run_id = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        self.part = ""
        self.start = time.monotonic()
        arguments.record.parent.mkdir(parents=True, exist_ok=True)

    def say(self, text: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self.start), 60)
        print(f"bench {minutes:2}:{seconds:02}  {text}", flush=True)

    def keep(self, line: dict) -> dict:
        part = {"part": self.part} if self.part else {}
        with self.arguments.record.open("a") as file:
            file.write(json.dumps({"run": self.run_id, **part, **line}) + "\n")
        return line

    def measure(self, words: list[str], **labels: object) -> dict:
        """Runs one measurement, keeps the JSON object of its last line with the labels."""
        environment = dict(os.environ)
        environment.setdefault("TORCHINDUCTOR_CACHE_DIR", str(ROOT / "build/bench/inductor"))
        if self.arguments.quick:
            environment["OMP_NUM_THREADS"] = "1"  # threads that wait for each other crawl on a machine in use
        run = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            sys.exit(f"bench: {' '.join(words)}: exit {run.returncode}\n{run.stderr.strip()}")
        return self.keep({**labels, **json.loads(run.stdout.strip().splitlines()[-1])})

    def ours(self, *words: str, **labels: object) -> dict:
        return self.measure([str(self.binary), "bench", *words, "--json"], **labels)

    def of_shape(self, verb: str, shape: str, *words: str, **labels: object) -> dict:
        quick = ["model.blocks=1", "engine.threads=1"] if self.arguments.quick else []
        return self.ours(verb, f"bench/{shape}", *words, *quick, shape=shape, **labels)

    def step(self, subject: plan.Subject, shape: str, round_: int) -> None:
        steps, warmup = (1, 1) if self.arguments.quick else plan.STEPS[shape]
        count = ["--steps", str(steps), "--warmup", str(warmup)]
        labels = {"subject": subject.name, "round": round_}
        if subject.ours:
            parts = ["--part-steps", "1" if round_ == 0 else "0"]
            line = self.of_shape("step", shape, *subject.words, *count, *parts, **labels)
        else:
            blocks = ["--blocks", "1"] if self.arguments.quick else []
            command = [str(PYTHON), "benchmarks/torch_step.py", "--shape", shape, *subject.words, *count, *blocks, "--json"]
            line = self.measure(command, **labels, shape=shape)
        extra = f", compiled in {line['compile_s']:.0f} s" if line.get("compile_s") else ""
        self.say(f"{shape.upper()} round {round_ + 1}: {subject.name}: {line['median_ms']:.1f} ms a step{extra}")

    def price(self, shape: str, price: plan.Price) -> None:
        turns = 1 if self.arguments.quick else plan.TURNS[shape]
        words = [word for other in price.others for word in ("--against", other)]
        line = self.of_shape("step", shape, *price.words, *words, "--steps", str(turns), "--warmup", "1",
                             label=price.label)
        self.say(f"{shape.upper()} in turns: {price.label}: {line['ratio']:.3f}")

    def experts(self, **labels: object) -> None:
        """Of a language model's shape with experts, or of two sizes of pass of moe-micro."""
        shape = plan.experts_shape(labels["shape"]) if labels else None
        sizes = ([["--rows", str(shape.batch * shape.context), "--width", str(shape.width), "--hidden",
                   str(shape.ffn_width), "--experts", str(shape.experts), "--per-token", str(shape.experts_per_token)]]
                 if shape else [["--rows", "1024"], ["--rows", "2048"]])
        for words in sizes:
            few = ["--rounds", "1", "--threads", "1"] if self.arguments.quick else ["--rounds", "60"]
            line = self.ours("experts", *words, *few, **labels)
            self.say(f"experts, {line['rows']} tokens of {line['width']}: {line['ratio']:.2f} of a dense branch's GFLOP/s")

    def generate(self, shape: str, precision: str) -> None:
        rounds = ["--rounds", "2" if self.arguments.quick else "7", "--tokens", "32"]
        words = ["model.residual=siamese", f"engine.precision={precision}"]
        line = self.of_shape("generate", shape, *words, "--against", "pre", *rounds)
        self.say(f"{shape.upper()} generate, {precision}: {line['median_ms']:.2f} ms a token, "
                 f"{line['ratio']:.3f} of one stream")

    def shape(self, shape: str, bfloat16: bool) -> None:
        for round_ in range(self.arguments.rounds or plan.ROUNDS[shape]):
            subjects = [subject for subject in plan.subjects(shape, bfloat16)
                        if not (subject.once and round_ > 0) and not (self.arguments.quick and " pre" in subject.name)]
            for subject in subjects if round_ % 2 == 0 else reversed(subjects):
                self.step(subject, shape, round_)
        for price in plan.prices(shape, bfloat16):
            self.price(shape, price)
        if shape in plan.LANGUAGE:
            for precision in ("float32", "bfloat16") if bfloat16 else ("float32",):
                self.generate(shape, precision)
        if plan.experts_shape(shape):
            self.experts(shape=shape)

    def kernels(self) -> None:
        seconds = ["--seconds", "0", "--threads", "1"] if self.arguments.quick else ["--seconds", "0.5"]
        for place in ([], ["--in-cache"]):
            line = self.ours("kernels", *place, *seconds)
            worst = min(line["kernels"], key=lambda kernel: kernel["share"])
            self.say(f"kernels {'in' if place else 'beyond'} cache: the least share is {worst['share']:.0%}")
        self.experts()

    def run(self) -> None:
        machine = self.ours("machine", command=self.arguments.command, date=datetime.date.today().isoformat(),
                            commit=commit(), **cpu_kind())
        self.say(f"{machine['cpu']}, {machine['cores']} cores, {machine['simd']}")
        for self.part in self.arguments.parts:
            start = time.monotonic()
            if self.part == "kernels":
                self.kernels()
            elif self.part == "schemes":
                for shape, price in plan.scheme_prices():
                    self.price(shape, price)
            else:
                self.shape(self.part, machine.get("bfloat16", "none") != "none")
            self.keep({"bench": "finished", "minutes": round((time.monotonic() - start) / 60, 2)})


def cpu_kind() -> dict:
    """What tells two CPUs of one name apart; nothing where the system does not say."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return {}
    fields = dict(reversed([[part.strip() for part in line.split(":", 1)] for line in lines if ":" in line]))
    return {key: fields[name] for key, name in (("cpu_family", "cpu family"), ("cpu_model", "model")) if name in fields}


def commit() -> str:
    """Of the tree, "" where there is none; marked when files differ from it."""
    run = subprocess.run(["git", "describe", "--always", "--dirty", "--exclude=*"], cwd=ROOT, capture_output=True,
                         text=True, check=False)
    return run.stdout.strip() if run.returncode == 0 else ""


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", "--shapes", help=f"some of {','.join(plan.PARTS)} (with --quick: {plan.QUICK})")
    parser.add_argument("--rounds", type=int, help="interleaved rounds, 2 or 3 by shape (with --quick: 1)")
    parser.add_argument("--quick", action="store_true", help="one block, one thread, few steps, into build/bench: numbers mean nothing")
    parser.add_argument("--out", type=Path, help="the page to write, docs/performance.md")
    parser.add_argument("--record", type=Path, help="one JSON line a measurement is appended, docs/results/bench.jsonl")
    parser.add_argument("--render", type=Path, metavar="RECORD", help="measure nothing, write the tables of a record")
    parser.add_argument("--binary", default=ROOT / "build/release/siamese", help="what is measured")
    arguments = parser.parse_args()
    arguments.command = " ".join(["benchmarks/run.py", *sys.argv[1:]])
    arguments.parts = (arguments.parts or (plan.QUICK if arguments.quick else ",".join(plan.PARTS))).split(",")
    unknown = [part for part in arguments.parts if part not in plan.PARTS]
    if unknown:
        parser.error(f"--parts: expected some of {','.join(plan.PARTS)}, got '{unknown[0]}'")
    if arguments.rounds is not None and arguments.rounds < 1:
        parser.error("--rounds: expected at least 1")
    if arguments.quick and arguments.rounds is None:
        arguments.rounds = 1
    arguments.out = arguments.out or ROOT / ("build/bench/performance.md" if arguments.quick else "docs/performance.md")
    arguments.record = arguments.record or ROOT / (
        "build/bench/bench.jsonl" if arguments.quick else "docs/results/bench.jsonl")
    return arguments


def main() -> int:
    arguments = parse()
    if not arguments.render:
        check = subprocess.run([PYTHON, "benchmarks/check_equal.py", arguments.binary], cwd=ROOT, check=False)
        if check.returncode != 0:
            sys.exit("bench: the PyTorch models are not ours: nothing measured")
        Bench(arguments).run()
    write_tables(arguments.out, record.read(arguments.render or arguments.record))
    print(f"wrote {arguments.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
