"""SiameseNorm (arXiv 2602.08064) and Pre-Norm language models for transformers, in plain PyTorch.

`siamese convert --to hf` writes this file and configuration_siamese.py beside the weights; no more is needed to load
them:

    AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True)

The equations of the two schemes, with LN, P, Q, I, F norms, G_i the sublayer at site i (attention of block l is site
2 l, its feed-forward branch site 2 l + 1), E the embedding, c_i a fixed number (option depth_scale):

    pre                   h = E;  h <- h + G_i( LN_i(h) );  output = LN(h)
    siamese               X = Y = E
      read                X <- P_i(X);  input = I_i( X + Q_i(Y) )
      write               X <- X + O / c_i;  Y <- Y + O                     O = G_i(input)
      close               output = F( P(X) + Q(Y) )
    siamese(form=write)   X = Y = E
      read                input = I_i( X + Q_i(Y) )
      write               X <- P_i( X + O / c_i );  Y <- Y + O
      close               output = X + Q(Y), with final_norm=true F of it
    siamese(x=hybrid)     as siamese, but attention reads c1 * X + Q_i(Y), c1 learned, and leaves X as it is

input_norm=false leaves out I, final_norm=false F. Names of tensors and the section `model` of the config are those of
the C++ engine this file belongs to, whose `siamese convert --from hf` takes the weights back, bit for bit. Streams and
norms are computed in float32 at least, whatever the type of the weights.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import DynamicCache, GenerationMixin, PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_outputs import CausalLMOutputWithPast

from .configuration_siamese import PACKAGE, SiameseConfig, scheme_options

Streams = tuple[Tensor, ...]

# ---- Schemes


class Norm(nn.Module):
    """RMSNorm, or LayerNorm, of the last dimension; float32 at least."""

    def __init__(self, width: int, eps: float, layer: bool = False, bias: bool = False):
        super().__init__()
        self.eps, self.layer = eps, layer
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if layer and bias else None

    def forward(self, x: Tensor) -> Tensor:
        x = x.to(torch.promote_types(x.dtype, torch.float32))
        if self.layer:
            x = x - x.mean(-1, keepdim=True)
        x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight
        return x if self.bias is None else x + self.bias


def stream_norm(model: dict) -> Norm:
    if model["norm"] not in ("rms", "layer"):
        raise ValueError(f"model.norm: expected rms or layer, got {model['norm']!r}: {PACKAGE}")
    return Norm(model["width"], model["norm_eps"], model["norm"] == "layer", model["bias"])


class Open(nn.Module):
    """Every stream starts as the embedding."""

    def __init__(self, streams: int):
        super().__init__()
        self.streams = streams

    def forward(self, embedding: Tensor) -> Streams:
        return (embedding,) * self.streams


class PreJunction(nn.Module):
    def __init__(self, model: dict):
        super().__init__()
        self.norm = stream_norm(model)

    def read(self, streams: Streams) -> tuple[Streams, Tensor]:
        return streams, self.norm(streams[0])

    def write(self, streams: Streams, branch: Tensor) -> Streams:
        return (streams[0] + branch,)


class PreClose(nn.Module):
    def __init__(self, model: dict):
        super().__init__()
        self.norm = stream_norm(model)

    def forward(self, streams: Streams) -> Tensor:
        return self.norm(streams[0])


class SiameseJunction(nn.Module):
    def __init__(self, model: dict, options: dict[str, str], site: int):
        super().__init__()
        block = site // 2
        damping = {"block": 2 * (block + 1), "sublayer": site + 1, "layer": block + 1, "none": 1}
        self.c = math.sqrt(damping[options["depth_scale"]])
        self.writes_normed = options["form"] == "write"
        self.y_norm = stream_norm(model)
        if options["x"] == "hybrid" and site % 2 == 0:
            self.x_scale = nn.Parameter(torch.ones(model["width"]))
            return
        self.x_norm = stream_norm(model)
        if options["input_norm"] == "true":
            self.input_norm = stream_norm(model)

    def read(self, streams: Streams) -> tuple[Streams, Tensor]:
        x, y = streams
        if hasattr(self, "x_scale"):
            return streams, self.x_scale * x + self.y_norm(y)
        if not self.writes_normed:
            x = self.x_norm(x)
        merged = x + self.y_norm(y)
        return (x, y), self.input_norm(merged) if hasattr(self, "input_norm") else merged

    def write(self, streams: Streams, branch: Tensor) -> Streams:
        x, y = streams
        x = x + branch / self.c
        return (self.x_norm(x) if self.writes_normed else x), y + branch


class SiameseClose(nn.Module):
    def __init__(self, model: dict, options: dict[str, str]):
        super().__init__()
        if options["form"] == "read":
            self.x_norm = stream_norm(model)
        self.y_norm = stream_norm(model)
        if options["final_norm"] == "true":
            self.norm = stream_norm(model)

    def forward(self, streams: Streams) -> Tensor:
        x, y = streams
        merged = (self.x_norm(x) if hasattr(self, "x_norm") else x) + self.y_norm(y)
        return self.norm(merged) if hasattr(self, "norm") else merged


class PlainScheme:
    """What a model asks of its scheme. The package siamesenorm has the same for every scheme."""

    def __init__(self, model: dict):
        self.model = model
        self.name, self.options = scheme_options(model["residual"])

    def attention_norm(self, site: int) -> str:
        return "qkv" if self.options.get("x") == "hybrid" else "none"

    def open(self) -> nn.Module:
        return Open(1 if self.name == "pre" else 2)

    def junction(self, site: int) -> nn.Module:
        return PreJunction(self.model) if self.name == "pre" else SiameseJunction(self.model, self.options, site)

    def close(self) -> nn.Module:
        return PreClose(self.model) if self.name == "pre" else SiameseClose(self.model, self.options)


# ---- Sublayers


class Visible:
    """Which keys the queries of one pass see: those before them that are no padding."""

    def __init__(self, past: int, attention_mask: Tensor | None):
        self.past, self.given, self.made = past, attention_mask, {}

    def __call__(self, q: Tensor, keys: int) -> tuple[Tensor | None, bool]:
        """A mask or None, and whether `causal` says it all."""
        tokens = q.shape[2]
        if self.given is None and keys == self.past + tokens and (tokens == 1 or self.past == 0):
            return None, tokens > 1
        if self.given is not None and self.given.dim() == 4:
            return self.given, False
        if keys not in self.made:
            places = self.past + torch.arange(tokens, device=q.device)[:, None]
            of_keys = torch.arange(keys, device=q.device)
            mask = (of_keys <= places)[None, None]
            if self.given is not None:
                there = self.given[:, :keys].bool().to(q.device)
                there = F.pad(there, (0, keys - there.shape[1]), value=True)[:, None, None]
                mask = mask & there | (of_keys == places)  # a row of padding sees itself: no row is empty
            self.made[keys] = mask
        return self.made[keys], False


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The first half of a head is paired with the second."""
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Attention(nn.Module):
    def __init__(self, model: dict, norm: str, block: int):
        super().__init__()
        width, self.heads, self.kv_heads, self.block = model["width"], model["heads"], model["kv_heads"], block
        self.head_dim, kv_width = width // self.heads, self.kv_heads * (width // self.heads)
        self.rows = (width, kv_width, kv_width)
        self.full = norm == "qk_full"
        self.qkv = nn.Linear(width, sum(self.rows), bias=model["bias"] or model["qkv_bias"])
        self.out = nn.Linear(width, width, bias=model["bias"])
        if norm in ("qk", "qkv", "qk_full"):
            self.q_norm = Norm(width if self.full else self.head_dim, model["norm_eps"])
            self.k_norm = Norm(kv_width if self.full else self.head_dim, model["norm_eps"])
        if norm == "qkv":
            self.v_norm = Norm(self.head_dim, model["norm_eps"])

    def normed(self, name: str, part: Tensor) -> Tensor:
        return getattr(self, name)(part).to(part.dtype) if hasattr(self, name) else part

    def forward(self, x: Tensor, rotary: tuple[Tensor, Tensor] | None, visible: Visible, cache=None) -> Tensor:
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).split(self.rows, -1)
        if self.full:
            q, k = self.normed("q_norm", q), self.normed("k_norm", k)
        q, k, v = (part.view(batch, tokens, -1, self.head_dim).transpose(1, 2) for part in (q, k, v))
        if not self.full:
            q, k, v = self.normed("q_norm", q), self.normed("k_norm", k), self.normed("v_norm", v)
        if rotary is not None:
            q, k = (rotate(part, *rotary).to(v.dtype) for part in (q, k))
        if cache is not None:
            k, v = cache.update(k, v, self.block)
        mask, causal = visible(q, k.shape[2])
        group = self.heads // self.kv_heads
        k, v = (part.repeat_interleave(group, 1) if group > 1 else part for part in (k, v))
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))


# `in` is a word of Python and the name of a tensor, so that it is registered by its text.
class FeedForward(nn.Module):
    def __init__(self, model: dict):
        super().__init__()
        width, hidden, self.kind = model["width"], model["ffn_width"], model["ffn"]
        self.add_module("in", nn.Linear(width, 2 * hidden if self.kind == "swiglu" else hidden, bias=model["bias"]))
        self.out = nn.Linear(hidden, width, bias=model["bias"])

    def forward(self, x: Tensor) -> Tensor:
        hidden = getattr(self, "in")(x)
        if self.kind == "swiglu":
            up, gate = hidden.chunk(2, -1)
            return self.out(F.silu(gate) * up)
        return self.out(F.gelu(hidden, approximate="tanh" if self.kind == "gelu_tanh" else "none"))


class Block(GradientCheckpointingLayer):
    """Streams in, streams out: what wraps blocks (checkpointing, FSDP, device maps) sees every tensor."""

    def __init__(self, model: dict, scheme: PlainScheme, block: int):
        super().__init__()
        norm = scheme.attention_norm(2 * block) if model["attention_norm"] == "scheme" else model["attention_norm"]
        self.attention_junction = scheme.junction(2 * block)
        self.attention = Attention(model, norm, block)
        self.ffn_junction = scheme.junction(2 * block + 1)
        self.ffn = FeedForward(model)

    def forward(self, *streams: Tensor, dtype=None, rotary=None, visible=None, cache=None) -> Streams:
        streams, x = self.attention_junction.read(streams)
        streams = self.attention_junction.write(streams, self.attention(x.to(dtype), rotary, visible, cache))
        streams, x = self.ffn_junction.read(streams)
        return self.ffn_junction.write(streams, self.ffn(x.to(dtype)))


# ---- The model


class SiameseForCausalLM(PreTrainedModel, GenerationMixin):
    config_class = SiameseConfig
    scheme_class = PlainScheme
    scales_rope = False  # the package siamesenorm does
    supports_gradient_checkpointing = True
    _supports_sdpa = True
    _no_split_modules = ("Block",)

    def __init__(self, config: SiameseConfig):
        super().__init__(config)
        model = config.model
        if model["family"] != "lm":
            raise ValueError(f"model.family: expected lm, got {model['family']!r}")
        if model["rope_scaling"] != "none" and not self.scales_rope:
            raise ValueError(f"model.rope_scaling: expected none, got {model['rope_scaling']!r}: {PACKAGE}")
        scheme = self.scheme_class(model)
        self.embedding = nn.Embedding(model["vocab"], model["width"])
        if model["positions"] == "learned":
            self.positions = nn.Embedding(model["context"], model["width"])
        self.open = scheme.open()
        self.blocks = nn.ModuleList(Block(model, scheme, block) for block in range(model["blocks"]))
        self.close = scheme.close()
        if not model["tied"]:
            self.head = nn.Linear(model["width"], model["vocab"], bias=False)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
            if getattr(module, "bias", None) is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, Norm):
            nn.init.ones_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, SiameseJunction) and hasattr(module, "x_scale"):
            nn.init.ones_(module.x_scale)

    def get_input_embeddings(self) -> nn.Module:
        return self.embedding

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.embedding = value

    def get_output_embeddings(self) -> nn.Module | None:
        return getattr(self, "head", None)  # tied: the embedding's own matrix

    def set_output_embeddings(self, value: nn.Module) -> None:
        self.head = value

    def frequencies(self, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, float]:
        """Of RoPE [head_dim / 2], and what cos and sin are multiplied by."""
        size = self.config.head_dim
        exponents = torch.arange(0, size, 2, dtype=dtype, device=device) / size
        return self.config.model["rope_theta"] ** -exponents, 1.0

    def rotary(self, places: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Tables [batch, 1, tokens, head_dim / 2], computed in double and rounded once."""
        exact = torch.float32 if places.device.type == "mps" else torch.float64
        frequencies, magnitude = self.frequencies(places.device, exact)
        angles = places[:, None, :, None].to(exact) * frequencies
        return (magnitude * angles.cos()).to(dtype), (magnitude * angles.sin()).to(dtype)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        past_key_values=None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        logits_to_keep: int | Tensor = 0,
        **kwargs,
    ) -> CausalLMOutputWithPast:
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("expected input_ids or inputs_embeds, got " + ("none" if input_ids is None else "both"))
        x = self.embedding(input_ids) if inputs_embeds is None else inputs_embeds
        if past_key_values is None and (use_cache or (use_cache is None and not self.training)):
            past_key_values = DynamicCache()
        past = int(past_key_values.get_seq_length()) if past_key_values is not None else 0
        if position_ids is None:
            position_ids = past + torch.arange(x.shape[1], device=x.device)[None]
        if attention_mask is not None and attention_mask.dim() == 2 and not torch.compiler.is_compiling():
            attention_mask = None if bool(attention_mask.all()) else attention_mask

        model, dtype, rotary = self.config.model, self.embedding.weight.dtype, None
        wide = torch.promote_types(x.dtype, torch.float32)
        if model["positions"] == "learned":
            if past + x.shape[1] > model["context"]:
                raise ValueError(f"expected at most {model['context']} tokens, got {past + x.shape[1]}")
            x = x.to(wide) + self.positions(position_ids)
        else:
            rotary = self.rotary(position_ids, wide)
        streams = self.open(x.to(wide))
        visible = Visible(past, attention_mask)
        for block in self.blocks:
            streams = block(*streams, dtype=dtype, rotary=rotary, visible=visible, cache=past_key_values)
        hidden = self.close(streams)
        keep = slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep
        matrix = self.embedding.weight if model["tied"] else self.head.weight
        logits = F.linear(hidden[:, keep].to(matrix.dtype), matrix)
        loss = None
        if labels is not None:
            loss = self.loss_function(logits=logits, labels=labels, vocab_size=logits.shape[-1], **kwargs)
        return CausalLMOutputWithPast(loss=loss, logits=logits, past_key_values=past_key_values)
