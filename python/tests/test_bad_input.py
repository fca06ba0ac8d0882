"""Whatever is passed to a compiled function, a Python exception comes back: never a crash, never a hang."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
import siamesenorm as sn
import torch
from siamesenorm._native import binding, check_torch

ROUNDS = 60

VALUES = [
    None, True, 0, 1, -1, 3, 2**40, 2**63, 1.5, float("nan"), float("inf"), "", "siamese", "pre|8|1|rms|1e-5|0.5|0|0",
    "siamese|8|1|rms|1e-5|0.5|0|0", "hc|8|1|layer|1e-5|0.5|1|1", "x|y", "\0", "model: {width: 3}", "é\ud800", [], {},
    [None], ["a=b"], {"a": 1}, b"bytes", torch.zeros(2, 3, 8), torch.zeros(0), torch.zeros(2, 3, 7), torch.ones(8),
    torch.zeros(2, 3, 8, dtype=torch.int64), torch.zeros(2, 3, 8, dtype=torch.float64), torch.zeros(8, device="meta"),
    torch.zeros(2, 3, 8).to_sparse(), torch.zeros(2, 3, 8, dtype=torch.complex64), [torch.zeros(2, 3, 8)] * 2,
    [torch.ones(8)], [torch.ones(8)] * 3, [torch.zeros(2, 3, 8)], [torch.zeros(2, 3, 8)] * 3, [torch.zeros(0)],
    {"a": torch.zeros(2)}, [[1, 2]], lambda *_: 1 / 0,
]  # fmt: skip


def functions():
    module = binding()
    found = [(name, getattr(module, name)) for name in dir(module) if not name.startswith("_")]
    functions = [(name, thing) for name, thing in found if callable(thing) and not isinstance(thing, type)]
    text = module.resolve_config('{"model": {"width": 8, "blocks": 1, "heads": 2, "context": 32}}', True, [], [])
    model = module.EngineModel(text, 0)
    methods = [(f"EngineModel.{name}", getattr(model, name)) for name in ("forward", "hidden", "losses", "generate")]
    return [*functions, ("EngineModel", module.EngineModel), *methods]


def arity(function) -> int:
    """The number of arguments, from the signature that pybind11 writes."""
    signature = (function.__init__.__doc__ if isinstance(function, type) else function.__doc__).splitlines()[0]
    return signature.count(": ") - ("self: " in signature)


def sensible(name: str, place: int) -> list[object]:
    """Arguments that pass the first checks, so that the later ones are reached, too."""
    key = "siamese|8|1|rms|1e-05|0.5|0|0"
    x, gain = torch.zeros(2, 3, 8), torch.ones(8)
    known = {
        "open": [key, [], x],
        "read": [key, 0, [gain] * 3, [x, x]],
        "write": [key, 0, [gain] * 3, [x, x], x, None],
        "close": [key, [gain] * 3, [x, x, x]],
        "scheme_key": ["siamese", 8, 1, "dyt", 1e-5, 0.5, False, False, False],
        "rope_frequencies": [6, 1e4, "yarn(factor=8, context=64)"],
        "initial_values": [key, 0, 1],
        "hints": [key, 0],
        "initial_weight": ["normal", 0.02, 3.0, 8, 1, "name", 0, [8, 8], False, 0, True],
    }
    return known.get(name, [])[place : place + 1]


@pytest.mark.parametrize("name, function", functions(), ids=lambda value: value if isinstance(value, str) else "")
def test_fuzzed_arguments(name, function, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # whatever is written stays here
    draw = random.Random(name)
    count = arity(function)
    for _ in range(ROUNDS):
        arguments = [
            good[0] if (good := sensible(name, place)) and draw.random() < 0.7 else draw.choice(VALUES)
            for place in range(count)
        ]
        try:
            function(*arguments)
        except Exception as error:
            assert not isinstance(error, SystemError), f"{name}{arguments}: {error}"


def test_verbs_name_what_is_wrong():
    stack = sn.ResidualStack("siamese", width=8, blocks=1)
    x = torch.zeros(2, 3, 8)
    streams = stack.open(x)
    read, _ = stack[0].read(streams)
    for words, call in (
        ("x: expected", lambda: stack.open(torch.zeros(2, 3, 7))),
        ("x: expected", lambda: stack.open(torch.zeros(2, 3, 8, dtype=torch.int64))),
        ("branch: expected", lambda: stack[0].write(read, torch.zeros(2, 3, 9))),
        ("branch: expected the shape of the streams", lambda: stack[0].write(read, torch.zeros(2, 4, 8))),
        ("branch: expected the device of the streams, cpu, got meta", lambda: stack[0].write(read, x.to("meta"))),
        ("expected", lambda: stack[0].read(streams[:1])),
        ("expected", lambda: stack.close(streams * 3)),
        ("sublayers: expected 2", lambda: stack(x, [])),
        ("width: expected", lambda: sn.ResidualStack("siamese", width=0, blocks=1)),
        ("blocks: expected", lambda: sn.ResidualStack("siamese", width=8, blocks=2**40)),
        ("norm: expected", lambda: sn.ResidualStack("siamese", width=8, blocks=1, norm="batch")),
        ("eps: expected", lambda: sn.ResidualStack("siamese", width=8, blocks=1, eps=-1.0)),
        ("alpha: expected a number", lambda: sn.ResidualStack("pre", width=8, blocks=1, norm="dyt", norm_alpha=0)),
        ("norm_alpha: expected none for norm rms", lambda: sn.ResidualStack("pre", width=8, blocks=1, norm_alpha=0.8)),
        ("unknown residual scheme 'siames'", lambda: sn.ResidualStack("siames", width=8, blocks=1)),
        ("scheme: expected", lambda: sn.ResidualStack(3, width=8, blocks=1)),
    ):
        with pytest.raises(ValueError, match=words) as error:
            call()
        assert "\n" not in str(error.value)
    with pytest.raises(IndexError, match="site: expected 0 to 1, got 2"):
        stack[2]


def test_another_torch_is_one_sentence():
    check_torch("2.13.0+cpu")
    for version in ("2.12.1", "2.14.0", "3.0.0+cu130"):
        with pytest.raises(ImportError, match=f"expected torch 2.13.x.*got {version.split('+')[0]}") as error:
            check_torch(version)
        assert "\n" not in str(error.value)


def test_a_source_tree_says_what_is_missing(tmp_path):
    code = "import siamesenorm._native as n; n._binding = None; n.binding()"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install" in ended.stderr.splitlines()[-1]
