"""Schemes in Python inside the engine's models: written a second time, they are the engine's own."""

from __future__ import annotations

import copy

import pytest
import siamesenorm as sn
import torch
from prototypes import Pre, Siamese
from siamesenorm import testing
from siamesenorm.scheme import BranchInit, Hints
from torch import nn

SHAPE = {"width": 16, "blocks": 2, "heads": 2}
IMAGES = {**SHAPE, "image": 8, "patch": 4, "channels": 2, "classes": 5, "norm": "layer", "bias": True}
MODELS = {
    "lm": {**SHAPE, "vocab": 19, "context": 12, "dropout": {"branch": 0.1, "embedding": 0.1}},
    "moe": {**SHAPE, "family": "moe", "vocab": 19, "context": 12, "experts": 4, "experts_per_token": 2},
    "vit": {**IMAGES, "family": "vit", "drop_path": 0.5},
    "dit": {**IMAGES, "family": "dit", "label_dropout": 0.2},
}
SCHEMES = {"pre": Pre, "siamese": Siamese}


def config_of(family: str) -> dict[str, object]:
    return {"model": MODELS[family], "data": {"source": "random"}}


def made(family: str, scheme: type, **more) -> sn.Model:
    shape = sn.Model(config_of(family), device="meta").config["model"]
    settings = {
        "layer": shape["norm"] == "layer", "bias": shape["bias"], "eps": shape["norm_eps"],
        "modulated": family == "dit",
    }  # fmt: skip
    return sn.Model(config_of(family), scheme=lambda *size: scheme(*size, **settings), **more)


def inputs_of(family: str) -> tuple[torch.Tensor, torch.Tensor | None]:
    generator = torch.Generator().manual_seed(5)
    if family in ("lm", "moe"):
        return torch.randint(19, (3, 9), generator=generator), None
    images = torch.randn(3, 2, 8, 8, generator=generator, dtype=torch.float64)
    return images, torch.randint(5, (3,), generator=generator)


def both(family: str, text: str) -> tuple[sn.Model, sn.Model]:
    """The engine's model and the one in Python with the same values, none of them 0 or 1."""
    engine = sn.Model(config_of(family), model__residual=text, dtype=torch.float64)
    ours = made(family, SCHEMES[text], dtype=torch.float64)
    generator = torch.Generator().manual_seed(1)
    own = dict(ours.named_parameters())
    with torch.no_grad():
        for name, value in engine.named_parameters():
            value.add_(0.3 * torch.randn(value.shape, generator=generator, dtype=value.dtype))
            twin(own, name).copy_(value)
    assert len(own) == len(list(engine.parameters()))
    return engine, ours


def twin(own: dict[str, nn.Parameter], name: str) -> nn.Parameter:
    return own[name] if name in own else own["scheme.own." + name.replace(".", "/")]


def close(a: torch.Tensor, b: torch.Tensor) -> bool:
    return bool((a - b).abs().max() <= 1e-10 * max(1.0, b.abs().max().item()))


@pytest.mark.parametrize("text", SCHEMES)
@pytest.mark.parametrize("family", MODELS)
def test_loss_and_every_gradient_are_the_engines(family, text):
    engine, ours = both(family, text)
    x, labels = inputs_of(family)
    losses = []
    for model in (engine, ours):
        model.train()  # dropout, drop-path and hidden labels act
        losses.append(model.losses(x, labels, seed=3, position=7))
        losses[-1]["objective"].backward()
    assert losses[0].keys() == losses[1].keys()
    for name, value in losses[0].items():
        assert close(losses[1][name].double(), value.double()), name
    own = dict(ours.named_parameters())
    for name, parameter in engine.named_parameters():
        assert parameter.grad.abs().max() > 0, name
        assert close(twin(own, name).grad, parameter.grad), name


@pytest.mark.parametrize("family", ["lm", "moe"])
def test_generates_what_the_engine_generates(family):
    engine, ours = both(family, "siamese")
    prompts = [[1, 2, 3], [4, 5, 6]]
    assert ours.eval().generate(prompts, 8) == engine.eval().generate(prompts, 8)
    tokens = torch.tensor(prompts)
    assert close(ours(tokens), engine(tokens)) and close(ours.hidden(tokens), engine.hidden(tokens))


class Halved(sn.Scheme):
    """Asks for all that a scheme may ask for."""

    def __init__(self, width, blocks):
        super().__init__(width, blocks)
        self.gain = nn.Parameter(torch.ones(width))
        self.kinds = {"gain": "norm"}

    def read(self, site, streams):
        return streams, testing.rms_norm(streams[0], self.gain)

    def write(self, site, streams, branch, gate=None):
        return (streams[0] + branch / 2,)

    def close(self, streams):
        return streams[0]

    def hints(self, site):
        return Hints("qkv", BranchInit(value=3.0, output=5.0 if site.index == 2 else 1.0))


def test_hints_reach_the_engines_sublayers():
    plain = sn.Model(config_of("lm"), model__residual="pre")
    ours = sn.Model(config_of("lm"), scheme=Halved)
    names = dict(ours.named_parameters())
    assert any("q_norm" in name for name in names) and not any("q_norm" in name for name, _ in plain.named_parameters())
    factors = {}
    for name, value in plain.named_parameters():
        if name in names and value.dim() == 2 and value.abs().max() > 0:
            factors[name] = {round(factor, 3) for factor in (names[name] / value).nan_to_num(1.0).flatten().tolist()}
    out = next(name for name in factors if name.startswith("blocks.1.attention") and factors[name] == {5.0})
    assert factors[out.replace("blocks.1", "blocks.0")] == {1.0}
    assert any(3.0 in found for found in factors.values())


def test_is_an_ordinary_module():
    model = sn.Model(config_of("lm"), scheme=Halved)
    tokens, _ = inputs_of("lm")
    groups = {group["kind"]: len(group["params"]) for group in sn.param_groups(model)}
    assert groups["norm"] >= 1
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.scheme.gain.mul_(3)
    assert not torch.equal(model(tokens), other(tokens))  # each calls its own
    other.load_state_dict(model.state_dict())
    assert torch.equal(model(tokens), other(tokens))
    optimizer = torch.optim.AdamW(sn.param_groups(model, lr=1e-2))
    found = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = model.losses(tokens)["objective"]
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    assert found[-1] < found[0]
    assert not torch.equal(model.scheme.gain, other.scheme.gain)
    assert "Halved" in repr(model)


def test_what_is_wrong_is_one_line(tmp_path):
    def broken(**verbs):
        kind = type("Broken", (Halved,), {name: lambda self, *_, got=got: got for name, got in verbs.items()})
        return lambda: sn.Model(config_of("lm"), scheme=kind)(torch.zeros(1, 3, dtype=torch.int64))

    def halved():
        return sn.Model(config_of("lm"), scheme=Halved)

    state, narrow = torch.zeros(1, 3, 16), torch.zeros(1, 3, 15)
    for words, call in (
        ("scheme: expected a class derived from Scheme", lambda: sn.Model(config_of("lm"), scheme=nn.Linear)),
        ("scheme: expected a class derived from Scheme", lambda: sn.Model(config_of("lm"), scheme="pre")),
        ("got both", lambda: sn.Model(config_of("lm"), scheme=Halved, model__residual="pre")),
        ("stands for a class", lambda: sn.Model(config_of("lm"), model__residual="python")),
        ("stands for a class", lambda: sn.train(config_of("lm"), out=tmp_path / "run", model__residual="python")),
        ("stands for a class", lambda: sn.ResidualStack("python", width=8, blocks=1)),
        ("Broken.open: expected streams", broken(open=())),
        ("Broken.open: expected streams", broken(open=state)),
        (r"Broken.read: expected \(streams, branch input\)", broken(read=state)),
        (r"Broken.read: expected a tensor \[batch, tokens, 16\], got \(1, 3, 15\)", broken(read=((state,), narrow))),
        ("Broken.write: expected streams", broken(write=None)),
        (r"Broken.close: expected a tensor \[batch, tokens, 16\], got NoneType", broken(close=None)),
        ("attention_norm: expected none, qk, qk_full or qkv, got 'all'", broken(hints=Hints("all"))),
        ("save: expected a scheme of the engine", lambda: sn.save(halved(), tmp_path / "x")),
        ("recompute: expected 0", lambda: halved().losses(inputs_of("lm")[0], recompute=1)),
    ):  # fmt: skip
        with pytest.raises(sn.UsageError, match=words) as error:
            call()
        assert "\n" not in str(error.value)

    class Raises(Halved):
        def read(self, site, streams):
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        sn.Model(config_of("lm"), scheme=Raises)(torch.zeros(1, 3, dtype=torch.int64))
    assert "python" not in sn.schemes()
