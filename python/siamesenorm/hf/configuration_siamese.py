"""The config of SiameseNorm language models for transformers: see modeling_siamese.py."""

from transformers import PretrainedConfig

# What the model section may leave out: the engine's own defaults.
DEFAULTS = {
    "family": "lm", "residual": "siamese", "width": 256, "blocks": 6, "heads": 4, "kv_heads": 0, "ffn": "swiglu",
    "ffn_width": 0, "vocab": 256, "tied": True, "context": 256, "window": 0, "window_pattern": "S",
    "positions": "auto", "rope_theta": 10000.0, "rope_scaling": "none", "rope_scaling_layers": "all", "bias": False,
    "qkv_bias": False, "norm": "rms", "norm_eps": 1e-5, "attention_norm": "scheme", "value_residual": "none",
    "depth_attention_stride": 0, "depth_attention_recent": 0,
}  # fmt: skip


class SiameseConfig(PretrainedConfig):
    """`model`: the engine's model section, as in its config.yaml. The usual names of transformers read from it."""

    model_type = "siamesenorm"
    keys_to_ignore_at_inference = ("past_key_values",)

    def __init__(self, model: dict | None = None, **kwargs):
        self.model = {**DEFAULTS, **(model or {})}
        self.model["kv_heads"] = self.model["kv_heads"] or self.model["heads"]
        self.model["ffn_width"] = self.model["ffn_width"] or 4 * self.model["width"]
        if self.model["positions"] == "auto":
            self.model["positions"] = "rope"
        for key in ("value_residual", "depth_attention_stride"):
            if self.model[key] != DEFAULTS[key]:
                raise ValueError(f"model.{key}: expected {DEFAULTS[key]}, got {self.model[key]}")
        if 0 < self.model["window"] < self.model["context"]:
            raise ValueError(f"model.window: expected 0, or at least model.context, got {self.model['window']}")
        kwargs.pop("tie_word_embeddings", None)  # the model section says it
        super().__init__(**kwargs)
        self.tie_word_embeddings = self.model["tied"]

    hidden_size = property(lambda self: self.model["width"])
    num_hidden_layers = property(lambda self: self.model["blocks"])
    num_attention_heads = property(lambda self: self.model["heads"])
    num_key_value_heads = property(lambda self: self.model["kv_heads"])
    head_dim = property(lambda self: self.model["width"] // self.model["heads"])
    intermediate_size = property(lambda self: self.model["ffn_width"])
    max_position_embeddings = property(lambda self: self.model["context"])

    @property
    def vocab_size(self) -> int:
        return self.model["vocab"]

    @vocab_size.setter
    def vocab_size(self, size: int) -> None:
        self.model["vocab"] = size
