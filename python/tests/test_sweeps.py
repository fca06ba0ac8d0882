"""Sweeps from Python: the engine's, in this process."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
import siamesenorm as sn


@pytest.fixture
def small(tiny, tmp_path) -> dict[str, object]:
    """Two schemes at two learning rates, a recipe of seconds."""
    recipe = tmp_path / "tiny.yaml"
    recipe.write_text(json.dumps({**tiny, "train": {"steps": 3, "batch": 2}}), encoding="utf-8")
    return {
        "sweep": "small",
        "config": str(recipe),
        "variants": [{"model.residual": "pre"}, {"model.residual": "siamese", "label": "two streams"}],
        "grid": {"optim.lr": [1e-3, 2e-3]},
    }


def test_sweep_is_the_command_line(small, binary, tmp_path):
    seen = []
    told = sn.sweep(small, out=tmp_path / "ours", progress=lambda what, numbers: seen.append((what, numbers)))
    assert told == {"status": "finished", "dir": str(tmp_path / "ours"), "report": tmp_path / "ours" / "report.html"}
    assert told["report"].read_text(encoding="utf-8").startswith("<!doctype html>")
    said = [numbers["text"].strip() for what, numbers in seen if what == "said"]
    assert said[0] == "[1/4] pre-lr0.001" and said[-1] == "[4/4] two-streams-lr0.002"
    assert sum(what == "step" for what, _ in seen) == 12

    (tmp_path / "sweep.yaml").write_text(json.dumps(small), encoding="utf-8")
    command = [binary, "sweep", str(tmp_path / "sweep.yaml"), "--quiet", "--out", str(tmp_path / "theirs")]
    subprocess.run(command, check=True, capture_output=True)
    ours, theirs = (sn.read_sweep(tmp_path / name, frame=False) for name in ("ours", "theirs"))
    for table in ("runs", "results"):
        assert ours[table].keys() == theirs[table].keys()
        for name, column in ours[table].items():
            if name not in ("seconds", "tokens_per_s", "samples_per_s"):
                assert np.array_equal(column, theirs[table][name], equal_nan=column.dtype.kind == "f"), name


def test_read_sweep(small, tmp_path):
    sn.sweep(small, out=tmp_path / "sweep", progress=False)
    read = sn.read_sweep(tmp_path / "sweep", frame=False)
    assert read["name"] == "small"
    runs, results = read["runs"], read["results"]
    assert runs["dir"].tolist() == ["pre-lr0.001", "two-streams-lr0.001", "pre-lr0.002", "two-streams-lr0.002"]
    assert set(runs["status"]) == {"finished"} and runs["step"].tolist() == [3] * 4
    assert results["variant"].tolist() == ["pre", "pre", "two streams", "two streams"]
    assert results["lr"].tolist() == [1e-3, 2e-3] * 2 and results["finished"].tolist() == [1] * 4
    for place, name in enumerate(("pre-lr0.001", "pre-lr0.002", "two-streams-lr0.001", "two-streams-lr0.002")):
        last = sn.read_run(tmp_path / "sweep" / name, frame=False)["evals"]["loss"][-1]
        assert results["val_loss"][place] == pytest.approx(last)
        assert runs["val_loss"][runs["dir"].tolist().index(name)] == last
    assert math.isnan(results["val_loss_sd"][0])  # of one run
    assert "| two streams | 0.002 |" in read["summary"]


def test_goes_on_after_control_c(small, tmp_path):
    def interrupt(what, numbers):
        if what == "step" and numbers["step"] == 2 and (tmp_path / "sweep" / "two-streams-lr0.001").exists():
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        sn.sweep(small, out=tmp_path / "sweep", progress=interrupt)
    standing = sn.read_sweep(tmp_path / "sweep", frame=False)["runs"]["status"].tolist()
    assert standing == ["finished", "stopped", "not started", "not started"]
    seen = []
    sn.sweep(small, out=tmp_path / "sweep", progress=lambda what, numbers: seen.append((what, numbers.get("step"))))
    assert [step for what, step in seen if what == "step"] == [3, 1, 2, 3, 1, 2, 3]


def test_record_progress_and_overrides(small, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small["grid"] = {"optim.lr": [1e-3]}
    sn.sweep({**small, "record": "record.jsonl"}, train__steps=2)
    assert not Path("record.jsonl").exists()  # other runs than those of the sweep
    shown = capsys.readouterr().err
    assert "[2/2] two-streams-lr0.001" in shown and "step 2/2" in shown
    assert sn.read_sweep("runs/small", frame=False)["runs"]["step"].tolist() == [2, 2]
    sn.sweep({**small, "record": "record.jsonl"}, out="again", progress=False, engine__threads=1)
    assert len(Path("record.jsonl").read_text(encoding="utf-8").splitlines()) == 2
    seen = []
    sn.sweep(small, out="third", record="record.jsonl", progress=lambda what, numbers: seen.append(what))
    assert "step" not in seen  # both are recorded
    assert np.isfinite(sn.read_sweep("third", frame=False)["runs"]["val_loss"]).all()


def test_a_run_that_diverges_is_a_result(small, tmp_path):
    small["variants"] = [{"model.residual": "pre"}]
    small["set"] = {"optim.clip": 0.0, "train.max_skips": 1, "train.steps": 20}
    small["grid"] = {"optim.lr": [1e-3, 1e38]}
    assert sn.sweep(small, out=tmp_path / "sweep", progress=False)["status"] == "finished"
    read = sn.read_sweep(tmp_path / "sweep", frame=False)
    assert read["runs"]["status"].tolist() == ["finished", "diverged"]
    assert read["results"]["diverged"].tolist() == [0, 1]


def test_errors_are_pythons(small, tiny, tmp_path):
    with pytest.raises(sn.UsageError, match="grd: unknown key"):
        sn.sweep({**small, "grd": {}}, out=tmp_path / "sweep")
    with pytest.raises(sn.UsageError, match=r"optim\.lr varies"):
        sn.sweep(small, out=tmp_path / "sweep", optim__lr=1.0)
    with pytest.raises(sn.UsageError, match="no-such-sweep"):
        sn.sweep("no-such-sweep", out=tmp_path / "sweep")
    missing = {"data.source": "text", "data.train": str(tmp_path / "missing.txt")}
    with pytest.raises(sn.DataError, match=r"missing\.txt"):
        sn.sweep({**small, "set": missing}, out=tmp_path / "sweep")
    assert not (tmp_path / "sweep").exists()
    sn.train(tiny, out=tmp_path / "run", progress=False, train__steps=1)
    with pytest.raises(sn.UsageError, match="is a run, not the folder of a sweep"):
        sn.read_sweep(tmp_path / "run")
    with pytest.raises(sn.UsageError, match="is a run"):
        sn.sweep(small, out=tmp_path / "run")

    def fail(what, numbers):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        sn.sweep(small, out=tmp_path / "failed", progress=fail)


def test_reads_what_an_earlier_version_wrote(fixtures):
    read = sn.read_sweep(fixtures / "sweep", frame=False)
    assert read["runs"]["variant"].tolist() == ["pre", "siamese"]
    assert np.isfinite(read["results"]["val_loss"]).all()
