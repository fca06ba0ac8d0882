"""Training from Python: the engine's runs in this process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import types

import numpy as np
import pytest
import siamesenorm as sn
import torch


def test_train_is_the_command_line(tiny, binary, tmp_path):
    seen = []
    told = sn.train(tiny, out=tmp_path / "ours", progress=lambda what, numbers: seen.append((what, numbers)))
    assert told == {"status": "finished", "dir": str(tmp_path / "ours")}
    assert [numbers["step"] for what, numbers in seen if what == "step"] == [1, 2, 3, 4, 5, 6]
    assert {"started", "step", "evaluated", "saved"} <= {what for what, _ in seen}
    config = tmp_path / "ours" / "config.yaml"
    subprocess.run([binary, "train", str(config), "--quiet", "--out", str(tmp_path / "theirs")], check=True,
                   capture_output=True)  # fmt: skip
    ours, theirs = sn.read_run(tmp_path / "ours", frame=False), sn.read_run(tmp_path / "theirs", frame=False)
    assert np.array_equal(ours["steps"]["loss"], theirs["steps"]["loss"])
    weights = [sn.load(tmp_path / name).state_dict() for name in ("ours", "theirs")]
    assert all(torch.equal(value, weights[1][name]) for name, value in weights[0].items())


def test_overrides_recipes_and_progress(capsys, tmp_path):
    few = {"train__steps": 2, "train.batch": 2, "eval__batches": 1, "eval__problems": 2, "engine__threads": 1}
    sn.train("arithmetic-small", out=tmp_path / "run", model__residual="pre", model__width=32, **few)
    shown = capsys.readouterr().err
    assert "step 2/2" in shown and "held-out loss" in shown
    record = sn.read_run(tmp_path / "run", frame=False)
    assert record["scheme"] == "pre" and record["status"] == "finished" and record["family"] == "lm"
    assert record["steps"]["step"].tolist() == [1, 2]
    assert record["steps"]["loss"].dtype == np.float64
    assert record["evals"]["step"].tolist() == [2]
    assert record["config"]["model.width"] == "32"
    assert sn.report(tmp_path / "run").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_threads_are_given_back(tiny, tmp_path):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        sn.train(tiny, out=tmp_path / "run", progress=False)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_control_c_saves_and_the_run_goes_on_to_the_same_bits(tiny, tmp_path):
    sn.train(tiny, out=tmp_path / "whole", progress=False)

    def interrupt(what, numbers):
        if what == "step" and numbers["step"] == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        sn.train(tiny, out=tmp_path / "stopped", progress=interrupt)
    assert sn.read_run(tmp_path / "stopped", frame=False)["status"] == "stopped"
    assert (tmp_path / "stopped" / "step3").is_dir()
    assert sn.resume(tmp_path / "stopped", progress=False)["status"] == "finished"
    losses = [sn.read_run(tmp_path / name, frame=False)["steps"]["loss"] for name in ("whole", "stopped")]
    assert np.array_equal(*losses)


def test_an_error_of_the_watcher_comes_through_after_saving(tiny, tmp_path):
    def fail(what, numbers):
        if what == "step" and numbers["step"] == 3:
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        sn.train(tiny, out=tmp_path / "run", progress=fail)
    assert (tmp_path / "run" / "step3").is_dir()


def test_errors_are_pythons(tiny, tmp_path):
    with pytest.raises(ValueError, match=r"model\.widht"):
        sn.train(tiny, out=tmp_path / "run", model__widht=3)
    with pytest.raises(sn.UsageError, match="arithmetic-small"):
        sn.train("arithmetic-smal", out=tmp_path / "run")
    with pytest.raises(OSError, match=r"missing\.txt"):
        sn.train({"data": {"source": "text", "train": str(tmp_path / "missing.txt")}}, out=tmp_path / "run")
    with pytest.raises(sn.DataError, match="not a run directory"):
        sn.resume(tmp_path)
    with pytest.raises(sn.DataError):
        sn.report(tmp_path)
    with pytest.raises(sn.DataError):
        sn.read_run(tmp_path / "nowhere")
    with pytest.raises(sn.UsageError, match="sweep"):
        sn.train({"sweep": "x", "variants": []}, out=tmp_path / "run")
    sn.train(tiny, out=tmp_path / "run", progress=False)
    with pytest.raises(sn.UsageError, match="run"):
        sn.train(tiny, out=tmp_path / "run", progress=False)
    sn.train(tiny, out=tmp_path / "run", overwrite=True, progress=False)


def test_divergence_is_an_exception(tiny, tmp_path):
    with pytest.raises(sn.DivergedError):
        sn.train(tiny, out=tmp_path / "run", progress=False, optim__lr=1e38, optim__clip=0.0, train__max_skips=1,
                 train__steps=20)  # fmt: skip


def test_columns_are_a_frame_where_pandas_is(fixtures, monkeypatch):
    """pandas is not among what the tests install: a stand-in for it takes what pandas.DataFrame would be given."""

    class Frame(dict):
        pass

    pandas = types.ModuleType("pandas")
    pandas.DataFrame = Frame
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    for frame in (None, True):
        record, sweep = sn.read_run(fixtures / "lm", frame=frame), sn.read_sweep(fixtures / "sweep", frame=frame)
        plain = sn.read_run(fixtures / "lm", frame=False)
        for table in (record["steps"], record["evals"], sweep["runs"], sweep["results"]):
            assert type(table) is Frame
        assert type(plain["steps"]) is dict
        assert record["steps"].keys() == plain["steps"].keys()
        assert np.array_equal(record["steps"]["loss"], plain["steps"]["loss"])
    monkeypatch.setitem(sys.modules, "pandas", None)  # not installed
    assert type(sn.read_run(fixtures / "lm")["steps"]) is dict
    with pytest.raises(ImportError):
        sn.read_run(fixtures / "lm", frame=True)


def test_read_run_of_every_family(fixtures):
    for family in ("lm", "moe", "vit", "dit"):
        record = sn.read_run(fixtures / family, frame=False)
        assert record["family"] == family and len(record["steps"]["loss"]) > 0
        assert np.isfinite(record["steps"]["loss"]).all()
    with pytest.raises(sn.UsageError, match="sweep"):
        sn.read_run(fixtures / "sweep")
