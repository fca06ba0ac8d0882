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


IMAGES = {
    "width": 16, "blocks": 2, "heads": 2, "image": 8, "patch": 4, "channels": 3, "classes": 5, "norm": "layer",
    "norm_eps": 1e-6, "bias": True, "residual": "siamese",
}  # fmt: skip

# Layout: the model, what no tensor tells, and inputs of its pass.
LAYOUTS = {
    "official-deit": (
        {"family": "vit", "ffn": "gelu", **IMAGES}, ["model.heads=2"], lambda: (torch.randn(2, 3, 8, 8),),
    ),
    "official-dit": (
        {"family": "dit", "ffn": "gelu_tanh", **IMAGES},
        ["model.heads=2"],
        lambda: (torch.randn(2, 3, 8, 8), torch.tensor([3, 700]), torch.tensor([0, 4])),
    ),
    "official-lm": (
        {
            "family": "lm", "residual": "siamese(x=hybrid)", "width": 16, "blocks": 2, "heads": 2, "ffn_width": 24,
            "vocab": 37, "tied": False, "context": 16, "rope_theta": 700.0,
        },
        ["model.heads=2", "model.rope_theta=700", "model.context=16"],
        lambda: (torch.randint(37, (2, 9)),),
    ),
}  # fmt: skip


def randomised(layout: str) -> sn.Model:
    """A model of this layout whose every parameter says where it belongs (gates of a dit start at zero)."""
    model = sn.Model({"model": LAYOUTS[layout][0], "data": {"source": "random"}})
    with torch.no_grad():
        for value in model.parameters():
            value.add_(0.1 * torch.randn(value.shape))
    return model.eval()


WRAPPED = {
    "bare": lambda state: state,
    "trainer": lambda state: {"model": state, "epoch": 3},
    "parallel": lambda state: {f"module.{name}": value for name, value in state.items()},
}


@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_pickle_comes_back(layout, wrap, binary, tmp_path):
    torch.manual_seed(3)
    _, told, inputs = LAYOUTS[layout]
    model = randomised(layout)
    sn.save(model, tmp_path / "ours")
    torch.save(wrap(official(tmp_path, binary, tmp_path, "ours", layout)), tmp_path / "x.pt")
    assert main([str(tmp_path / "x.pt"), str(tmp_path / "back"), "--layout", layout, *told]) == 0
    back = sn.load(tmp_path / "back")
    assert back.state_dict().keys() == model.state_dict().keys()
    for name, value in model.state_dict().items():
        assert torch.equal(back.state_dict()[name], value), name
    given = inputs()
    assert torch.equal(back(*given), model(*given))


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
