"""Other people's pickles."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

import pytest
import siamesenorm as sn
import torch
from safetensors_file import read
from siamesenorm.convert import convert, main, read_pickle


def official(fixtures, binary, tmp_path, family: str, layout: str) -> dict[str, torch.Tensor]:
    """The weights of a fixture under the published names."""
    out = tmp_path / f"{family}.safetensors"
    command = [binary, "convert", str(fixtures / family), "--from", "siamese", "--to", layout, "--out", str(out)]
    subprocess.run(command, check=True, capture_output=True)
    return read(out)


@pytest.fixture
def small_vit(tiny):
    return sn.Model(
        {
            "model": {
                "family": "vit", "residual": "siamese", "width": 16, "blocks": 2, "heads": 2, "image": 8, "patch": 4,
                "channels": 3, "classes": 5, "ffn": "gelu", "norm": "layer", "norm_eps": 1e-6, "bias": True,
            },
            "data": {"source": "random"},
        }
    )  # fmt: skip


WRAPPED = {
    "bare": lambda state: state,
    "trainer": lambda state: {"model": state, "epoch": 3},
    "parallel": lambda state: {f"module.{name}": value for name, value in state.items()},
}


@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
def test_deit_pickle_comes_back(wrap, small_vit, binary, tmp_path):
    sn.save(small_vit, tmp_path / "vit")
    state = official(tmp_path, binary, tmp_path, "vit", "official-deit")
    torch.save(wrap(state), tmp_path / "x.pt")
    code = main([str(tmp_path / "x.pt"), str(tmp_path / "back"), "--layout", "official-deit", "model.heads=2"])
    assert code == 0
    back = sn.load(tmp_path / "back")
    for name, value in small_vit.state_dict().items():
        assert torch.equal(back.state_dict()[name], value), name
    images = torch.randn(2, 3, 8, 8)
    assert torch.equal(back(images), small_vit.eval()(images))


class Evil:
    def __reduce__(self):
        return (os.mkdir, ("evil",))


def test_nothing_in_a_pickle_is_executed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.pt").write_bytes(pickle.dumps({"model": Evil()}))
    with pytest.raises(sn.DataError, match="weights_only"):
        read_pickle(tmp_path / "x.pt")
    assert not (tmp_path / "evil").exists()
    assert main(["x.pt", "out", "--layout", "official-dit"]) == 3
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_wrong_files_and_layouts(tmp_path):
    torch.save({"a": torch.zeros(2)}, tmp_path / "x.pt")
    with pytest.raises(sn.UsageError, match="--layout"):
        convert(tmp_path / "x.pt", tmp_path / "out", "nobody")
    with pytest.raises(sn.DataError):
        convert(tmp_path / "x.pt", tmp_path / "out", "official-dit")
    with pytest.raises(sn.DataError, match="missing"):
        convert(tmp_path / "y.pt", tmp_path / "out", "official-dit")
    torch.save([1, 2], tmp_path / "x.pt")
    with pytest.raises(sn.DataError, match="expected tensors by name"):
        convert(tmp_path / "x.pt", tmp_path / "out", "official-dit")
    with pytest.raises(sn.DataError, match="part named 'ema'"):
        convert(tmp_path / "x.pt", tmp_path / "out", "official-dit", key="ema")
    assert not (tmp_path / "out").exists()


def test_command_line_help():
    ended = subprocess.run([sys.executable, "-m", "siamesenorm.convert", "--help"], capture_output=True, text=True,
                           check=True)  # fmt: skip
    assert "--layout" in ended.stdout
