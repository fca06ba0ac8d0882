"""Small models of layout hf, of everything the modelling file has: all options of siamese, pre, attention norms,
positions, feed-forward branches, biases, tied and untied heads, grouped heads."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import types
from pathlib import Path

import torch
from torch import Tensor, nn

ROOT = Path(__file__).resolve().parents[2]
CODE = ROOT / "python" / "siamesenorm" / "hf"
BINARY = Path(os.environ.get("SIAMESE_BINARY", ROOT / "build" / "release" / "siamese"))

SMALL = {
    "family": "lm", "residual": "siamese", "width": 24, "blocks": 3, "heads": 4, "kv_heads": 2, "ffn": "swiglu",
    "ffn_width": 40, "vocab": 37, "tied": True, "context": 16, "positions": "rope", "rope_theta": 700.0, "bias": False,
    "norm": "rms", "norm_eps": 1e-5, "attention_norm": "scheme",
}  # fmt: skip
GPT2 = {"norm": "layer", "bias": True, "ffn": "gelu_tanh", "positions": "learned", "kv_heads": 4}

CASES = {
    "pre": {"residual": "pre"},
    "pre, as GPT-2": {"residual": "pre", **GPT2},
    "pre, qk": {"residual": "pre", "attention_norm": "qk", "tied": False},
    "siamese": {},
    "siamese, as GPT-2, exact gelu": {**GPT2, "ffn": "gelu", "tied": False},
    "siamese, qk_full": {"attention_norm": "qk_full"},
    "siamese, qkv": {"attention_norm": "qkv"},
    "undamped": {"residual": "siamese(depth_scale=none)"},
    "damped by sublayer, no input norm": {"residual": "siamese(input_norm=false, depth_scale=sublayer)"},
    "damped by layer, no final norm": {"residual": "siamese(depth_scale=layer, final_norm=false)"},
    "neither": {"residual": "siamese(input_norm=false, final_norm=false)", "norm": "layer"},
    "hybrid": {"residual": "siamese(x=hybrid)"},
    "hybrid, as GPT-2, all options": {
        "residual": "siamese(x=hybrid, input_norm=false, depth_scale=layer, final_norm=false)", **GPT2,
    },
    "hybrid without norms of heads": {"residual": "siamese(x=hybrid)", "attention_norm": "none"},
    "write": {"residual": "siamese(form=write)"},
    "Algorithm 1": {"residual": "siamese(form=write, input_norm=false, depth_scale=none)"},
    "write, final norm, as GPT-2": {"residual": "siamese(form=write, final_norm=true)", **GPT2},
}  # fmt: skip


def modelling() -> types.ModuleType:
    """The modelling file by itself, without the package around it."""
    if "hf_code" not in sys.modules:
        package = types.ModuleType("hf_code")
        package.__path__ = [str(CODE)]
        sys.modules["hf_code"] = package
    return importlib.import_module("hf_code.modeling_siamese")


def randomise(model: nn.Module) -> None:
    """Gains around 1, biases around 0, matrices of about unit gain: nothing that hides a misplaced part."""
    with torch.no_grad():
        for name, value in model.named_parameters():
            noise = torch.randn(value.shape)
            if value.dim() > 1:
                value.copy_(noise / value.shape[-1] ** 0.5)
            else:
                value.copy_(0.3 * noise if name.endswith("bias") else 1 + 0.3 * noise)


def build(case: str, seed: int = 0) -> nn.Module:
    """The model of a case with random weights."""
    code = modelling()
    torch.manual_seed(seed)
    model = code.SiameseForCausalLM(code.SiameseConfig(model={**SMALL, **CASES[case]}))
    randomise(model)
    return model.eval()


def siamese(*arguments: object) -> str:
    words = [str(BINARY), *map(str, arguments)]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"{' '.join(words)}: {run.stderr}"
    return run.stdout


def relative_error(ours: Tensor, theirs: Tensor) -> float:
    scale = theirs.abs().max().item()
    return (ours.double() - theirs.double()).abs().max().item() / (scale or 1.0)
