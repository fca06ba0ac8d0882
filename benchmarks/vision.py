"""The vision Transformer of the engine as a good PyTorch user would write it: nn.Conv2d for the patches,
F.scaled_dot_product_attention, F.layer_norm. Schemes `pre` and `siamese`. Parameters have the names of our checkpoints;
the patch filter has its four dimensions (check_equal.py reshapes ours)."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from shapes import VisionShape


def norm(shape: VisionShape) -> nn.LayerNorm:
    return nn.LayerNorm(shape.width, eps=shape.norm_eps)


class Attention(nn.Module):
    def __init__(self, shape: VisionShape):
        super().__init__()
        self.heads = shape.heads
        self.qkv = nn.Linear(shape.width, 3 * shape.width)
        self.out = nn.Linear(shape.width, shape.width)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v)
        return self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))


class FeedForward(nn.Module):
    def __init__(self, shape: VisionShape, gelu: str = "none"):
        super().__init__()
        self.gelu = gelu
        self.add_module("in", nn.Linear(shape.width, 4 * shape.width))
        self.out = nn.Linear(4 * shape.width, shape.width)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(F.gelu(getattr(self, "in")(x), approximate=self.gelu))


class Junction(nn.Module):
    def __init__(self, shape: VisionShape, scheme: str):
        super().__init__()
        for name in ("x_norm", "y_norm", "input_norm") if scheme == "siamese" else ("norm",):
            self.add_module(name, norm(shape))


class Block(nn.Module):
    """pre: h <- h + G(LN(h)).  siamese: X <- P(X);  O = G(I(X + Q(Y)));  X <- X + O / c;  Y <- Y + O"""

    def __init__(self, shape: VisionShape, scheme: str, block: int):
        super().__init__()
        self.attention = Attention(shape)
        self.ffn = FeedForward(shape)
        self.attention_junction = Junction(shape, scheme)
        self.ffn_junction = Junction(shape, scheme)
        self.divisor = math.sqrt(2 * (block + 1))

    def one_stream(self, h: Tensor) -> Tensor:
        h = h + self.attention(self.attention_junction.norm(h))
        return h + self.ffn(self.ffn_junction.norm(h))

    def two_streams(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        for junction, branch in ((self.attention_junction, self.attention), (self.ffn_junction, self.ffn)):
            x = junction.x_norm(x)
            out = branch(junction.input_norm(x + junction.y_norm(y)))
            x, y = x + out / self.divisor, y + out
        return x, y


class Close(nn.Module):
    def __init__(self, shape: VisionShape, scheme: str):
        super().__init__()
        for name in ("x_norm", "y_norm", "norm") if scheme == "siamese" else ("norm",):
            self.add_module(name, norm(shape))


class VisionTransformer(nn.Module):
    def __init__(self, shape: VisionShape, scheme: str):
        super().__init__()
        self.scheme = scheme
        self.patch = nn.Conv2d(shape.channels, shape.width, shape.patch, stride=shape.patch)
        self.class_token = nn.Parameter(torch.randn(shape.width) * 0.02)
        self.positions = nn.Embedding(shape.tokens, shape.width)
        self.blocks = nn.ModuleList(Block(shape, scheme, index) for index in range(shape.blocks))
        self.close = Close(shape, scheme)
        self.head = nn.Linear(shape.width, shape.classes)
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        """images: [batch, channels, size, size] -> mean cross-entropy"""
        patches = self.patch(images).flatten(2).transpose(1, 2)
        h = torch.cat((self.class_token.expand(len(images), 1, -1), patches), 1) + self.positions.weight
        if self.scheme == "siamese":
            x, y = h, h
            for block in self.blocks:
                x, y = block.two_streams(x, y)
            h = self.close.x_norm(x) + self.close.y_norm(y)
        else:
            for block in self.blocks:
                h = block.one_stream(h)
        return F.cross_entropy(self.head(self.close.norm(h)[:, 0]), labels)
