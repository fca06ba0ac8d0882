"""`sn.patch(model, "siamese")`: the residual path of somebody else's model replaced, in place.

Known by their attributes: Llama, OLMo-2, Qwen2 and GPT-2 of transformers, the ViT of timm. A block keeps its attention
and its feed-forward branch, and all that is done to it from outside (positions, masks, caches, hooks, checkpointing);
its norms and additions make way for the junctions of a ResidualStack, which stand in the block as `attention_junction`
and `ffn_junction`. The first block opens the streams, the model's last norm is their close, and between blocks the
streams travel as a tuple where one tensor did.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from .errors import UsageError
from .scheme import Streams, canonical_scheme
from .stack import ResidualStack


class Patched(NamedTuple):
    """What `patch` did."""

    scheme: str
    """Canonical text of the new scheme."""
    kept: Literal["exact", "up to eps", "no"]
    """Whether the model computes what it did: the norms' values went where the scheme contains the old one."""


class _Kind(NamedTuple):
    """One architecture: where its blocks and norms are, and how a block is run."""

    blocks: str  # path from the model to its list of blocks
    final_norm: str
    norms: tuple[str, str]  # of a block: beside attention, beside the feed-forward branch
    scheme: str  # what the architecture is
    forward: Callable[..., Any]


def _open(block: Any, given: Any) -> Streams:
    return block.open(given) if isinstance(given, Tensor) else given


def _decoder_forward(self: Any, hidden_states: Any, *args: Any, **kwargs: Any) -> Streams:
    """Llama, OLMo-2, Qwen2: everything but the hidden states goes to attention."""
    streams, h = self.attention_junction.read(_open(self, hidden_states))
    streams = self.attention_junction.write(streams, self.self_attn(h, *args, **kwargs)[0])
    streams, h = self.ffn_junction.read(streams)
    return self.ffn_junction.write(streams, self.mlp(h))


def _gpt2_forward(
    self: Any, hidden_states: Any, past_key_values: Any = None, attention_mask: Any = None,
    encoder_hidden_states: Any = None, *args: Any, **kwargs: Any,
) -> Streams:  # fmt: skip
    if encoder_hidden_states is not None:
        raise UsageError("patch: expected a GPT-2 without cross-attention, got encoder_hidden_states")
    kwargs.pop("encoder_attention_mask", None)
    streams, h = self.attention_junction.read(_open(self, hidden_states))
    branch = self.attn(h, past_key_values=past_key_values, attention_mask=attention_mask, **kwargs)[0]
    streams = self.attention_junction.write(streams, branch)
    streams, h = self.ffn_junction.read(streams)
    return self.ffn_junction.write(streams, self.mlp(h))


def _vit_forward(self: Any, x: Any, *args: Any, **kwargs: Any) -> Streams:
    """timm: branch = scale(sublayer(input)); drop-path is the gate of a sample."""

    def gate(drop: nn.Module, branch: Tensor) -> Tensor | None:
        if not self.training or isinstance(drop, nn.Identity):
            return None
        return drop(branch.new_ones(branch.shape[0], 1, 1))

    streams, h = self.attention_junction.read(_open(self, x))
    branch = self.ls1(self.attn(h, *args, **kwargs))
    streams = self.attention_junction.write(streams, branch, gate(self.drop_path1, branch))
    streams, h = self.ffn_junction.read(streams)
    branch = self.ls2(self.mlp(h))
    return self.ffn_junction.write(streams, branch, gate(self.drop_path2, branch))


_DECODER = ("input_layernorm", "post_attention_layernorm")
_OLMO2 = ("post_attention_layernorm", "post_feedforward_layernorm")
_KINDS = {
    "Llama": _Kind("layers", "norm", _DECODER, "pre", _decoder_forward),
    "Qwen2": _Kind("layers", "norm", _DECODER, "pre", _decoder_forward),
    "Olmo2": _Kind("layers", "norm", _OLMO2, "olmo2", _decoder_forward),
    "GPT2": _Kind("h", "ln_f", ("ln_1", "ln_2"), "pre", _gpt2_forward),
    "VisionTransformer": _Kind("blocks", "norm", ("norm1", "norm2"), "pre", _vit_forward),
}
_BLOCK_PARTS = {
    _decoder_forward: ("self_attn", "mlp"),
    _gpt2_forward: ("attn", "mlp"),
    _vit_forward: ("attn", "mlp", "ls1", "ls2", "drop_path1", "drop_path2"),
}


def _find(model: nn.Module) -> tuple[nn.Module, _Kind]:
    """The part of `model` that has the blocks, and its kind."""
    for body in (model, *(getattr(model, name, None) for name in ("model", "transformer"))):
        if not isinstance(body, nn.Module):
            continue
        for name, kind in _KINDS.items():
            blocks = getattr(body, kind.blocks, None)
            if not (type(body).__name__.startswith(name) and isinstance(blocks, (nn.ModuleList, nn.Sequential))):
                continue
            needed = (*kind.norms, *_BLOCK_PARTS[kind.forward])
            if hasattr(body, kind.final_norm) and all(hasattr(block, part) for block in blocks for part in needed):
                return body, kind
    known = "Llama, OLMo-2, Qwen2 or GPT-2 of transformers, or a VisionTransformer of timm"
    raise UsageError(f"patch: expected {known} that was not patched before, got {type(model).__name__}")


def _norm_settings(norm: nn.Module) -> dict[str, Any]:
    """How a norm of theirs is called here."""
    layer = isinstance(norm, nn.LayerNorm)
    eps = next((getattr(norm, name) for name in ("variance_epsilon", "eps") if hasattr(norm, name)), None)
    weight = getattr(norm, "weight", None)
    if eps is None or not isinstance(weight, Tensor) or weight.dim() != 1:
        raise UsageError(f"patch: expected an RMSNorm or LayerNorm with a gain, got {type(norm).__name__}")
    return {"norm": "layer" if layer else "rms", "eps": float(eps), "bias": getattr(norm, "bias", None) is not None}


def patch(model: nn.Module, scheme: str) -> Patched:
    """Replaces the residual path of `model`, in place, by the junctions of `scheme`.

    From Pre-Norm (Llama, Qwen2, GPT-2, ViT) the function is kept where the scheme contains it, as `siamese upcycle`
    does: pre, lns, siamese (`input_norm=false, final_norm=false`: exact, else up to eps), siamese(x=hybrid), hc.
    OLMo-2 keeps it under olmo2. Any other scheme starts from its own initial gains: train it. Norms inside attention
    stay those of the model, whatever a scheme hints. `output_hidden_states` records streams, not one hidden state.

    UsageError for a model of another architecture, or for a scheme that does not exist; the model is then untouched.
    """
    scheme = canonical_scheme(scheme)
    body, kind = _find(model)
    blocks = list(getattr(body, kind.blocks))
    final = getattr(body, kind.final_norm)
    gains = [getattr(block, norm) for block in blocks for norm in kind.norms]
    settings = [_norm_settings(norm) for norm in (*gains, final)]
    if any(setting != settings[0] for setting in settings):
        raise UsageError("patch: expected norms of one kind and eps in the whole model")
    stack = ResidualStack(
        scheme, width=final.weight.shape[0], blocks=len(blocks), device=final.weight.device, dtype=final.weight.dtype,
        causal=kind.forward is not _vit_forward, **settings[0],
    )  # fmt: skip
    kept = _take_over(stack, kind.scheme, gains, final)
    forms: dict[type, type] = {}
    for number, block in enumerate(blocks):
        was = type(block)
        if was not in forms:
            forms[was] = type(was.__name__, (was,), {"forward": kind.forward, "__module__": was.__module__})
        for norm in kind.norms:
            delattr(block, norm)
        if number == 0:
            block.open = stack.open
        block.attention_junction = stack[2 * number]
        block.ffn_junction = stack[2 * number + 1]
        block.__class__ = forms[was]
    setattr(body, kind.final_norm, stack.close)
    return Patched(scheme, kept)


def _copy(target: Any, source: nn.Module, factor: float = 1.0) -> None:
    for name, value in target.named_parameters(recurse=False):
        value.copy_(getattr(source, name) * factor)


def _fill(target: Any, gain: float) -> None:
    for name, value in target.named_parameters(recurse=False):
        value.fill_(gain if name == "weight" else 0.0)


def _merge(place: Any, source: nn.Module, last: str) -> bool:
    """A place of siamese as Pre-Norm: X vanishes where it is read. Whether no norm follows the sum."""
    if hasattr(place, "x_norm"):
        _fill(place.x_norm, 0.0)
    elif hasattr(place, "x_scale"):
        place.x_scale.fill_(0.0)
    if hasattr(place, last):
        _fill(place.y_norm, 1.0)
        _copy(getattr(place, last), source)
        return False
    _copy(place.y_norm, source)
    return True


@torch.no_grad()
def _take_over(
    stack: ResidualStack, was: str, gains: list[nn.Module], final: nn.Module
) -> Literal["exact", "up to eps", "no"]:
    """The norms of the model go where the new scheme contains the old one (docs/upcycling.md)."""
    text = str(stack.scheme)
    name = text.split("(", maxsplit=1)[0]
    if was == "olmo2":
        if name != "olmo2":
            return "no"
        for site, norm in enumerate(gains):
            _copy(stack[site].output_norm, norm)
        _copy(stack.close.norm, final)
        return "exact"
    if name == "siamese" and "form=write" not in text:
        plain = [_merge(stack[site], norm, "input_norm") for site, norm in enumerate(gains)]
        return "exact" if _merge(stack.close, final, "norm") and all(plain) else "up to eps"
    post = float(text.partition("post=")[2].rstrip(")") or 0.25)  # of mixln: 0 blocks of it are Pre-Norm
    if name not in ("pre", "lns", "hc") and not (name == "mixln" and post * stack.blocks_count < 1):
        return "no"
    for site, norm in enumerate(gains):
        _copy(stack[site].norm, norm, math.sqrt(site // 2 + 1) if name == "lns" else 1.0)
    _copy(stack.close.norm, final)
    return "up to eps" if name == "hc" else "exact"
