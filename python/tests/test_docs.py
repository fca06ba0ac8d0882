"""What docs/python.md and README.md show is run as it stands."""

from __future__ import annotations

import re

import siamesenorm as sn
import torch
from conftest import REPOSITORY
from siamesenorm import testing

BLOCKS = re.findall(r"```python\n(.*?)```", (REPOSITORY / "docs" / "python.md").read_text(encoding="utf-8"), re.DOTALL)


def test_the_ten_lines(capsys):
    exec(compile(BLOCKS[0], "docs/python.md", "exec"), {})
    assert "torch.Size([2, 16, 64])" in capsys.readouterr().out


def test_the_recipe_of_the_readme():
    (block,) = re.findall(r"```python\n(.*?)```", (REPOSITORY / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    names: dict = {}
    exec(compile(block, "README.md", "exec"), names)
    assert names["y"].shape == (2, 16, 512)


def test_the_verbs():
    names = {"torch": torch, "sn": sn}
    exec(compile(BLOCKS[0] + BLOCKS[1], "docs/python.md", "exec"), names)
    assert names["y"].shape == (2, 16, 64)


def test_models_and_runs(fixtures, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "siamese").symlink_to(fixtures / "lm")
    names = {"torch": torch, "sn": sn, "tokens": torch.zeros(1, 9, dtype=torch.int64)}
    exec(compile(BLOCKS[2], "docs/python.md", "exec"), names)
    assert names["losses"]["loss"] > 0
    few = "optim__lr=2e-3, train__steps=2, train__batch=2, eval__problems=2, eval__batches=1, progress=False"
    exec(compile(BLOCKS[3].replace("optim__lr=2e-3", few), "docs/python.md", "exec"), names)
    assert len(names["record"]["steps"]["step"]) == 2


def test_a_sweep(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    few = '"set": {"model.width": 32, "train.steps": 2, "train.batch": 2, "eval.problems": 2, "eval.batches": 1},'
    names = {"sn": sn}
    exec(compile(BLOCKS[4].replace('"grid":', few + '"grid":'), "docs/python.md", "exec"), names)
    assert len(names["read"]["runs"]["dir"]) == 8
    assert "| siamese |" in capsys.readouterr().out


def test_a_scheme_of_your_own():
    names = {"torch": torch, "sn": sn, "testing": testing, "tokens": torch.zeros(1, 9, dtype=torch.int64)}
    exec(compile(BLOCKS[5], "docs/python.md", "exec"), names)
    assert [group["kind"] for group in sn.param_groups(names["stack"])] == ["norm"]
    exec(compile(BLOCKS[6], "docs/python.md", "exec"), names)
    assert names["model"].scheme.gain.grad.abs().max() > 0
