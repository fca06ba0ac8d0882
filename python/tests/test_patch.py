"""sn.patch: models of others go on as another scheme. The ViT is one under timm's attribute names (vit.py)."""

from __future__ import annotations

import copy

import pytest
import siamesenorm as sn
import torch
from torch import Tensor, nn
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    Olmo2Config,
    Olmo2ForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)  # fmt: skip
from vit import VisionTransformer

SHAPE = {
    "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 40, "vocab_size": 37, "max_position_embeddings": 32, "bos_token_id": None,
    "eos_token_id": None, "pad_token_id": None,
}  # fmt: skip
MODELS = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**SHAPE)),
    "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**SHAPE)),
    "olmo2": lambda: Olmo2ForCausalLM(Olmo2Config(**SHAPE)),
    "gpt2": lambda: GPT2LMHeadModel(
        GPT2Config(n_embd=24, n_layer=2, n_head=4, vocab_size=37, n_positions=32, bos_token_id=0, eos_token_id=0)
    ),
    "vit": VisionTransformer,
}
TOKENS = torch.randint(1, 37, (2, 7), generator=torch.Generator().manual_seed(3))
PRE_NORM = ("llama", "qwen2", "gpt2", "vit")
EXACT = "siamese(input_norm=false, final_norm=false)"


def build(name: str) -> nn.Module:
    torch.manual_seed(0)
    model = MODELS[name]()
    with torch.no_grad():
        for value in model.parameters():
            if value.dim() == 1:
                value.add_(0.3 * torch.randn_like(value))
            else:
                value.copy_(torch.randn_like(value) / value.shape[-1] ** 0.5)
    return model.eval()


def output(model: nn.Module) -> Tensor:
    if isinstance(model, VisionTransformer):
        return model(torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1)))
    return model(TOKENS).logits


def error(ours: Tensor, theirs: Tensor) -> float:
    return ((ours - theirs).abs().max() / theirs.abs().max()).item()


@pytest.mark.parametrize(
    ("name", "scheme", "kept", "bound"),
    [
        *((name, scheme, "exact", 1e-5) for name in PRE_NORM for scheme in ("pre", EXACT, "lns")),
        *((name, "siamese", "up to eps", 1e-3) for name in ("llama", "gpt2", "vit")),
        ("llama", "siamese(x=hybrid)", "up to eps", 1e-3),
        ("llama", "siamese(x=hybrid, input_norm=false, final_norm=false)", "exact", 1e-5),
        ("llama", "hc", "up to eps", 1e-3),
        ("llama", "mixln(post=0)", "exact", 1e-5),
        ("olmo2", "olmo2", "exact", 1e-5),
    ],
)
def test_the_function_is_kept(name: str, scheme: str, kept: str, bound: float) -> None:
    model = build(name)
    before = output(model)
    done = sn.patch(model, scheme)
    assert done == (sn.canonical_scheme(scheme), kept)
    assert error(output(model), before) < bound


@pytest.mark.parametrize("name", MODELS)
def test_every_parameter_of_a_new_scheme_learns(name: str) -> None:
    for scheme in ("siamese", "peri", "mhc", "siamese(form=write)"):
        model = build(name).train()
        done = sn.patch(model, scheme)
        assert done.kept == ("up to eps" if scheme == "siamese" and name != "olmo2" else "no")
        output(model).square().mean().backward()
        missing = [key for key, value in model.named_parameters() if value.grad is None]
        assert not missing
        assert all(value.grad.isfinite().all() for value in model.parameters())


def test_a_causal_model_refuses_a_scheme_across_tokens() -> None:
    model = build("llama")
    before = output(model)
    with pytest.raises(sn.UsageError, match="all tokens of a sample"):
        sn.patch(model, "mv_split")
    assert torch.equal(output(model), before)


def test_names_say_where_the_junctions_are() -> None:
    model = build("llama")
    sn.patch(model, "siamese")
    names = {name for name, _ in model.named_parameters()}
    assert "model.layers.1.ffn_junction.x_norm.weight" in names
    assert "model.layers.0.attention_junction.y_norm.weight" in names
    assert "model.norm.x_norm.weight" in names
    assert "model.layers.0.self_attn.q_proj.weight" in names
    assert not any("layernorm" in name for name in names)


@pytest.mark.parametrize("name", ["llama", "qwen2", "olmo2", "gpt2"])
def test_generation_goes_on_with_its_cache(name: str) -> None:
    model = build(name)
    sn.patch(model, "siamese" if name != "olmo2" else "olmo2")
    words = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0}
    cached = model.generate(TOKENS[:1], use_cache=True, **words)
    assert torch.equal(cached, model.generate(TOKENS[:1], use_cache=False, **words))


def test_checkpointing_deepcopy_and_state_dict() -> None:
    model = build("llama").train()
    sn.patch(model, "siamese")
    twin = copy.deepcopy(model)
    twin.load_state_dict(model.state_dict())
    twin.gradient_checkpointing_enable()
    for each in (model, twin):
        each(TOKENS, labels=TOKENS).loss.backward()
    for (name, one), other in zip(model.named_parameters(), twin.parameters(), strict=False):
        assert torch.allclose(one.grad, other.grad, rtol=1e-4, atol=1e-6), name


def test_drop_path_is_a_gate() -> None:
    """With a chance close to 1 nothing is written: both streams stay the embedding."""
    torch.manual_seed(0)
    model = VisionTransformer(drop_path=0.999999).train()
    sn.patch(model, "siamese(input_norm=false, final_norm=false)")
    images = torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        dropped = model(images)
        x = model.patch_embed(images).flatten(2).transpose(1, 2)
        x = torch.cat([model.cls_token.expand(len(x), -1, -1), x], 1)
        expected = model.head(torch.nn.functional.layer_norm(x, (24,), eps=1e-6)[:, 0])
    assert torch.allclose(dropped, expected, atol=1e-5)


def test_what_cannot_be_is_refused_and_leaves_the_model_alone() -> None:
    with pytest.raises(sn.UsageError, match="expected Llama, OLMo-2, Qwen2 or GPT-2"):
        sn.patch(nn.Sequential(nn.Linear(2, 2)), "siamese")
    model = build("llama")
    before = output(model)
    with pytest.raises(sn.UsageError, match="siamees"):
        sn.patch(model, "siamees")
    assert torch.equal(output(model), before)
    sn.patch(model, "pre")
    with pytest.raises(sn.UsageError, match="not patched before"):
        sn.patch(model, "siamese")
