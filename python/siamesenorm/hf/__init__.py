"""Models of transformers with any residual scheme: SiameseConfig and SiameseForCausalLM, known to the Auto classes.

    import siamesenorm.hf
    model = AutoModelForCausalLM.from_pretrained("folder")     # of `siamese convert --to hf`, or of save_pretrained

The two files that `siamese convert --to hf` writes are those of this folder. What they spell out for Pre-Norm and
SiameseNorm, the engine's own junctions do here, for every scheme.
"""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM

from .._native import binding
from ..stack import Junction, ResidualStack
from . import modeling_siamese
from .configuration_siamese import SiameseConfig

__all__ = ["SiameseConfig", "SiameseForCausalLM"]


class EngineScheme:
    """What modeling_siamese asks of a scheme, from a ResidualStack."""

    def __init__(self, model: dict) -> None:
        self.stack = ResidualStack(
            model["residual"], width=model["width"], blocks=model["blocks"], norm=model["norm"], eps=model["norm_eps"],
            norm_alpha=model["norm_alpha"] if model["norm"] in ("dyt", "derf") else None, bias=model["bias"],
            causal=True,
        )  # fmt: skip
        self.open = lambda: self.stack.open
        self.close = lambda: self.stack.close

    def attention_norm(self, site: int) -> str:
        return self.stack[site].hints.attention_norm

    def junction(self, site: int) -> Junction:
        return self.stack[site]


class SiameseForCausalLM(modeling_siamese.SiameseForCausalLM):
    """A language model of the engine under transformers: any scheme, the engine's junctions.

    config.model is the engine's `model` section; tensors have the engine's names. The junctions stay in float32, and so
    do the streams, whatever type the other weights are loaded in.
    """

    scheme_class = EngineScheme
    scales_rope = True
    _keep_in_fp32_modules_strict = ("open", "close", "attention_junction", "ffn_junction")

    def __init__(self, config: SiameseConfig) -> None:
        model = config.model
        self._scaled = None
        if model["rope_scaling"] != "none":
            self._scaled = binding().rope_frequencies(config.head_dim, model["rope_theta"], model["rope_scaling"])
        super().__init__(config)

    def frequencies(self, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, float]:
        """Of RoPE [head_dim / 2] and the factor on cos and sin: with rope_scaling, those that the engine computes."""
        if self._scaled is None:
            return super().frequencies(device, dtype)
        frequencies, magnitude = self._scaled
        return torch.tensor(frequencies, dtype=dtype, device=device), magnitude


AutoConfig.register(SiameseConfig.model_type, SiameseConfig)
AutoModelForCausalLM.register(SiameseConfig, SiameseForCausalLM)
