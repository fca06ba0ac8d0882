#!/usr/bin/env python3
"""`make bench`: the training step of the engine beside the same model in plain PyTorch, eager and compiled, in
interleaved rounds of separate processes; then every kernel and generation. Each measurement is one line of the record;
the tables go between the markers of docs/performance.md, what stands outside them is kept.

    benchmarks/run.py --shapes s,d --rounds 5
    benchmarks/run.py --quick                      a few minutes, into build/bench: does everything work?
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
from render import write_tables  # noqa: E402

PYTHON = ROOT / ".venv/bin/python"
# Steps timed in each round and steps before them: some seconds a process.
STEPS = {"s": (8, 2), "d": (5, 2), "m": (2, 1), "v": (8, 2)}
OURS = {
    "ours pre": ["model.residual=pre"],
    "ours siamese": ["model.residual=siamese"],
    "ours pre qkv": ["model.residual=pre", "model.attention_norm=qkv"],
    "ours siamese(x=hybrid)": ["model.residual=siamese(x=hybrid)"],
}
TORCH = {
    f"{mode} {scheme}": ["--scheme", scheme, "--mode", mode]
    for mode in ("eager", "compile")
    for scheme in ("pre", "siamese")
}
# On CPUs that multiply bfloat16 also in it, ours and PyTorch's autocast.
OURS_BFLOAT16 = {
    f"ours {scheme} bfloat16": [f"model.residual={scheme}", "engine.precision=bfloat16"] for scheme in ("pre", "siamese")
}
TORCH_BFLOAT16 = {f"{subject} autocast": [*words, "--precision", "bfloat16"] for subject, words in TORCH.items()}


# What a second stream costs, step by step in turns within one process: (label, overrides, what the other has instead).
AGAINST = [
    ("siamese / pre", ["model.residual=siamese"], ["model.residual=pre"]),
    ("siamese(x=hybrid) / pre with qkv norms", ["model.residual=siamese(x=hybrid)"],
     ["model.residual=pre", "model.attention_norm=qkv"]),
]
TURNS = {"s": 24, "d": 12, "m": 4, "v": 16}


class Bench:
    def __init__(self, arguments: argparse.Namespace):
        self.arguments = arguments
        self.binary = Path(arguments.binary).resolve()
        self.lines: list[dict] = []
        self.start = time.monotonic()
        arguments.record.parent.mkdir(parents=True, exist_ok=True)
        arguments.record.write_text("")

    def say(self, text: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self.start), 60)
        print(f"bench {minutes:2}:{seconds:02}  {text}", flush=True)

    def measure(self, words: list[str], **labels: object) -> dict:
        """Runs one measurement, keeps the JSON object of its last line with the labels."""
        environment = dict(os.environ)
        environment.setdefault("TORCHINDUCTOR_CACHE_DIR", str(ROOT / "build/bench/inductor"))
        run = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            sys.exit(f"bench: {' '.join(words)}: exit {run.returncode}\n{run.stderr.strip()}")
        line = {**labels, **json.loads(run.stdout.strip().splitlines()[-1])}
        self.lines.append(line)
        with self.arguments.record.open("a") as record:
            record.write(json.dumps(line) + "\n")
        return line

    def ours(self, *words: str, **labels: object) -> dict:
        return self.measure([str(self.binary), "bench", *words, "--json"], **labels)

    def step(self, subject: str, shape: str, round_: int) -> None:
        steps, warmup = (2, 1) if self.arguments.quick else STEPS[shape]
        count = ["--steps", str(steps), "--warmup", str(warmup)]
        labels = {"subject": subject, "shape": shape, "round": round_}
        ours = {**OURS, **OURS_BFLOAT16}
        if subject in ours:
            parts = ["--part-steps", "1" if round_ == 0 else "0"]
            line = self.ours("step", f"bench/{shape}", *ours[subject], *count, *parts, **labels)
        else:
            words = {**TORCH, **TORCH_BFLOAT16}[subject]
            command = [str(PYTHON), "benchmarks/torch_step.py", "--shape", shape, *words, *count, "--json"]
            line = self.measure(command, **labels)
        extra = f", compiled in {line['compile_s']:.0f} s" if line.get("compile_s") else ""
        self.say(f"{shape.upper()} round {round_ + 1}: {subject}: {line['median_ms']:.1f} ms a step{extra}")

    def against(self, shape: str) -> None:
        turns = 2 if self.arguments.quick else TURNS[shape]
        for label, overrides, others in AGAINST:
            words = [word for other in others for word in ("--against", other)]
            line = self.ours("step", f"bench/{shape}", *overrides, *words, "--steps", str(turns), "--warmup", "1",
                             shape=shape, label=label)
            self.say(f"{shape.upper()} in turns: {label}: {line['ratio']:.3f}")

    def run(self) -> None:
        arguments = self.arguments
        machine = self.ours("machine", command=arguments.command, date=datetime.date.today().isoformat())
        self.say(f"{machine['cpu']}, {machine['cores']} cores, {machine['simd']}")
        for shape in arguments.shapes:
            for round_ in range(arguments.rounds):
                subjects = [*OURS, *TORCH]
                if machine.get("bfloat16", "none") != "none" and shape != "v":
                    subjects += [*OURS_BFLOAT16, *TORCH_BFLOAT16]
                for subject in subjects if round_ % 2 == 0 else reversed(subjects):
                    self.step(subject, shape, round_)
            self.against(shape)
        seconds = ["--seconds", "0.05" if arguments.quick else "0.5"]
        for place in ([], ["--in-cache"]):
            line = self.ours("kernels", *place, *seconds)
            worst = min(line["kernels"], key=lambda kernel: kernel["share"])
            self.say(f"kernels {'in' if place else 'beyond'} cache: the least share is {worst['share']:.0%}")
        for rows in ("1024", "2048"):  # what one pass of moe-micro sees, and twice that
            line = self.ours("experts", "--rows", rows, "--rounds", "3" if arguments.quick else "60")
            self.say(f"experts, {rows} tokens: {line['ratio']:.2f} of a dense branch's GFLOP/s")
        for shape in arguments.shapes:
            if shape == "v":
                continue  # images are not generated token by token
            rounds = ["--rounds", "2" if arguments.quick else "7", "--tokens", "32"]
            line = self.ours("generate", f"bench/{shape}", "model.residual=siamese", "--against", "pre", *rounds,
                             shape=shape)
            self.say(f"{shape.upper()} generate: {line['median_ms']:.2f} ms a token, {line['ratio']:.3f} of one stream")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", help="of configs/bench: s,d,m,v (with --quick: s)")
    parser.add_argument("--rounds", type=int, help="interleaved rounds, 3 (with --quick: 1)")
    parser.add_argument("--quick", action="store_true", help="few steps, into build/bench: numbers mean little")
    parser.add_argument("--out", type=Path, help="the page to write, docs/performance.md")
    parser.add_argument("--record", type=Path, help="one JSON line a measurement, docs/results/bench.jsonl")
    parser.add_argument("--render", type=Path, metavar="RECORD", help="measure nothing, write the tables of a record")
    parser.add_argument("--binary", default=ROOT / "build/release/siamese", help="what is measured")
    arguments = parser.parse_args()
    arguments.command = " ".join(["benchmarks/run.py", *sys.argv[1:]])
    arguments.shapes = (arguments.shapes or ("s" if arguments.quick else "s,d,m,v")).split(",")
    unknown = [shape for shape in arguments.shapes if shape not in STEPS]
    if unknown:
        parser.error(f"--shapes: expected some of {','.join(STEPS)}, got '{unknown[0]}'")
    if arguments.rounds is None:
        arguments.rounds = 1 if arguments.quick else 3
    if arguments.rounds < 1:
        parser.error("--rounds: expected at least 1")
    arguments.out = arguments.out or ROOT / ("build/bench/performance.md" if arguments.quick else "docs/performance.md")
    arguments.record = arguments.record or ROOT / (
        "build/bench/bench.jsonl" if arguments.quick else "docs/results/bench.jsonl")
    return arguments


def main() -> int:
    arguments = parse()
    if arguments.render:
        lines = [json.loads(line) for line in arguments.render.read_text().splitlines()]
    else:
        check = subprocess.run([PYTHON, "benchmarks/check_equal.py", arguments.binary], cwd=ROOT, check=False)
        if check.returncode != 0:
            sys.exit("bench: the PyTorch model is not ours: nothing measured")
        bench = Bench(arguments)
        bench.run()
        lines = bench.lines
    write_tables(arguments.out, lines)
    print(f"wrote {arguments.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
