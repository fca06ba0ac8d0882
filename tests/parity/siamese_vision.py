"""The two image models of SiameseNorm under their published names. Streams X_0 = Y_0 = patches; at site i of block l,
with c = sqrt(2 (l + 1)):

    X <- P_i(X);   O = G_i(...(X + Q_i(Y)));   X <- X + O / c;   Y <- Y + O

DeiT reads I_i(X + Q_i(Y)); DiT reads LN0(X + Q_i(Y)) (1 + scale) + shift, and O is gate * G."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from parts import LayerNorm, Record, attend, cross_entropy, gelu_erf, gelu_tanh, silu, split_heads

EPS = 1e-6
FREQUENCIES = 128


@dataclass(frozen=True)
class ImageShape:
    width: int
    blocks: int
    heads: int
    ffn_width: int
    image: int
    patch: int
    channels: int
    classes: int
    extra_label: bool = True
    learn_sigma: bool = True

    @property
    def grid(self) -> int:
        return self.image // self.patch

    @property
    def out_channels(self) -> int:
        return self.channels * (2 if self.learn_sigma else 1)


class PatchEmbed(nn.Module):
    def __init__(self, shape: ImageShape):
        super().__init__()
        self.proj = nn.Conv2d(shape.channels, shape.width, shape.patch, stride=shape.patch)

    def forward(self, images: Tensor) -> Tensor:
        """Patch after patch, row by row: the filter of the convolution times each patch."""
        p = self.proj.kernel_size[0]
        patches = images.unfold(2, p, p).unfold(3, p, p)  # batch, channel, grid row, grid column, row, column
        return torch.einsum("bcghij,dcij->bghd", patches, self.proj.weight).flatten(1, 2) + self.proj.bias


class Attention(nn.Module):
    def __init__(self, shape: ImageShape):
        super().__init__()
        self.heads = shape.heads
        self.qkv = nn.Linear(shape.width, 3 * shape.width)
        self.proj = nn.Linear(shape.width, shape.width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (split_heads(part, self.heads) for part in self.qkv(x).chunk(3, -1))
        return self.proj(attend(q, k, v, causal=False))


class Mlp(nn.Module):
    def __init__(self, shape: ImageShape, gelu):
        super().__init__()
        self.fc1 = nn.Linear(shape.width, shape.ffn_width)
        self.fc2 = nn.Linear(shape.ffn_width, shape.width)
        self.gelu = gelu

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(self.gelu(self.fc1(x)))


class DeitBlock(nn.Module):
    def __init__(self, shape: ImageShape):
        super().__init__()
        self.attn = Attention(shape)
        self.mlp = Mlp(shape, gelu_erf)
        for name in ("post_norm", "pre_norm", "input_norm"):
            self.add_module(f"{name}1", LayerNorm(shape.width, EPS))
            self.add_module(f"{name}2", LayerNorm(shape.width, EPS))

    def forward(self, x: Tensor, y: Tensor, c: float, record: Record) -> tuple[Tensor, Tensor]:
        for branch, p, q, i in (
            (self.attn, self.post_norm1, self.pre_norm1, self.input_norm1),
            (self.mlp, self.post_norm2, self.pre_norm2, self.input_norm2),
        ):
            normed_x, normed_y = p(x), q(y)
            record.stream("X", x, normed_x)
            record.stream("Y", y, normed_y)
            given = i(normed_x + normed_y)
            out = branch(given)
            record.branch(given, out)
            x, y = normed_x + out / c, y + out
        return x, y


class OfficialDeit(nn.Module):
    def __init__(self, shape: ImageShape):
        super().__init__()
        self.patch_embed = PatchEmbed(shape)
        self.cls_token = nn.Parameter(torch.empty(1, 1, shape.width))
        self.pos_embed = nn.Parameter(torch.empty(1, 1 + shape.grid**2, shape.width))
        self.blocks = nn.ModuleList(DeitBlock(shape) for _ in range(shape.blocks))
        self.pre_norm = LayerNorm(shape.width, EPS)
        self.post_norm = LayerNorm(shape.width, EPS)
        self.final_norm = LayerNorm(shape.width, EPS)
        self.head = nn.Linear(shape.width, shape.classes)

    def forward(self, images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Record]:
        """images [batch, channels, size, size], labels [batch] -> logits [batch, classes], loss, record"""
        record = Record()
        patches = self.patch_embed(images)
        x = y = torch.cat((self.cls_token.expand(len(images), -1, -1), patches), 1) + self.pos_embed
        for index, block in enumerate(self.blocks):
            x, y = block(x, y, math.sqrt(2 * (index + 1)), record)
        # At the end the names are swapped: pre_norm is X's.
        logits = self.head(self.final_norm(self.pre_norm(x) + self.post_norm(y))[:, 0])
        return logits, cross_entropy(logits, labels), record


def position_table(width: int, grid: int) -> Tensor:
    """[1, grid^2, width]: the first half from the column, the second from the row; each sines, then cosines, of
    position * 10000^(-j / (width / 4))."""
    frequency = 10000.0 ** (-torch.arange(width // 4, dtype=torch.float64) / (width // 4))
    angle = torch.arange(grid, dtype=torch.float64)[:, None] * frequency
    half = torch.cat((angle.sin(), angle.cos()), 1)
    row = torch.arange(grid).repeat_interleave(grid)
    column = torch.arange(grid).repeat(grid)
    return torch.cat((half[column], half[row]), 1)[None]


def timestep_features(timesteps: Tensor) -> Tensor:
    """[batch, 256]: cosines, then sines, of t * exp(-ln(10000) j / 128)"""
    frequency = torch.exp(-math.log(10000) * torch.arange(FREQUENCIES, dtype=torch.float64) / FREQUENCIES)
    angle = timesteps.double()[:, None] * frequency
    return torch.cat((angle.cos(), angle.sin()), 1)


class Silu(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return silu(x)


class TimestepEmbedder(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(2 * FREQUENCIES, width), Silu(), nn.Linear(width, width))


class LabelEmbedder(nn.Module):
    def __init__(self, shape: ImageShape):
        super().__init__()
        self.embedding_table = nn.Embedding(shape.classes + shape.extra_label, shape.width)


class DitBlock(nn.Module):
    def __init__(self, shape: ImageShape):
        super().__init__()
        self.attn = Attention(shape)
        self.mlp = Mlp(shape, gelu_tanh)
        for name in ("postnorm1", "postnorm2", "prenorm1", "prenorm2"):
            self.add_module(name, LayerNorm(shape.width, EPS))
        self.adaLN_modulation = nn.Sequential(Silu(), nn.Linear(shape.width, 6 * shape.width))
        self.plain = LayerNorm(shape.width, EPS, affine=False)

    def forward(self, x: Tensor, y: Tensor, condition: Tensor, c: float, record: Record) -> tuple[Tensor, Tensor]:
        chunks = self.adaLN_modulation(condition)[:, None].chunk(6, -1)
        for branch, p, q, (shift, scale, gate) in (
            (self.attn, self.postnorm1, self.prenorm1, chunks[:3]),
            (self.mlp, self.postnorm2, self.prenorm2, chunks[3:]),
        ):
            normed_x, normed_y = p(x), q(y)
            record.stream("X", x, normed_x)
            record.stream("Y", y, normed_y)
            given = self.plain(normed_x + normed_y) * (1 + scale) + shift
            out = branch(given)
            record.branch(given, out)
            x, y = normed_x + gate * out / c, y + gate * out
        return x, y


class FinalLayer(nn.Module):
    def __init__(self, shape: ImageShape):
        super().__init__()
        self.adaLN_modulation = nn.Sequential(Silu(), nn.Linear(shape.width, 2 * shape.width))
        self.linear = nn.Linear(shape.width, shape.patch**2 * shape.out_channels)
        self.plain = LayerNorm(shape.width, EPS, affine=False)

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        shift, scale = self.adaLN_modulation(condition)[:, None].chunk(2, -1)
        return self.linear(self.plain(x) * (1 + scale) + shift)


class OfficialDit(nn.Module):
    def __init__(self, shape: ImageShape):
        super().__init__()
        self.shape = shape
        self.x_embedder = PatchEmbed(shape)
        self.t_embedder = TimestepEmbedder(shape.width)
        self.y_embedder = LabelEmbedder(shape)
        self.register_buffer("pos_embed", position_table(shape.width, shape.grid))
        self.blocks = nn.ModuleList(DitBlock(shape) for _ in range(shape.blocks))
        self.postnorm = LayerNorm(shape.width, EPS)
        self.prenorm = LayerNorm(shape.width, EPS)
        self.final_layer = FinalLayer(shape)

    def forward(
        self, latents: Tensor, timesteps: Tensor, labels: Tensor, target: Tensor
    ) -> tuple[Tensor, Tensor, Record]:
        """latents [batch, channels, size, size] -> output and target [batch, out channels, size, size], loss, record"""
        record = Record()
        condition = self.t_embedder.mlp(timestep_features(timesteps)) + self.y_embedder.embedding_table(labels)
        x = y = self.x_embedder(latents) + self.pos_embed
        for index, block in enumerate(self.blocks):
            x, y = block(x, y, condition, math.sqrt(2 * (index + 1)), record)
        patches = self.final_layer(self.postnorm(x) + self.prenorm(y), condition)
        output = self.images(patches)
        return output, ((output - target) ** 2).mean(), record

    def images(self, patches: Tensor) -> Tensor:
        """[batch, grid^2, p p C] -> [batch, C, size, size]; inside a patch row, column, channel"""
        g, p, c = self.shape.grid, self.shape.patch, self.shape.out_channels
        return patches.reshape(-1, g, g, p, p, c).permute(0, 5, 1, 3, 2, 4).reshape(-1, c, g * p, g * p)
