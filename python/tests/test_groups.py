"""Parameter groups by kind, and initial weights with a scheme's hints."""

from __future__ import annotations

import pytest
import siamesenorm as sn
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5, 8)
        self.attention = nn.MultiheadAttention(8, 2)
        self.norm = nn.LayerNorm(8)
        self.stack = sn.ResidualStack("hc", width=8, blocks=1)


def test_the_kind_decides():
    block = Block()
    kinds = sn.parameter_kinds(block)
    assert kinds["table.weight"] == "embedding"
    assert kinds["attention.in_proj_weight"] == "linear" and kinds["attention.in_proj_bias"] == "bias"
    assert kinds["norm.weight"] == kinds["norm.bias"] == "norm"
    assert kinds["stack.close.norm.weight"] == "norm"
    assert "scalar" in kinds.values(), "hyper-connections have learned scalars"
    groups = sn.param_groups(block, weight_decay=0.2, decay=("linear", "embedding"), lr=1.0)
    assert [group["kind"] for group in groups] == [kind for kind in sn.KINDS if kind in kinds.values()]
    for group in groups:
        assert group["weight_decay"] == (0.2 if group["kind"] in ("linear", "embedding") else 0.0)
    assert sum(len(group["params"]) for group in groups) == len(list(block.parameters()))
    torch.optim.AdamW(groups)


def test_who_is_unknown_is_named():
    module = nn.Module()
    module.gain = nn.Parameter(torch.ones(3))
    with pytest.raises(ValueError, match="gain"):
        sn.param_groups(module)
    assert sn.param_groups(module, kinds={"gain": "norm"})[0]["weight_decay"] == 0.0
    with pytest.raises(ValueError, match="other"):
        sn.param_groups(module, kinds={"gain": "norm", "other": "norm"})
    with pytest.raises(ValueError, match="wrong"):
        sn.param_groups(module, kinds={"gain": "wrong"})
    with pytest.raises(ValueError, match="wrong"):
        sn.param_groups(module, kinds={"gain": "norm"}, decay=("wrong",))


@pytest.mark.parametrize("scheme", ["pre", "deepnorm", "lns", "span"])
def test_hints_reach_the_weights(scheme):
    width, blocks = 64, 4
    stack = sn.ResidualStack(scheme, width=width, blocks=blocks)
    plain = sn.ResidualStack("pre", width=width, blocks=blocks)
    assert plain[0].hints == (("none", (1.0, 1.0, 1.0, True)))
    for site in (4, 5):
        hints = stack[site].hints.branch_init
        layers = [nn.Linear(width, width) for _ in range(4)]
        q, k, v, o = layers
        twins = [nn.Linear(width, width) for _ in range(4)]
        sn.init_(stack, site, inputs=[q, k], value=v, output=o, rule="normal", std=0.02)
        sn.init_(plain, site, inputs=twins[:2], value=twins[2], output=twins[3], rule="normal", std=0.02)
        into = hints.ffn_input if site % 2 else 1.0
        for ours, theirs, factor in zip(layers, twins, (into, into, hints.value, hints.output), strict=True):
            assert torch.allclose(ours.weight, theirs.weight * factor)
            assert not ours.bias.any()
        assert abs(twins[0].weight.std().item() - 0.02) < 2e-3


def test_depth_factor_and_fused_rows():
    stack = sn.ResidualStack("pre", width=64, blocks=8)
    out, qkv, alone = nn.Linear(64, 64), nn.Linear(64, 192), nn.Linear(64, 192)
    sn.init_(stack, 0, inputs=[qkv], output=out)
    assert abs(out.weight.std().item() / (qkv.weight.std().item() / 4) - 1) < 0.1, "1 / sqrt(2 blocks)"
    deep = sn.ResidualStack("deepnorm", width=64, blocks=8)
    sn.init_(deep, 0, inputs=[alone], value=(alone, slice(128, 192)))
    factor = deep[0].hints.branch_init.value
    assert factor != 1
    assert torch.allclose(alone.weight[128:], qkv.weight[128:] * factor)
    assert torch.equal(alone.weight[:128], qkv.weight[:128])
    with pytest.raises(ValueError, match="rule"):
        sn.init_(stack, 0, inputs=[qkv], rule="wrong")
