"""A ViT under the attribute names of timm's VisionTransformer, which needs torchvision to be imported."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class DropPath(nn.Module):
    """A sample's branch is left out with this chance in training, else divided by what is left."""

    def __init__(self, drop_prob: float) -> None:
        super().__init__()
        self.drop_prob = drop_prob

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        kept = 1 - self.drop_prob
        return x * x.new_empty(x.shape[0], *[1] * (x.dim() - 1)).bernoulli_(kept) / kept


class LayerScale(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.gamma = nn.Parameter(0.5 + torch.rand(width))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gamma


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.num_heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor, attn_mask: Tensor | None = None) -> Tensor:
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask)
        return self.proj(mixed.transpose(1, 2).reshape(batch, tokens, width))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, drop_path: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attn = Attention(width, heads)
        self.ls1 = LayerScale(width)
        self.drop_path1 = DropPath(drop_path) if drop_path else nn.Identity()
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.ls2 = LayerScale(width)
        self.drop_path2 = DropPath(drop_path) if drop_path else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.drop_path1(self.ls1(self.attn(self.norm1(x))))
        return x + self.drop_path2(self.ls2(self.mlp(self.norm2(x))))


class VisionTransformer(nn.Module):
    def __init__(self, width: int = 24, blocks: int = 2, heads: int = 2, drop_path: float = 0.0) -> None:
        super().__init__()
        self.patch_embed = nn.Conv2d(3, width, 4, 4)
        self.cls_token = nn.Parameter(torch.randn(1, 1, width))
        self.blocks = nn.Sequential(*(Block(width, heads, drop_path) for _ in range(blocks)))
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.head = nn.Linear(width, 5)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patch_embed(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1)
        return self.head(self.norm(self.blocks(x))[:, 0])
