"""Models of transformers with any residual scheme: SiameseConfig and SiameseForCausalLM, known to the Auto classes.

    import siamesenorm.hf
    model = AutoModelForCausalLM.from_pretrained("folder")     # of `siamese convert --to hf`, or of save_pretrained

The two files that `siamese convert --to hf` writes are those of this folder. What they spell out for Pre-Norm and
SiameseNorm, the engine's own junctions do here, for every scheme.
"""

from __future__ import annotations

from transformers import AutoConfig, AutoModelForCausalLM

from ..stack import Junction, ResidualStack
from . import modeling_siamese
from .configuration_siamese import SiameseConfig

__all__ = ["SiameseConfig", "SiameseForCausalLM"]


class EngineScheme:
    """What modeling_siamese asks of a scheme, from a ResidualStack."""

    def __init__(self, model: dict) -> None:
        self.stack = ResidualStack(
            model["residual"], width=model["width"], blocks=model["blocks"], norm=model["norm"], eps=model["norm_eps"],
            bias=model["bias"], causal=True,
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
    _keep_in_fp32_modules_strict = ("open", "close", "attention_junction", "ffn_junction")


AutoConfig.register(SiameseConfig.model_type, SiameseConfig)
AutoModelForCausalLM.register(SiameseConfig, SiameseForCausalLM)
