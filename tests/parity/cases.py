"""The models that are compared: one of odd size for each layout and each thing a layout may or may not have."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from parts import RopeScaling
from plain_lm import Gpt2, MetaLlama, llama, olmo2
from siamese_lm import HfSiamese, LmShape, OfficialLm
from siamese_vision import ImageShape, OfficialDeit, OfficialDit

BATCH = 3

LM = LmShape(width=24, blocks=3, heads=4, kv_heads=2, ffn_width=40, vocab=37, context=11, theta=700.0)
UNTIED = replace(LM, tied=False)
LLAMA = replace(LM, tied=False, eps=1e-6, head_norm="none")
OLMO2 = replace(LLAMA, head_norm="qk_full", theta=500000.0)
OLMO3 = replace(OLMO2, blocks=5, window=4, pattern="SSF")
LONG_OLMO3 = replace(OLMO3, theta=700.0, scaling=RopeScaling("yarn", 4, 300), scaled="full")
GPT2 = replace(LM, kv_heads=4)
DEIT = ImageShape(width=24, blocks=3, heads=3, ffn_width=40, image=12, patch=4, channels=3, classes=5)
DIT = ImageShape(width=24, blocks=3, heads=3, ffn_width=40, image=6, patch=2, channels=4, classes=5)
PLAIN_DIT = replace(DIT, extra_label=False, learn_sigma=False)


@dataclass(frozen=True)
class Case:
    name: str
    layout: str
    build: Callable[[], nn.Module]
    inputs: Callable[[], dict[str, Tensor]]
    keys: dict[str, object] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()  # tensors that the file lacks, so that the engine must compute them


def lm_case(name: str, layout: str, build: Callable[[LmShape], nn.Module], shape: LmShape) -> Case:
    keys = {"model.heads": shape.heads, "model.context": shape.context, "model.norm_eps": shape.eps}
    if layout != "hf-gpt2":
        keys |= {"model.kv_heads": shape.kv_heads, "model.rope_theta": shape.theta}
    if shape.scaling is not None:
        keys["model.rope_scaling"] = shape.scaling.text()
        if shape.scaled != "all":
            keys["model.rope_scaling_layers"] = shape.scaled
    if shape.window:
        keys["model.window"] = shape.window
        if shape.pattern != "S":
            keys["model.window_pattern"] = shape.pattern
    if shape.depth_stride:
        keys |= {"model.depth_attention_stride": shape.depth_stride, "model.depth_attention_recent": shape.depth_recent}
    return Case(name, layout, lambda: build(shape), lambda: token_inputs(shape), keys)


def image_case(
    name: str, layout: str, build: Callable[[ImageShape], nn.Module], shape: ImageShape, left_out: tuple[str, ...] = ()
) -> Case:
    inputs = vit_inputs if layout == "official-deit" else dit_inputs
    keys = {"model.heads": shape.heads, "model.image": shape.image}
    if layout == "official-dit":
        keys |= {"model.classes": shape.classes, "model.learn_sigma": str(shape.learn_sigma).lower()}
    return Case(name, layout, lambda: build(shape), lambda: inputs(shape), keys, left_out)


def token_inputs(shape: LmShape) -> dict[str, Tensor]:
    return {"tokens": torch.randint(shape.vocab, (BATCH, shape.context))}


def vit_inputs(shape: ImageShape) -> dict[str, Tensor]:
    images = torch.randn(BATCH, shape.channels, shape.image, shape.image)
    return {"images": images, "labels": torch.randint(shape.classes, (BATCH,))}


def dit_inputs(shape: ImageShape) -> dict[str, Tensor]:
    """One sample has the label that stands for none, where there is one."""
    labels = torch.randint(shape.classes, (BATCH,))
    if shape.extra_label:
        labels[1] = shape.classes
    return {
        "latents": torch.randn(BATCH, shape.channels, shape.image, shape.image),
        "timesteps": torch.tensor([0, 999, 413])[:BATCH],
        "labels": labels,
        "target": torch.randn(BATCH, shape.out_channels, shape.image, shape.image),
    }


CASES = [
    lm_case("tied", "official-lm", OfficialLm, LM),
    lm_case("untied, no groups", "official-lm", OfficialLm, replace(UNTIED, kv_heads=4)),
    image_case("", "official-deit", OfficialDeit, DEIT),
    image_case("extra label, sigma", "official-dit", OfficialDit, DIT),
    image_case("no extra label, no sigma, no table", "official-dit", OfficialDit, PLAIN_DIT, ("pos_embed",)),
    lm_case("qkv, untied", "hf-siamese", HfSiamese, UNTIED),
    lm_case("qk, tied", "hf-siamese", HfSiamese, replace(LM, head_norm="qk")),
    lm_case("qk_full, untied", "hf-siamese", HfSiamese, replace(UNTIED, head_norm="qk_full")),
    lm_case("no head norms, untied", "hf-siamese", HfSiamese, replace(UNTIED, head_norm="none")),
    lm_case("untied", "hf-llama", llama, LLAMA),
    lm_case("tied", "hf-llama", llama, replace(LLAMA, tied=True, eps=1e-5)),
    lm_case("llama3", "hf-llama", llama, replace(LLAMA, scaling=RopeScaling("llama3", 8, 40))),
    lm_case("yarn", "hf-llama", llama, replace(LLAMA, scaling=RopeScaling("yarn", 4, 300))),
    lm_case("untied", "hf-olmo2", olmo2, OLMO2),
    lm_case("untied", "hf-olmo3", olmo2, OLMO3),
    lm_case("yarn of full layers", "hf-olmo3", olmo2, LONG_OLMO3),
    lm_case("stride 2", "archspace-olmo3", HfSiamese, replace(OLMO3, depth_stride=2)),
    lm_case("stride 3, recent 1, yarn", "archspace-olmo3", HfSiamese, replace(LONG_OLMO3, depth_stride=3, depth_recent=1)),
    lm_case("no depth attention, tied", "archspace-olmo3", HfSiamese, replace(LONG_OLMO3, tied=True)),
    lm_case("untied", "hf-qwen2", llama, replace(LLAMA, qkv_bias=True)),
    lm_case("tied, yarn", "hf-qwen2", llama, replace(LLAMA, qkv_bias=True, tied=True, scaling=RopeScaling("yarn", 2, 100))),
    lm_case("untied", "hf-mistral", llama, LLAMA),
    lm_case("a window", "hf-mistral", llama, replace(LLAMA, window=5)),
    lm_case("", "meta-llama", MetaLlama, LLAMA),
    lm_case("", "hf-gpt2", Gpt2, GPT2),
]


def randomise(model: nn.Module) -> None:
    """Gains and c1 around 1, biases around 0, matrices of about unit gain: nothing that hides a misplaced part."""
    with torch.no_grad():
        for name, value in model.named_parameters():
            noise = torch.randn(value.shape, dtype=value.dtype)
            if value.dim() > 1:
                value.copy_(noise / value.shape[-1] ** 0.5)
            elif name.endswith("bias"):
                value.copy_(0.3 * noise)
            else:
                value.copy_(1 + 0.3 * noise)
