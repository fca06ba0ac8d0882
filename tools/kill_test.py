#!/usr/bin/env python3
"""Kills a run again and again and compares what it ends with to a run that was never killed.

    tools/kill_test.py build/release/siamese --kills 100 --family moe
    tools/kill_test.py build/release/siamese --kills 20 --ranks 2      # under mpirun: one rank is killed, or all
    tools/kill_test.py build/release/siamese --kills 20 --in-background      # train.save_in_background

Half of the kills wait until a checkpoint is being written; the others come at any time, the start included. Weights,
moments, averaged weights, trainer state, metrics and evaluations of the last step must be the same, byte for byte but
for what the clock decides. A run that ends before all kills have come, because this script had to wait for the
processor, is compared like any other, and the rest of the kills come to a new one: the result does not depend on how
busy the machine is. A failure names the seed and leaves the folder. Standard library only.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMON = [
    "model.width=16", "model.blocks=2", "model.heads=2", "train.batch=4", "train.checkpoint_every=5",
    "train.eval_every=100", "train.record_every=25", "train.ema=0.9", "train.skip_outliers=2", "train.skip_window=16",
    "train.keep_last=2", "train.keep_every=100", "eval.batches=1", "engine.threads=1",
]  # fmt: skip
TEXT = ["model.context=24", "data.digits=1", "eval.problems=2"]
IMAGES = ["data.source=shapes", "model.image=16", "model.patch=4", "model.norm=layer", "model.bias=true"]
FAMILIES = {
    "lm": TEXT,
    "moe": [*TEXT, "model.family=moe", "model.ffn_width=16", "model.experts=4", "model.experts_per_token=2"],
    "vit": [*IMAGES, "model.family=vit", "model.drop_path=0.3", "data.augment.mixup=0.8", "data.augment.flip=true"],
    "dit": [*IMAGES, "model.family=dit", "model.label_dropout=0.2", "eval.samples=4", "eval.sampler_steps=3"],
}
CLOCK = ("step_ms", "tokens_per_s", "samples_per_s", "checksum")
STEPS_PER_KILL = 30  # a process is killed about this many steps after its start
DIVIDED = ["train.micro_batch=1", "engine.shard=optimizer"]  # what several ranks do beside


def records(path: Path) -> list[dict]:
    """The lines of a JSON Lines file without what the clock decides."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [{key: value for key, value in line.items() if key not in CLOCK} for line in lines]


def without_identity(path: Path) -> dict:
    """run.json without what tells one run from another: its name, and when and how often it was started."""
    return {key: value for key, value in json.loads(path.read_text()).items() if key not in ("id", "stretches")}


def files_below(run: Path) -> dict[str, Path]:
    return {str(path.relative_to(run)): path for path in sorted(run.rglob("*")) if path.is_file()}


def differences(whole: Path, killed: Path) -> list[str]:
    """What the two run directories do not agree in."""
    expected, got = files_below(whole), files_below(killed)
    problems = [f"{name}: only in one of the two" for name in sorted(expected.keys() ^ got.keys())]
    for name in sorted(expected.keys() & got.keys()):
        if name.endswith(".jsonl"):
            same = records(expected[name]) == records(got[name])
        elif name == "run.json":
            same = without_identity(expected[name]) == without_identity(got[name])
        else:
            same = expected[name].read_bytes() == got[name].read_bytes()
        if not same:
            problems.append(f"{name}: differs")
    return problems


def saved_step(run: Path) -> int:
    try:
        return int((run / "latest").read_text().removeprefix("step"))
    except (OSError, ValueError):
        return 0


def half_written(run: Path) -> set[Path]:
    return set(run.glob("step*.tmp-*"))


def wait_until(process: subprocess.Popen, holds) -> bool:
    """False when the process ended first."""
    while not holds():
        if process.poll() is not None:
            return holds()
        time.sleep(0.0005)
    return True


def children(parent: int) -> list[int]:
    """The processes that a process has started."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            status = (folder / "stat").read_text() if folder.name.isdigit() else ""
        except OSError:  # has ended meanwhile
            continue
        if status and int(status.rpartition(")")[2].split()[1]) == parent:
            found.append(int(folder.name))
    return sorted(found)


def is_alive(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


class Test:
    def __init__(self, arguments: argparse.Namespace, folder: Path, generator: random.Random):
        self.binary, self.kills, self.ranks = arguments.binary.resolve(), arguments.kills, arguments.ranks
        self.folder, self.random = folder, generator
        steps = 200 + self.kills * STEPS_PER_KILL
        self.overrides = [*COMMON, *FAMILIES[arguments.family], *(DIVIDED if self.ranks > 1 else []),
                          f"train.steps={steps}", f"train.save_in_background={str(arguments.in_background).lower()}"]  # fmt: skip
        self.while_writing = 0

    def start(self, run: Path) -> subprocess.Popen:
        command = [str(self.binary)]
        if self.ranks > 1:
            command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(self.ranks), *command]
        if (run / "config.yaml").exists():
            command += ["resume", str(run)]
        else:
            command += ["train", "arithmetic-small", *self.overrides, "--out", str(run)]
        root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_WAIT_POLICY": "passive"}
        environment = {**os.environ, **(root if self.ranks > 1 else {})}
        return subprocess.Popen(
            [*command, "--quiet"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
        )

    def kill(self, process: subprocess.Popen) -> None:
        """The process; of several ranks one of them, or all. Returns when nothing of it runs any more."""
        if self.ranks == 1:
            process.send_signal(signal.SIGKILL)
            return
        wait_until(process, lambda: len(children(process.pid)) >= self.ranks)
        all_ranks = children(process.pid)
        victims = all_ranks if self.random.random() < 0.25 else self.random.sample(all_ranks, min(1, len(all_ranks)))
        for victim in victims:
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                pass
        process.wait()
        while any(is_alive(rank) for rank in all_ranks):
            time.sleep(0.01)

    def finish(self, run: Path) -> None:
        process = self.start(run)
        error = process.communicate()[1]
        if process.returncode != 0:
            raise SystemExit(f"{run}: exit code {process.returncode}: {error}")

    def kill_once(self, run: Path) -> bool:
        """False when the run had finished."""
        wanted = saved_step(run) + self.random.randrange(1, STEPS_PER_KILL // 2)
        before = half_written(run)  # what earlier kills left
        process = self.start(run)
        if self.random.random() < 0.25:
            time.sleep(self.random.random() * 0.5)
        else:
            wait_until(process, lambda: saved_step(run) >= wanted)
            time.sleep(self.random.random() * 0.003)
        if self.random.random() < 0.5:
            wait_until(process, lambda: half_written(run) - before)
        self.kill(process)
        error = process.communicate()[1]
        self.while_writing += bool(half_written(run) - before)
        if self.ranks == 1 and process.returncode not in (0, -signal.SIGKILL):
            raise SystemExit(f"{run}: exit code {process.returncode}: {error}")
        return process.returncode != 0

    def run(self) -> list[str]:
        whole, killed = self.folder / "whole", self.folder / "killed"
        self.finish(whole)
        print(f"a run that is left alone: {saved_step(whole)} steps", flush=True)
        done = 0
        while done < self.kills:
            if not self.kill_once(killed):
                print(f"it ended after {done} kills; the others come to a new run", flush=True)
                if problems := differences(whole, killed):
                    return problems
                shutil.rmtree(killed)
                continue
            done += 1
            if done % 10 == 0:
                print(f"{done} kills, at step {saved_step(killed)}", flush=True)
        self.finish(killed)
        print(f"{done} kills, {self.while_writing} of them while a checkpoint was written", flush=True)
        return differences(whole, killed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=Path)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--family", choices=sorted(FAMILIES), default="lm")
    parser.add_argument("--ranks", type=int, default=1, help="processes of the run, under mpirun when more than one")
    parser.add_argument("--in-background", action="store_true", help="checkpoints are written while training goes on")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    arguments = parser.parse_args()
    if not arguments.binary.is_file() or arguments.kills < 1:
        parser.error(f"expected a binary and at least one kill, got {arguments.binary} and {arguments.kills}")
    folder = Path(tempfile.mkdtemp(prefix="siamese_kills_"))
    print(f"{arguments.family}, seed {arguments.seed}, in {folder}", flush=True)
    generator = random.Random(arguments.seed)
    problems = Test(arguments, folder, generator).run()
    for problem in problems:
        print(problem)
    if problems:
        print(f"NOT the same; seed {arguments.seed}, see {folder}")
        return 1
    shutil.rmtree(folder)
    print("the same bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
