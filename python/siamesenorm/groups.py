"""What kind a parameter is, and what follows from it: groups for an optimizer, initial values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ._native import binding
from .errors import UsageError
from .stack import ResidualStack

KINDS = ("linear", "bias", "norm", "embedding", "scalar", "stream_mix")
"""linear: matrices. norm: gains and shifts of norms (and c1 of siamese(x=hybrid)). stream_mix: weights that mix
streams (hyper-connections)."""

_PROJECTIONS = (nn.Linear, nn.Bilinear, nn.modules.conv._ConvNd, nn.MultiheadAttention)


def parameter_kinds(module: nn.Module, kinds: Mapping[str, str] | None = None) -> dict[str, str]:
    """The kind of every parameter, by name.

    Parameters of this package know theirs. Others follow from the module that owns them: linear layers, convolutions
    and attention (weight: linear, bias: bias), embeddings, and whatever is called a Norm. For the rest `kinds` has to
    say, by name; ValueError lists those that nobody knows.
    """
    found: dict[str, str] = {}
    unknown: list[str] = []
    given = dict(kinds or {})
    for kind in given.values():
        if kind not in KINDS:
            raise UsageError(f"kinds: expected one of {', '.join(KINDS)}, got {kind!r}")
    seen: set[int] = set()
    for prefix, owner in module.named_modules():
        for name, parameter in owner.named_parameters(recurse=False):
            full = f"{prefix}.{name}" if prefix else name
            if id(parameter) in seen:
                continue
            seen.add(id(parameter))
            known = given.pop(full) if full in given else _kind_in(owner, name)
            if known is None:
                unknown.append(full)
            else:
                found[full] = known
    if given:
        raise UsageError(f"kinds: expected names of parameters, got also {', '.join(given)}")
    if unknown:
        raise UsageError(f"parameters of unknown kind: {', '.join(unknown)}: say which in kinds={{name: kind}}")
    return found


def _kind_in(owner: nn.Module, name: str) -> str | None:
    own = getattr(owner, "kinds", None)
    if isinstance(own, dict) and name in own:
        return str(own[name])
    if isinstance(owner, _PROJECTIONS) or type(owner).__name__ == "Conv1D":
        return "bias" if "bias" in name else "linear"
    if isinstance(owner, (nn.Embedding, nn.EmbeddingBag)):
        return "embedding"
    return "norm" if "Norm" in type(owner).__name__ else None


def param_groups(
    module: nn.Module,
    *,
    weight_decay: float = 0.1,
    decay: Iterable[str] = ("linear",),
    kinds: Mapping[str, str] | None = None,
    **options: Any,
) -> list[dict[str, Any]]:
    """Groups for an optimizer, one for each kind: `weight_decay` for the kinds in `decay`, 0 for the others.

    The kind decides, never a name or the number of dimensions. `options` (lr, ...) go into every group;
    `group["kind"]` says whose it is. Parameters without a gradient are left out.
    """
    decay = tuple(decay)
    for kind in decay:
        if kind not in KINDS:
            raise UsageError(f"decay: expected kinds among {', '.join(KINDS)}, got {kind!r}")
    by_name = dict(module.named_parameters())
    members: dict[str, list[nn.Parameter]] = {kind: [] for kind in KINDS}
    for name, kind in parameter_kinds(module, kinds).items():
        if by_name[name].requires_grad:
            members[kind].append(by_name[name])
    return [
        {"params": list_, "kind": kind, "weight_decay": weight_decay if kind in decay else 0.0, **options}
        for kind, list_ in members.items()
        if list_
    ]


def init_(
    stack: ResidualStack,
    site: int,
    *,
    inputs: Iterable[nn.Linear] = (),
    value: nn.Linear | tuple[nn.Linear, slice] | None = None,
    output: nn.Linear | None = None,
    rule: str = "full_megatron",
    std: float = 0.0,
    cut: float = 3.0,
    seed: int = 0,
) -> None:
    """Fresh weights for the sublayer at a site: the engine's init rule, and what the scheme asks for (`hints`).

    inputs: layers that take the branch input (q and k; or up and gate of a feed-forward branch, which get the scheme's
    factor for these). value: the value projection, or (layer, rows) of a fused q k v layer that stands in `inputs`.
    output: the layer back to the streams. rule: full_megatron, mitchell, normal, xavier (docs/config.md, init.rule);
    std 0 takes the rule's own; normals are cut at `cut` standard deviations. Biases become 0.
    Values depend on the seed, the site and the order of the layers alone.
    """
    junction = stack[site]
    hints = junction.hints.branch_init
    place = junction.site

    def fill(layer: nn.Linear, role: str, factor: float) -> None:
        name = f"blocks.{place.block}.{place.kind}.{role}"
        back = role == "output"
        fresh = binding().initial_weight(
            rule, std, cut, stack.width, stack.blocks_count, name, seed, list(layer.weight.shape), back, place.block,
            hints.depth_factor,
        )  # fmt: skip
        _set(layer, fresh * factor)

    of_ffn = hints.ffn_input if place.kind == "ffn" else 1.0
    for number, layer in enumerate(inputs):
        fill(layer, f"input{number}", of_ffn)
    if isinstance(value, tuple):
        layer, rows = value
        with torch.no_grad():
            layer.weight[rows] *= hints.value
    elif value is not None:
        fill(value, "value", hints.value)
    if output is not None:
        fill(output, "output", hints.output)


def _set(layer: nn.Linear, weight: Tensor) -> None:
    with torch.no_grad():
        layer.weight.copy_(weight)
        if layer.bias is not None:
            layer.bias.zero_()
