"""Language models with one stream under their Hugging Face names: Llama, OLMo-2, GPT-2.

    Llama   h <- h + Attn(N1(h));      h <- h + FFN(N2(h))
    OLMo-2  h <- h + N1(Attn(h));      h <- h + N2(FFN(h)),   with norms of all of q and of k before RoPE
    OLMo-3  as OLMo-2, with a window in some blocks and scaled frequencies in the others
    GPT-2   as Llama, LayerNorm and biases, learned positions, tanh GELU"""

import torch
from torch import Tensor, nn

from parts import (
    LayerNorm,
    RMSNorm,
    Record,
    attend,
    gelu_tanh,
    neighbour_rope,
    next_token_loss,
    rope,
    silu,
    split_heads,
)
from siamese_lm import LmShape, gated_mlp, matrix, self_attention


class RotaryBlock(nn.Module):
    """Attention and SwiGLU, which Llama and OLMo-2 have in common."""

    def __init__(self, shape: LmShape):
        super().__init__()
        self.shape = shape
        self.self_attn = self_attention(shape)
        self.mlp = gated_mlp(shape)

    def attention(self, x: Tensor) -> Tensor:
        shape, part = self.shape, self.self_attn
        q, k, v = (part[f"{letter}_proj"](x) for letter in "qkv")
        if shape.head_norm == "qk_full":
            q, k = part["q_norm"](q), part["k_norm"](k)
        q, k, v = split_heads(q, shape.heads), split_heads(k, shape.kv_heads), split_heads(v, shape.kv_heads)
        q, k = (rope(part, shape.theta, shape.scaling) for part in (q, k))
        return part["o_proj"](attend(q, k, v, causal=True, window=shape.window))

    def feed_forward(self, x: Tensor) -> Tensor:
        return self.mlp["down_proj"](silu(self.mlp["gate_proj"](x)) * self.mlp["up_proj"](x))


class LlamaBlock(RotaryBlock):
    def __init__(self, shape: LmShape):
        super().__init__(shape)
        self.input_layernorm = RMSNorm(shape.width, shape.eps)
        self.post_attention_layernorm = RMSNorm(shape.width, shape.eps)

    def forward(self, h: Tensor, record: Record) -> Tensor:
        for norm, branch in (
            (self.input_layernorm, self.attention),
            (self.post_attention_layernorm, self.feed_forward),
        ):
            given = norm(h)
            out = branch(given)
            record.stream("h", h, given)
            record.branch(given, out)
            h = h + out
        return h


class Olmo2Block(RotaryBlock):
    def __init__(self, shape: LmShape):
        super().__init__(shape)
        self.post_attention_layernorm = RMSNorm(shape.width, shape.eps)
        self.post_feedforward_layernorm = RMSNorm(shape.width, shape.eps)

    def forward(self, h: Tensor, record: Record) -> Tensor:
        for branch, norm in (
            (self.attention, self.post_attention_layernorm),
            (self.feed_forward, self.post_feedforward_layernorm),
        ):
            out = branch(h)
            record.stream("h", h)
            record.branch(h, out)
            h = h + norm(out)
        return h


class RotaryLm(nn.Module):
    """model.embed_tokens, model.layers.N, model.norm, lm_head"""

    def __init__(self, shape: LmShape, block: type[RotaryBlock]):
        super().__init__()
        self.model = nn.ModuleDict(
            {
                "embed_tokens": nn.Embedding(shape.vocab, shape.width),
                "layers": nn.ModuleList(block(shape.of_block(index)) for index in range(shape.blocks)),
                "norm": RMSNorm(shape.width, shape.eps),
            }
        )
        if not shape.tied:
            self.lm_head = matrix(shape.vocab, shape.width)
        self.tied = shape.tied

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor, Record]:
        record = Record()
        embedding = self.model["embed_tokens"].weight
        h = embedding[tokens]
        for block in self.model["layers"]:
            h = block(h, record)
        logits = self.model["norm"](h) @ (embedding if self.tied else self.lm_head.weight).T
        return logits, next_token_loss(logits, tokens), record


def llama(shape: LmShape) -> RotaryLm:
    return RotaryLm(shape, LlamaBlock)


class MetaBlock(nn.Module):
    """Llama under Meta's names; what RoPE turns together are neighbours."""

    def __init__(self, shape: LmShape):
        super().__init__()
        d, f, kv_width = shape.width, shape.ffn_width, shape.kv_heads * shape.head_width
        self.shape = shape
        self.attention_norm = RMSNorm(d, shape.eps)
        rows = {"wq": d, "wk": kv_width, "wv": kv_width, "wo": d}
        self.attention = nn.ModuleDict({name: matrix(count, d) for name, count in rows.items()})
        self.ffn_norm = RMSNorm(d, shape.eps)
        self.feed_forward = nn.ModuleDict({"w1": matrix(f, d), "w2": matrix(d, f), "w3": matrix(f, d)})

    def attended(self, x: Tensor) -> Tensor:
        shape, part = self.shape, self.attention
        q = split_heads(part["wq"](x), shape.heads)
        k, v = (split_heads(part[name](x), shape.kv_heads) for name in ("wk", "wv"))
        return part["wo"](attend(neighbour_rope(q, shape.theta), neighbour_rope(k, shape.theta), v, causal=True))

    def fed_forward(self, x: Tensor) -> Tensor:
        part = self.feed_forward
        return part["w2"](silu(part["w1"](x)) * part["w3"](x))

    def forward(self, h: Tensor, record: Record) -> Tensor:
        for norm, branch in ((self.attention_norm, self.attended), (self.ffn_norm, self.fed_forward)):
            given = norm(h)
            out = branch(given)
            record.stream("h", h, given)
            record.branch(given, out)
            h = h + out
        return h


class MetaLlama(nn.Module):
    """tok_embeddings, layers.N, norm, output"""

    def __init__(self, shape: LmShape):
        super().__init__()
        self.tok_embeddings = nn.Embedding(shape.vocab, shape.width)
        self.layers = nn.ModuleList(MetaBlock(shape) for _ in range(shape.blocks))
        self.norm = RMSNorm(shape.width, shape.eps)
        self.output = matrix(shape.vocab, shape.width)

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor, Record]:
        record = Record()
        h = self.tok_embeddings.weight[tokens]
        for block in self.layers:
            h = block(h, record)
        logits = self.output(self.norm(h))
        return logits, next_token_loss(logits, tokens), record


def olmo2(shape: LmShape) -> RotaryLm:
    return RotaryLm(shape, Olmo2Block)


class Conv1D(nn.Module):
    """x W + b with W stored [in, out]."""

    def __init__(self, rows: int, cols: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(rows, cols))
        self.bias = nn.Parameter(torch.empty(cols))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight + self.bias


class Gpt2Block(nn.Module):
    def __init__(self, shape: LmShape):
        super().__init__()
        d, f = shape.width, shape.ffn_width
        self.heads = shape.heads
        self.ln_1 = LayerNorm(d, shape.eps)
        self.attn = nn.ModuleDict({"c_attn": Conv1D(d, 3 * d), "c_proj": Conv1D(d, d)})
        self.ln_2 = LayerNorm(d, shape.eps)
        self.mlp = nn.ModuleDict({"c_fc": Conv1D(d, f), "c_proj": Conv1D(f, d)})

    def attention(self, x: Tensor) -> Tensor:
        q, k, v = (split_heads(part, self.heads) for part in self.attn["c_attn"](x).chunk(3, -1))
        return self.attn["c_proj"](attend(q, k, v, causal=True))

    def feed_forward(self, x: Tensor) -> Tensor:
        return self.mlp["c_proj"](gelu_tanh(self.mlp["c_fc"](x)))

    def forward(self, h: Tensor, record: Record) -> Tensor:
        for norm, branch in ((self.ln_1, self.attention), (self.ln_2, self.feed_forward)):
            given = norm(h)
            out = branch(given)
            record.stream("h", h, given)
            record.branch(given, out)
            h = h + out
        return h


class Gpt2(nn.Module):
    """transformer.wte, transformer.wpe, transformer.h.N, transformer.ln_f"""

    def __init__(self, shape: LmShape):
        super().__init__()
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(shape.vocab, shape.width),
                "wpe": nn.Embedding(shape.context, shape.width),
                "h": nn.ModuleList(Gpt2Block(shape) for _ in range(shape.blocks)),
                "ln_f": LayerNorm(shape.width, shape.eps),
            }
        )

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor, Record]:
        record = Record()
        embedding = self.transformer["wte"].weight
        h = embedding[tokens] + self.transformer["wpe"].weight[: tokens.shape[1]]
        for block in self.transformer["h"]:
            h = block(h, record)
        logits = self.transformer["ln_f"](h) @ embedding.T
        return logits, next_token_loss(logits, tokens), record
