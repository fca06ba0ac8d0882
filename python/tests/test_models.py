"""Models of every family: the engine's own function on the module's own tensors."""

from __future__ import annotations

import copy
import json
import subprocess

import pytest
import siamesenorm as sn
import torch
from safetensors_file import read
from siamesenorm._native import binding

FAMILIES = ("lm", "moe", "vit", "dit")


def inputs_of(model: sn.Model, dtype=torch.float32) -> dict[str, torch.Tensor]:
    torch.manual_seed(5)
    config = model.config["model"]
    if model.family in ("lm", "moe"):
        return {"tokens": torch.randint(config["vocab"], (2, min(9, config["context"])))}
    shape = (2, config["channels"], config["image"], config["image"])
    labels = torch.randint(config["classes"], (2,))
    if model.family == "vit":
        return {"images": torch.randn(shape, dtype=dtype), "labels": labels}
    target = torch.randn(2, shape[1] * (2 if config["learn_sigma"] else 1), *shape[2:], dtype=dtype)
    steps = torch.tensor([3, 700])
    return {"latents": torch.randn(shape, dtype=dtype), "timesteps": steps, "labels": labels, "target": target}


def output_and_loss(model: sn.Model, given: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss that `siamese probe` names, from the output."""
    if model.family in ("lm", "moe"):
        output = model(given["tokens"])
        flat = output[:, :-1].reshape(-1, output.shape[-1])
        return output, torch.nn.functional.cross_entropy(flat, given["tokens"][:, 1:].reshape(-1))
    if model.family == "vit":
        output = model(given["images"])
        return output, torch.nn.functional.cross_entropy(output, given["labels"])
    output = model(given["latents"], given["timesteps"], given["labels"])
    return output, (output - given["target"]).square().mean()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_equal_to_the_probe(family, dtype, tolerance, fixtures, binary, tmp_path):
    model = sn.load(fixtures / family, dtype=dtype)
    given = inputs_of(model, dtype)
    binding().save_tensors(str(tmp_path / "in.safetensors"), given)
    command = [binary, "probe", str(fixtures / family), "--inputs", str(tmp_path / "in.safetensors"), "--grad"]
    command += ["--double"] if dtype == torch.float64 else []
    subprocess.run([*command, "--out", str(tmp_path / "out.safetensors")], check=True, capture_output=True)
    probed = read(tmp_path / "out.safetensors")
    output, loss = output_and_loss(model, given)
    loss.backward()

    def close(a, b):
        return (a - b).abs().max() <= tolerance * max(1.0, b.abs().max().item())

    assert close(output.detach(), probed["output"])
    assert close(loss.detach(), probed["loss"])
    for name, parameter in model.named_parameters():
        got = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        assert close(got, probed[f"grad/{name}"]), name


@pytest.mark.parametrize("family", FAMILIES)
def test_saved_and_read_by_the_engine(family, fixtures, binary, tmp_path):
    model = sn.load(fixtures / family)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.9)
    sn.save(model, tmp_path / "saved")
    again = sn.load(tmp_path / "saved")
    assert {n: v.shape for n, v in again.state_dict().items()} == {n: v.shape for n, v in model.state_dict().items()}
    for name, value in model.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name
    assert set(read(tmp_path / "saved" / "model.safetensors")) == set(model.state_dict())
    with pytest.raises(sn.UsageError, match="exists already"):
        sn.save(model, tmp_path / "saved")
    sn.save(model, tmp_path / "saved", overwrite=True)
    shown = subprocess.run([binary, "inspect", str(tmp_path / "saved")], check=True, capture_output=True, text=True)
    assert model.config["model"]["residual"] in shown.stdout


def test_eval_of_what_was_saved(tiny, binary, tmp_path):
    model = sn.Model(tiny)
    sn.save(model, tmp_path / "saved")
    command = [binary, "eval", str(tmp_path / "saved"), "--json"]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert told["loss"] > 0


def test_fresh_weights_are_those_of_a_run(tiny, tmp_path):
    tiny["optim"] = {"lr": 1e-30}  # a step that moves nothing
    sn.train(tiny, out=tmp_path / "run", progress=False, train__steps=1)
    trained = sn.load(tmp_path / "run").state_dict()
    fresh = sn.Model(tiny, train__steps=1)
    assert fresh.config["train"]["steps"] == 1
    for name, value in fresh.state_dict().items():
        assert torch.equal(value, trained[name]), name


def test_in_the_middle_of_a_residual_warm_up(tiny, binary, tmp_path):
    """Loaded as the engine evaluates it: with the factors of its step."""
    warm_up = {"train__residual_warmup": "linear", "train__residual_warmup_steps": 8}
    sn.train(tiny, out=tmp_path / "run", progress=False, train__steps=4, **warm_up)
    model = sn.load(tmp_path / "run")
    blocks = model.config["model"]["blocks"]
    assert len(model.branch_scales) == blocks and model.branch_scales[-1] == 0.5
    tokens = torch.arange(10).reshape(2, 5)
    binding().save_tensors(str(tmp_path / "in.safetensors"), {"tokens": tokens})
    command = [binary, "probe", str(tmp_path / "run"), "--inputs", str(tmp_path / "in.safetensors"), "--out",
               str(tmp_path / "out.safetensors")]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    output = model(tokens).detach()
    assert torch.allclose(output, read(tmp_path / "out.safetensors")["output"], rtol=0, atol=1e-5)
    model.branch_scales = []
    model._bind()
    assert not torch.allclose(output, model(tokens).detach(), rtol=0, atol=1e-3)  # whole branches
    model = sn.load(tmp_path / "run")
    with pytest.raises(sn.UsageError, match="residual warm-up"):
        sn.save(model, tmp_path / "saved")


@pytest.mark.parametrize("family", FAMILIES)
def test_losses_and_recomputation(family, fixtures):
    model = sn.load(fixtures / family).train()
    given = inputs_of(model)
    first = next(iter(given.values()))
    found = []
    for recompute in (0, 1):
        model.zero_grad()
        losses = model.losses(first, given.get("labels"), seed=3, recompute=recompute)
        losses["objective"].backward()
        found.append([losses["loss"], *(p.grad for p in model.parameters())])
    for a, b in zip(*found, strict=True):
        assert (a is None and b is None) or torch.equal(a, b)
    if family == "moe":
        assert losses["expert_counts"].sum() > 0 and losses["balance_loss"] > 0
    if family == "lm":
        _, loss = output_and_loss(model, given)
        assert torch.allclose(losses["loss"], loss.detach(), atol=1e-5)


@pytest.mark.parametrize("family", ["lm", "moe"])
def test_generation_with_a_cache_is_the_forward_pass(family, fixtures):
    model = sn.load(fixtures / family)
    prompt = [1, 2, 3]
    made = model.generate(prompt, 6)
    tokens = list(prompt)
    for token in made:
        logits = model(torch.tensor([tokens]))[0, -1]
        assert logits[token] >= logits.max() - 1e-4
        tokens.append(token)
    assert model.generate([prompt, prompt], 6) == [made, made]
    assert model.generate(torch.tensor([prompt]), 6) == [made]
    assert model.generate(prompt, 6, stop=made[0]) == []
    drawn = model.generate(prompt, 6, temperature=1.0, top_k=5, top_p=0.9, seed=1)
    assert drawn == model.generate(prompt, 6, temperature=1.0, top_k=5, top_p=0.9, seed=1)


@pytest.mark.parametrize("family", FAMILIES)
def test_is_an_ordinary_module(family, fixtures):
    model = sn.load(fixtures / family)
    given = inputs_of(model)
    output, _ = output_and_loss(model, given)
    twin = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert torch.equal(output_and_loss(twin, given)[0], output)
    model.load_state_dict(twin.state_dict())
    assert torch.equal(output_and_loss(model, given)[0], output)
    groups = sn.param_groups(model, lr=1e-3)
    assert sum(p.numel() for g in groups for p in g["params"]) == sum(p.numel() for p in model.parameters())
    optimizer = torch.optim.AdamW(groups)
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        _, loss = output_and_loss(model, given)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_longer_context_with_rotary_positions(fixtures):
    model = sn.load(fixtures / "lm")
    beyond = model.config["model"]["context"] + 5
    tokens = torch.zeros(1, beyond, dtype=torch.int64)
    if model.config["model"]["positions"] == "rope":
        with pytest.raises(sn.UsageError, match="tokens"):
            model(tokens)
        assert sn.load(fixtures / "lm", context=beyond)(tokens).shape[1] == beyond


def test_wrong_input_is_one_line(fixtures):
    lm, dit = sn.load(fixtures / "lm"), sn.load(fixtures / "dit")
    for call in (
        lambda: lm(torch.zeros(1, 3)),
        lambda: lm(torch.full((1, 3), 10**6)),
        lambda: lm(torch.zeros(3, dtype=torch.int64)),
        lambda: lm(torch.zeros(1, 3, dtype=torch.int64), torch.zeros(1)),
        lambda: dit(torch.zeros(1, 1, 1, 1)),
        lambda: dit.generate([1]),
        lambda: dit.hidden(torch.zeros(1)),
        lambda: lm.generate([10**9]),
        lambda: lm.generate([]),
        lambda: lm.generate([1], top_p=2.0),
        lambda: lm.generate([1], 0),
        lambda: lm.losses(torch.zeros(1, 3, dtype=torch.int64), oops=1.0),
    ):
        with pytest.raises(sn.UsageError) as error:
            call()
        assert "\n" not in str(error.value) and str(error.value)
    with pytest.raises(sn.DataError, match="nowhere"):
        sn.load(fixtures / "nowhere")
