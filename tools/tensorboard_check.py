#!/usr/bin/env python3
"""The event files of `train.tensorboard=true` and `siamese report --tensorboard`, read by TensorBoard's own package:

    python3 tools/tensorboard_check.py build/release/siamese

Installs `tensorboard` with pip into an environment of its own (build/tensorboard-env), trains a small model, kills it in the
middle, goes on with it, and asks TensorBoard's EventAccumulator for every scalar, of the run and of the export: each must be
there at each step once, and be the number of metrics.jsonl or eval.jsonl. Exit code 1 if one is missing, double or differs.
"""

import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = ROOT / "build/tensorboard-env"
TRAIN = ["arithmetic-small", "model.width=32", "model.blocks=2", "model.heads=2", "model.context=32", "data.digits=1",
         "train.batch=4", "train.steps=120", "train.eval_every=20", "train.checkpoint_every=15", "train.record_every=10",
         "eval.held_out=16", "eval.problems=4", "engine.threads=1", "train.tensorboard=true"]


def in_environment() -> None:
    """Starts this program again in the environment, made if it is not there."""
    python = ENVIRONMENT / "bin/python"
    if Path(sys.prefix).resolve() == ENVIRONMENT.resolve():
        return
    if not python.exists():
        venv.create(ENVIRONMENT, with_pip=True)
    found = subprocess.run([python, "-c", "import tensorboard"], capture_output=True, check=False)
    if found.returncode != 0:
        subprocess.run([python, "-m", "pip", "install", "--quiet", "tensorboard", "setuptools<80"], check=True)
    os.execv(python, [str(python), *sys.argv])


def float32(value: float) -> float:
    return struct.unpack("f", struct.pack("f", value))[0]


def lines(path: Path) -> list[dict]:
    """Whole ones: a kill may have torn the last."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


def expected(run: Path) -> dict[str, dict[int, float]]:
    """tag -> step -> number, of what a reader of the lines would look for."""
    found: dict[str, dict[int, float]] = {}

    def add(tag: str, step: int, value) -> None:
        if value is not None:
            found.setdefault(tag, {})[step] = float32(value)

    for line in lines(run / "metrics.jsonl"):
        for key in ("loss", "grad_norm", "lr", "tokens", "tokens_per_s", "step_ms"):
            add(f"train/{key}", line["step"], line[key])
        for site in line.get("sites", []):
            where = f"site{site['site']:03}_{site['kind']}"
            add(f"depth_grad_norm/{where}", line["step"], site["grad_norm"])
            for stream in site["streams"]:
                add(f"depth_{stream['name']}_before/{where}", line["step"], stream["before"])
    for line in lines(run / "eval.jsonl"):
        add("eval/loss", line["step"], line["loss"])
        add("eval/accuracy", line["step"], line["accuracy"]["correct"] / line["accuracy"]["count"])
    return found


def compare(folder: Path, run: Path) -> str:
    from tensorboard.backend.event_processing import event_accumulator

    reader = event_accumulator.EventAccumulator(str(folder), size_guidance={event_accumulator.SCALARS: 0})
    reader.Reload()
    wanted = expected(run)
    tags = set(reader.Tags()["scalars"])
    missing = sorted(set(wanted) - tags)
    if missing:
        sys.exit(f"tensorboard_check: {folder}: expected the tag {missing[0]}, got {len(tags)} others")
    points = 0
    for tag, by_step in wanted.items():
        read = [(event.step, event.value) for event in reader.Scalars(tag)]
        if read != sorted(by_step.items()):
            sys.exit(f"tensorboard_check: {folder}: {tag}: expected {len(by_step)} steps as the lines say, got {read[:5]} ...")
        points += len(read)
    times = [event.wall_time for event in reader.Scalars("train/loss")]
    if times != sorted(times) or not 0 < time.time() - times[0] < 3600:
        sys.exit(f"tensorboard_check: {folder}: expected times of this hour that ascend, got {times[:3]} ...")
    return f"{folder.name}: {len(wanted)} tags compared of {len(tags)}, {points} numbers, each once and equal"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=Path)
    binary = parser.parse_args().binary.resolve()
    in_environment()
    import tensorboard

    with tempfile.TemporaryDirectory() as scratch:
        run, board = Path(scratch) / "run", Path(scratch) / "board"
        killed = subprocess.Popen([binary, "train", *TRAIN, "--quiet", "--out", run])
        while killed.poll() is None and not (run / "step30").exists():
            time.sleep(0.001)
        while killed.poll() is None and len(lines(run / "metrics.jsonl")) < 35:  # past it: these steps are made again
            time.sleep(0.001)
        killed.kill()
        killed.wait()
        steps = len(lines(run / "metrics.jsonl"))
        for command in (["resume", run, "--quiet"], ["report", run, "--tensorboard", board]):
            subprocess.run([binary, *command], check=True, stdout=subprocess.DEVNULL)
        print(f"tensorboard {tensorboard.__version__}; killed at step {steps} of 120, then resumed")
        print(compare(run, run))
        print(compare(board / "run", run))
    return 0


if __name__ == "__main__":
    sys.exit(main())
