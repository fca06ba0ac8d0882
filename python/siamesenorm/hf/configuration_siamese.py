"""The config of SiameseNorm language models for transformers: see modeling_siamese.py."""

import difflib
import re

from transformers import PretrainedConfig

# What the model section may leave out: the engine's own defaults.
DEFAULTS = {
    "family": "lm", "residual": "siamese", "width": 256, "blocks": 6, "heads": 4, "kv_heads": 0, "ffn": "swiglu",
    "ffn_width": 0, "vocab": 256, "tied": True, "context": 256, "window": 0, "window_pattern": "S",
    "positions": "auto", "rope_theta": 10000.0, "rope_scaling": "none", "rope_scaling_layers": "all", "bias": False,
    "qkv_bias": False, "norm": "rms", "norm_eps": 1e-5, "norm_alpha": 0.5, "attention_norm": "scheme",
    "value_residual": "none", "depth_attention_stride": 0, "depth_attention_recent": 0,
}  # fmt: skip

# Of the engine's other families, or acting in its training alone. They change nothing here, and are let through because
# `siamese convert --to hf` writes the whole section.
WITHOUT_EFFECT = (
    "experts", "experts_per_token", "shared_width", "renormalise", "image", "patch", "channels", "classes", "dropout",
    "drop_path", "label_dropout", "learn_sigma",
)  # fmt: skip

CHOICES = {
    "ffn": ("swiglu", "gelu", "gelu_tanh"),
    "positions": ("rope", "learned"),
    "rope_scaling_layers": ("all", "full"),
    "attention_norm": ("scheme", "none", "qk", "qk_full", "qkv"),
}

PACKAGE = "the package siamesenorm has it"


def check_model(model: dict) -> None:
    """ValueError for a key that nobody knows, and for one whose value no class of ours under transformers computes."""
    known = [*DEFAULTS, *WITHOUT_EFFECT]
    for key in model:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            raise ValueError(f"model.{key}: unknown key" + (f" (did you mean 'model.{near[0]}'?)" if near else ""))
    for key, choices in CHOICES.items():
        if model[key] not in choices:
            raise ValueError(f"model.{key}: expected one of {', '.join(choices)}, got {model[key]!r}")
    for key in ("value_residual", "depth_attention_stride"):
        if model[key] != DEFAULTS[key]:
            raise ValueError(f"model.{key}: expected {DEFAULTS[key]}, got {model[key]}")
    window, pattern = model["window"], model["window_pattern"]
    if not window or "S" not in (pattern * model["blocks"])[: model["blocks"]]:
        return
    if window < model["context"]:
        raise ValueError(
            f"model.window: expected 0, or at least model.context ({model['context']}), got {window} "
            f"with model.window_pattern {pattern}"
        )
    if model["rope_scaling"] != "none" and model["rope_scaling_layers"] != "all":
        raise ValueError(f"model.rope_scaling_layers: expected all, got {model['rope_scaling_layers']!r}")


def scheme_options(text: str) -> tuple[str, dict[str, str]]:
    """siamese(x=hybrid, depth_scale=none) -> its name and what it says; ValueError for what this file has not."""
    found = re.fullmatch(r"\s*(\w+)\s*(?:\(([^()]*)\))?\s*", text)
    name = found.group(1) if found else text
    known = {
        "pre": {},
        "siamese": {
            "x": ("post", "hybrid"),
            "form": ("read", "write"),
            "input_norm": ("true", "false"),
            "depth_scale": ("block", "sublayer", "layer", "none"),
            "final_norm": ("true", "false"),
        },
    }
    if name not in known:
        raise ValueError(f"model.residual: expected pre or siamese(...), got {text!r}: {PACKAGE}")
    options = {key: values[0] for key, values in known[name].items()}
    given = {}
    for word in filter(None, ((found.group(2) or "") if found else "").replace(" ", "").split(",")):
        key, _, value = word.partition("=")
        if value not in known[name].get(key, ()):
            raise ValueError(f"model.residual: unknown option {word!r} in {text!r}")
        given[key] = value
    if given.get("form") == "write":
        options["final_norm"] = "false"
    options |= given
    if name == "siamese" and options["x"] == "hybrid" and options["form"] == "write":
        raise ValueError(f"model.residual: x=hybrid has no form=write, got {text!r}")
    return name, options


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
        check_model(self.model)
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
