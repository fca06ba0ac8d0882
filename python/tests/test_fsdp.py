"""examples/python/train_fsdp.py under torchrun on the CPU, with Gloo."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("fsdp")  # one process trains what several tests look at

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "python" / "train_fsdp.py"
SIZES = {"width": 32, "blocks": 2, "heads": 2, "context": 16, "batch": 4, "steps": 6, "save-every": 3, "lr": 0.01}
SMALL = [f"--{name}={value}" for name, value in SIZES.items()]


def train(folder: Path, processes: int, *words: str, script: Path = EXAMPLE) -> list[float]:
    """The losses of a run, in order."""
    text = folder.parent / "text"
    text.write_bytes(bytes(range(32, 127)) * 20)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    command += [str(script), "--text", str(text), "--out", str(folder), *SMALL, *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 0, run.stderr[-3000:]
    return [json.loads(line)["loss"] for line in (folder / "losses.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def one_process(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[float]]:
    folder = tmp_path_factory.mktemp("one") / "run"
    return folder, train(folder, 1, "--parallel", "ddp")


def test_two_processes_are_one_up_to_rounding(one_process: tuple[Path, list[float]], tmp_path: Path) -> None:
    """DDP and FSDP2, whose checkpoint one process resumes."""
    alone = one_process[1]
    assert len(alone) == 6
    assert alone[-1] < alone[0] - 0.5
    assert train(tmp_path / "ddp", 2, "--parallel", "ddp") == pytest.approx(alone, abs=2e-5)
    assert train(tmp_path / "fsdp", 2, "--parallel", "fsdp", "--compile", "eager") == pytest.approx(alone, abs=2e-5)
    resumed = train(tmp_path / "resumed", 1, "--parallel", "fsdp", "--resume", str(tmp_path / "fsdp" / "step3"))
    assert resumed == pytest.approx(alone[3:], abs=2e-5)


def test_one_process_goes_on_as_two(one_process: tuple[Path, list[float]], tmp_path: Path) -> None:
    folder, alone = one_process
    resumed = train(tmp_path / "run", 2, "--parallel", "fsdp", "--resume", str(folder / "step3"))
    assert resumed == pytest.approx(alone[3:], abs=2e-5)


def test_what_is_exported_is_a_checkpoint_of_the_engine(one_process: tuple[Path, list[float]], binary: str) -> None:
    """The engine reads it, and its loss on the training text is that of the trainer's last steps."""
    folder, losses = one_process
    text = folder.parent / "text"
    again = folder.parent / "again"  # the engine refuses one file as both
    again.write_bytes(text.read_bytes())
    words = [binary, "eval", str(folder / "export"), "--json", "data.source=text", f"data.train={text}"]
    words += [f"data.val={again}", "eval.batches=4"]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert abs(json.loads(run.stdout)["loss"] - losses[-1]) < 0.5


def test_a_slow_thread_of_gloo_does_not_end_a_run(tmp_path: Path) -> None:
    """The example, with Gloo's threads at the lowest priority before a last exchange: they let go of it late."""
    slow = tmp_path / "slow.py"
    slow.write_text(f"""
import os, runpy, sys
from pathlib import Path
import torch.distributed as dist
destroy = dist.destroy_process_group
def after_a_last_exchange():
    for task in Path("/proc/self/task").iterdir():
        if "gloo" in (task / "comm").read_text():
            os.sched_setscheduler(int(task.name), os.SCHED_IDLE, os.sched_param(0))
    gathered = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, "x" * 100000)
    destroy()
dist.destroy_process_group = after_a_last_exchange
sys.argv[0] = {str(EXAMPLE)!r}
runpy.run_path({str(EXAMPLE)!r}, run_name="__main__")
""")
    assert len(train(tmp_path / "run", 2, "--parallel", "fsdp", "--steps=1", script=slow)) == 1


def test_products_in_bfloat16(tmp_path: Path, one_process: tuple[Path, list[float]]) -> None:
    losses = train(tmp_path / "run", 2, "--parallel", "fsdp", "--bf16", "--scheme", "siamese")
    assert losses == pytest.approx(one_process[1], abs=0.1)
