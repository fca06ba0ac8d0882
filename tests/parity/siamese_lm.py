"""The language model of SiameseNorm ("hybrid_pre") under the names of its two published layouts. Streams X_0 = Y_0 = E;
in block l, with c = sqrt(2 (l + 1)):

    A = Attn(c1 * X + NYa(Y));                       X <- X + A / c;   Y <- Y + A
    X <- NF(X);   O = FFN(NI(X + NYf(Y)));           X <- X + O / c;   Y <- Y + O

and after the last block out = NE(NX(X) + NY(Y)), logits = out W^T.

Depth-Attention (ArchSpace): before attention of block l, of each token and key/value head, with q, k after norms and RoPE,

    a = softmax over j in S and l of mean_of_group(q_l) . k_j / sqrt(hd);   v'_l = sum over j in S of a_j v'_j + a_l v_l

with S the blocks j < l whose number the stride divides or that are among the `recent` last."""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from parts import RMSNorm, Record, RopeScaling, attend, next_token_loss, rope, silu, split_heads


@dataclass(frozen=True)
class LmShape:
    width: int
    blocks: int
    heads: int
    kv_heads: int
    ffn_width: int
    vocab: int
    context: int
    theta: float = 10000.0
    eps: float = 1e-5
    tied: bool = True
    head_norm: str = "qkv"
    qkv_bias: bool = False
    scaling: RopeScaling | None = None
    window: int = 0
    pattern: str = "S"  # of blocks, repeated: S has the window, F sees all
    scaled: str = "all"  # or "full": the rotary frequencies of blocks without the window only
    depth_stride: int = 0
    depth_recent: int = 0

    def of_block(self, index: int) -> "LmShape":
        """The window and frequencies of one block."""
        if self.window == 0 or self.pattern[index % len(self.pattern)] == "S":
            sliding = self.window > 0
            return replace(self, scaling=None if sliding and self.scaled == "full" else self.scaling)
        return replace(self, window=0)

    @property
    def head_width(self) -> int:
        return self.width // self.heads


def matrix(rows: int, cols: int) -> nn.Linear:
    return nn.Linear(cols, rows, bias=False)


class HybridLm(nn.Module):
    """The equations; a layout says which of its tensors plays which role."""

    def __init__(self, shape: LmShape):
        super().__init__()
        self.shape = shape

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor, Record]:
        """tokens [batch, tokens] -> logits, loss, record"""
        record = Record()
        x = y = self.embedding()[tokens]
        earlier: list[tuple[Tensor, Tensor]] = []  # k and v' of each block
        for index, block in enumerate(self.block_list()):
            c = math.sqrt(2 * (index + 1))
            normed = block.norm_of("NYa")(y)
            record.stream("X", x)
            record.stream("Y", y, normed)
            given = block.norm_of("c1") * x + normed
            out = self.attention(index, block, given, earlier)
            record.branch(given, out)
            x, y = x + out / c, y + out

            normed_x, normed = block.norm_of("NF")(x), block.norm_of("NYf")(y)
            record.stream("X", x, normed_x)
            record.stream("Y", y, normed)
            given = block.norm_of("NI")(normed_x + normed)
            out = block.feed_forward(given)
            record.branch(given, out)
            x, y = normed_x + out / c, y + out
        norm_x, norm_y, norm_end = self.final_norms()
        logits = norm_end(norm_x(x) + norm_y(y)) @ self.head().T
        return logits, next_token_loss(logits, tokens), record

    def attention(self, index: int, block: nn.Module, x: Tensor, earlier: list[tuple[Tensor, Tensor]]) -> Tensor:
        """Head norms (of the whole width for qk_full, else of each head), then RoPE on q and k."""
        shape = self.shape.of_block(index)
        q, k, v = block.qkv(x)
        if shape.head_norm == "qk_full":
            q, k = block.head_norm("q")(q), block.head_norm("k")(k)
        q, k, v = split_heads(q, shape.heads), split_heads(k, shape.kv_heads), split_heads(v, shape.kv_heads)
        if shape.head_norm in ("qk", "qkv"):
            q, k = block.head_norm("q")(q), block.head_norm("k")(k)
        if shape.head_norm == "qkv":
            v = block.head_norm("v")(v)
        q, k = (rope(part, shape.theta, shape.scaling) for part in (q, k))
        if shape.depth_stride:
            v = self.depth_attention(index, q, k, v, earlier)
            earlier.append((k, v))
        return block.attention_out(attend(q, k, v, causal=True, window=shape.window))

    def depth_attention(self, index: int, q: Tensor, k: Tensor, v: Tensor, earlier: list[tuple[Tensor, Tensor]]) -> Tensor:
        shape = self.shape
        mean = q.unflatten(1, (shape.kv_heads, -1)).mean(2)
        sources = [j for j in range(index) if j % shape.depth_stride == 0 or j >= index - shape.depth_recent]
        pairs = [earlier[j] for j in sources] + [(k, v)]
        scores = torch.stack([(mean * key).sum(-1, keepdim=True) for key, _ in pairs]) / math.sqrt(shape.head_width)
        return (scores.softmax(0) * torch.stack([value for _, value in pairs])).sum(0)


class OlmoBlock(nn.Module):
    ROLES = {"NYa": "attn_y_norm", "c1": "c1", "NF": "ff_norm", "NYf": "ff_y_norm", "NI": "ff_input_norm"}

    def __init__(self, shape: LmShape):
        super().__init__()
        d, self.kv_width = shape.width, shape.kv_heads * shape.head_width
        self.att_proj = matrix(d + 2 * self.kv_width, d)
        self.q_norm, self.k_norm, self.v_norm = (RMSNorm(shape.head_width, shape.eps) for _ in range(3))
        self.attn_out = matrix(d, d)
        self.attn_y_norm = RMSNorm(d, shape.eps)
        self.c1 = nn.Parameter(torch.empty(d))
        self.ff_norm, self.ff_y_norm, self.ff_input_norm = (RMSNorm(d, shape.eps) for _ in range(3))
        self.ff_proj = matrix(2 * shape.ffn_width, d)
        self.ff_out = matrix(d, shape.ffn_width)

    def norm_of(self, role: str) -> nn.Module | Tensor:
        return getattr(self, self.ROLES[role])

    def head_norm(self, letter: str) -> nn.Module:
        return getattr(self, f"{letter}_norm")

    def qkv(self, x: Tensor) -> tuple[Tensor, ...]:
        d = x.shape[-1]
        return self.att_proj(x).split((d, self.kv_width, self.kv_width), -1)

    def attention_out(self, x: Tensor) -> Tensor:
        return self.attn_out(x)

    def feed_forward(self, x: Tensor) -> Tensor:
        up, gate = self.ff_proj(x).chunk(2, -1)
        return self.ff_out(silu(gate) * up)


class OfficialLm(HybridLm):
    """transformer.wte, transformer.blocks.N, ..."""

    def __init__(self, shape: LmShape):
        super().__init__(shape)
        parts = {
            "wte": nn.Embedding(shape.vocab, shape.width),
            "blocks": nn.ModuleList(OlmoBlock(shape) for _ in range(shape.blocks)),
            **{name: RMSNorm(shape.width, shape.eps) for name in ("ln_f", "ln_y_f", "ln_final_f")},
        }
        if not shape.tied:
            parts["ff_out"] = matrix(shape.vocab, shape.width)
        self.transformer = nn.ModuleDict(parts)

    def embedding(self) -> Tensor:
        return self.transformer["wte"].weight

    def head(self) -> Tensor:
        return self.transformer["wte" if self.shape.tied else "ff_out"].weight

    def block_list(self) -> nn.ModuleList:
        return self.transformer["blocks"]

    def final_norms(self) -> tuple[nn.Module, ...]:
        return tuple(self.transformer[name] for name in ("ln_f", "ln_y_f", "ln_final_f"))


def self_attention(shape: LmShape) -> nn.ModuleDict:
    """q_proj, k_proj, v_proj, o_proj and the norms that shape.head_norm asks for."""
    d, kv_width, hd = shape.width, shape.kv_heads * shape.head_width, shape.head_width
    rows = {"q_proj": d, "k_proj": kv_width, "v_proj": kv_width, "o_proj": d}
    parts = {name: nn.Linear(d, count, bias=shape.qkv_bias and name != "o_proj") for name, count in rows.items()}
    letters = {"qkv": "qkv", "qk": "qk", "qk_full": "qk", "none": ""}[shape.head_norm]
    for letter in letters:
        whole = d if letter == "q" else kv_width
        parts[f"{letter}_norm"] = RMSNorm(whole if shape.head_norm == "qk_full" else hd, shape.eps)
    return nn.ModuleDict(parts)


def gated_mlp(shape: LmShape) -> nn.ModuleDict:
    d, f = shape.width, shape.ffn_width
    return nn.ModuleDict({"gate_proj": matrix(f, d), "up_proj": matrix(f, d), "down_proj": matrix(d, f)})


class HfBlock(nn.Module):
    ROLES = {
        "NYa": "siamese_attn_pre_norm",
        "c1": "siamese_hybrid_attn_scale",
        "NF": "pre_mlp_layernorm",
        "NYf": "siamese_mlp_pre_norm",
        "NI": "siamese_mlp_input_norm",
    }

    def __init__(self, shape: LmShape):
        super().__init__()
        self.self_attn = self_attention(shape)
        self.mlp = gated_mlp(shape)
        self.siamese_attn_pre_norm = RMSNorm(shape.width, shape.eps)
        self.siamese_hybrid_attn_scale = nn.Parameter(torch.empty(shape.width))
        self.pre_mlp_layernorm = RMSNorm(shape.width, shape.eps)
        self.siamese_mlp_pre_norm = RMSNorm(shape.width, shape.eps)
        self.siamese_mlp_input_norm = RMSNorm(shape.width, shape.eps)

    def norm_of(self, role: str) -> nn.Module | Tensor:
        return getattr(self, self.ROLES[role])

    def head_norm(self, letter: str) -> nn.Module:
        return self.self_attn[f"{letter}_norm"]

    def qkv(self, x: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.self_attn[f"{letter}_proj"](x) for letter in "qkv")

    def attention_out(self, x: Tensor) -> Tensor:
        return self.self_attn["o_proj"](x)

    def feed_forward(self, x: Tensor) -> Tensor:
        return self.mlp["down_proj"](silu(self.mlp["gate_proj"](x)) * self.mlp["up_proj"](x))


class HfSiamese(HybridLm):
    """model.embed_tokens, model.layers.N, ..., lm_head"""

    def __init__(self, shape: LmShape):
        super().__init__(shape)
        norms = ("siamese_post_final_layernorm", "siamese_pre_final_layernorm", "norm")
        self.model = nn.ModuleDict(
            {
                "embed_tokens": nn.Embedding(shape.vocab, shape.width),
                "layers": nn.ModuleList(HfBlock(shape) for _ in range(shape.blocks)),
                **{name: RMSNorm(shape.width, shape.eps) for name in norms},
            }
        )
        if not shape.tied:
            self.lm_head = matrix(shape.vocab, shape.width)

    def embedding(self) -> Tensor:
        return self.model["embed_tokens"].weight

    def head(self) -> Tensor:
        return self.embedding() if self.shape.tied else self.lm_head.weight

    def block_list(self) -> nn.ModuleList:
        return self.model["layers"]

    def final_norms(self) -> tuple[nn.Module, ...]:
        names = ("siamese_post_final_layernorm", "siamese_pre_final_layernorm", "norm")
        return tuple(self.model[name] for name in names)
