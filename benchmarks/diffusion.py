"""The diffusion Transformer of the engine (DiT, arXiv 2212.09748) as a good PyTorch user would write it: adaLN-Zero,
F.scaled_dot_product_attention, F.layer_norm, torch.utils.checkpoint. Schemes `pre` (the published model) and `siamese`.
Parameters have the names of our checkpoints; the patch filter has its four dimensions."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from shapes import DiffusionShape
from vision import Attention, FeedForward, norm

STEPS = 1000


def plain_norm(x: Tensor, eps: float) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], eps=eps)


def modulate(x: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    return x * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)


def frequencies(count: int) -> Tensor:
    return 10000.0 ** (-torch.arange(count, dtype=torch.float64) / count)


def sincos_positions(width: int, grid: int) -> Tensor:
    angles = torch.outer(torch.arange(grid, dtype=torch.float64), frequencies(width // 4))
    line = torch.cat((angles.sin(), angles.cos()), 1)
    columns, rows = line.unsqueeze(0).expand(grid, grid, -1), line.unsqueeze(1).expand(grid, grid, -1)
    return torch.cat((columns, rows), 2).reshape(grid * grid, width).float()


class TimestepEmbedding(nn.Module):
    def __init__(self, width: int, features: int = 256):
        super().__init__()
        angles = torch.outer(torch.arange(STEPS, dtype=torch.float64), frequencies(features // 2))
        self.register_buffer("features", torch.cat((angles.cos(), angles.sin()), 1).float(), persistent=False)
        self.add_module("in", nn.Linear(features, width))
        self.out = nn.Linear(width, width)

    def forward(self, t: Tensor) -> Tensor:
        return self.out(F.silu(getattr(self, "in")(self.features[t])))


class Junction(nn.Module):
    """The norms with gains: those that make the branch input have none."""

    def __init__(self, shape: DiffusionShape, scheme: str):
        super().__init__()
        for name in ("x_norm", "y_norm") if scheme == "siamese" else ():
            self.add_module(name, norm(shape))


class Block(nn.Module):
    """pre: h <- h + g G(LN0(h) (1 + scale) + shift).
    siamese: X <- P(X);  O = g G(LN0(X + Q(Y)) (1 + scale) + shift);  X <- X + O / c;  Y <- Y + O"""

    def __init__(self, shape: DiffusionShape, scheme: str, block: int):
        super().__init__()
        self.eps = shape.norm_eps
        self.scheme = scheme
        self.attention = Attention(shape)
        self.ffn = FeedForward(shape, gelu="tanh")
        self.attention_junction = Junction(shape, scheme)
        self.ffn_junction = Junction(shape, scheme)
        self.modulation = nn.Linear(shape.width, 6 * shape.width)
        self.divisor = math.sqrt(2 * (block + 1))

    def forward(self, streams: tuple[Tensor, ...], condition: Tensor) -> tuple[Tensor, ...]:
        vectors = self.modulation(condition).chunk(6, dim=1)
        branches = ((self.attention_junction, self.attention), (self.ffn_junction, self.ffn))
        for (junction, branch), (shift, scale, gate) in zip(branches, (vectors[:3], vectors[3:])):
            if self.scheme == "siamese":
                x, y = junction.x_norm(streams[0]), streams[1]
                read = x + junction.y_norm(y)
            else:
                read = streams[0]
            out = gate.unsqueeze(1) * branch(modulate(plain_norm(read, self.eps), shift, scale))
            streams = (x + out / self.divisor, y + out) if self.scheme == "siamese" else (read + out,)
        return streams


class Close(nn.Module):
    def __init__(self, shape: DiffusionShape, scheme: str):
        super().__init__()
        if scheme == "siamese":
            self.x_norm, self.y_norm = norm(shape), norm(shape)


class Final(nn.Module):
    def __init__(self, shape: DiffusionShape):
        super().__init__()
        self.eps = shape.norm_eps
        self.modulation = nn.Linear(shape.width, 2 * shape.width)
        self.out = nn.Linear(shape.width, shape.patch**2 * 2 * shape.channels)

    def forward(self, h: Tensor, condition: Tensor) -> Tensor:
        return self.out(modulate(plain_norm(h, self.eps), *self.modulation(condition).chunk(2, dim=1)))


class Schedule(nn.Module):
    """The linear schedule of DDPM over 1000 steps, as one table; loss of the noise and of the learned variance."""

    def __init__(self):
        super().__init__()
        beta = torch.linspace(1e-4, 2e-2, STEPS, dtype=torch.float64)
        kept = torch.cumprod(1 - beta, 0)
        before = torch.cat((torch.ones(1, dtype=torch.float64), kept[:-1]))
        least = torch.log(beta * (1 - before) / (1 - kept))
        least[0] = least[1]
        rows = (kept.sqrt(), (1 - kept).sqrt(), (1 / kept).sqrt(), (1 / kept - 1).sqrt(),
                beta * before.sqrt() / (1 - kept), beta.log(), least)
        self.register_buffer("table", torch.stack(rows, 1).float(), persistent=False)

    def at(self, t: Tensor) -> tuple[Tensor, ...]:
        """Seven constants of each sample's step: [batch, 1, 1, 1]."""
        return self.table[t].view(-1, 7, 1, 1, 1).unbind(1)

    def loss(self, output: Tensor, x0: Tensor, xt: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        """Mean over samples of (noise' - noise)^2 and of the variational bound in bits, which trains the variance."""
        _, _, of_xt, of_noise, of_x0, largest, least = self.at(t)
        predicted, share = output.chunk(2, dim=1)
        mse = (predicted - noise).square().flatten(1).mean(1)
        share = (share + 1) / 2
        log_variance = share * largest + (1 - share) * least
        guess = of_xt * xt - of_noise * predicted.detach()
        d = least - log_variance
        divergence = 0.5 * (torch.expm1(d) - d + (of_x0 * (x0 - guess)).square() * torch.exp(-log_variance))
        nats = torch.where(t == 0, -log_likelihood(x0, guess, log_variance).flatten(1).mean(1),
                           divergence.flatten(1).mean(1))
        return (mse + nats / math.log(2)).mean()


def normal_cdf(x: Tensor) -> Tensor:
    return 0.5 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def log_likelihood(x: Tensor, mean: Tensor, log_variance: Tensor) -> Tensor:
    """Of x in its bin, one of 256 in [-1, 1]; the outermost two reach to infinity."""
    inverse = torch.exp(-0.5 * log_variance)
    top, bottom = normal_cdf(inverse * (x - mean + 1 / 255)), normal_cdf(inverse * (x - mean - 1 / 255))
    inside = torch.where(x < -0.999, top, torch.where(x > 0.999, 1 - bottom, top - bottom))
    return inside.clamp_min(1e-12).log()


class DiffusionTransformer(nn.Module):
    def __init__(self, shape: DiffusionShape, scheme: str, recompute: bool = False):
        super().__init__()
        self.shape, self.scheme, self.recompute = shape, scheme, recompute
        self.patch = nn.Conv2d(shape.channels, shape.width, shape.patch, stride=shape.patch)
        self.register_buffer("places", sincos_positions(shape.width, shape.grid), persistent=False)
        self.timestep = TimestepEmbedding(shape.width)
        self.labels = nn.Embedding(shape.classes + 1, shape.width)  # the last row: no class
        self.blocks = nn.ModuleList(Block(shape, scheme, index) for index in range(shape.blocks))
        self.close = Close(shape, scheme)
        self.final = Final(shape)
        self.schedule = Schedule()
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)
        for module in (*(block.modulation for block in self.blocks), self.final.modulation, self.final.out):
            nn.init.zeros_(module.weight)
            nn.init.zeros_(module.bias)

    def output(self, x: Tensor, t: Tensor, labels: Tensor) -> Tensor:
        """[batch, channels, size, size] -> noise and variance, [batch, 2 channels, size, size]"""
        condition = F.silu(self.timestep(t) + self.labels(labels))
        h = self.patch(x).flatten(2).transpose(1, 2) + self.places
        streams = (h, h) if self.scheme == "siamese" else (h,)
        for block in self.blocks:
            if self.recompute:
                streams = checkpoint(block, streams, condition, use_reentrant=False)
            else:
                streams = block(streams, condition)
        h = self.close.x_norm(streams[0]) + self.close.y_norm(streams[1]) if self.scheme == "siamese" else streams[0]
        grid, patch = self.shape.grid, self.shape.patch
        pixels = self.final(h, condition).view(-1, grid, grid, patch, patch, 2 * self.shape.channels)
        return pixels.permute(0, 5, 1, 3, 2, 4).reshape(-1, 2 * self.shape.channels, grid * patch, grid * patch)

    def loss(self, images: Tensor, labels: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        signal, spread = self.schedule.at(t)[:2]
        noised = signal * images + spread * noise
        return self.schedule.loss(self.output(noised, t, labels), images, noised, t, noise)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        """Step, noise and hidden labels are drawn."""
        t = torch.randint(STEPS, (len(images),))
        hidden = torch.rand(len(images)) < self.shape.label_dropout
        return self.loss(images, labels.masked_fill(hidden, self.shape.classes), t, torch.randn_like(images))
