"""The shapes of configs/bench, so that both sides measure the same one."""

import re
from dataclasses import dataclass, fields
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "configs/bench"
NAMES = ("s", "d", "m", "v", "x", "e")


@dataclass(frozen=True)
class Shape:
    """A language model."""

    width: int
    blocks: int
    heads: int
    ffn_width: int
    vocab: int
    context: int
    batch: int
    norm_eps: float = 1e-5
    rope_theta: float = 10000.0

    @property
    def tokens(self) -> int:
        return self.context

    def text(self) -> str:
        return (f"width {self.width}, {self.blocks} blocks, {self.heads} heads, SwiGLU of {self.ffn_width}, "
                f"vocabulary {self.vocab}, {self.batch} x {self.context} tokens")


@dataclass(frozen=True)
class MixtureShape(Shape):
    """A language model with experts; ffn_width is that of one."""

    experts: int = 0
    experts_per_token: int = 0

    def text(self) -> str:
        return (f"width {self.width}, {self.blocks} blocks, {self.heads} heads, {self.experts} experts of "
                f"{self.ffn_width}, {self.experts_per_token} a token, vocabulary {self.vocab}, {self.batch} x "
                f"{self.context} tokens")


@dataclass(frozen=True)
class VisionShape:
    width: int
    blocks: int
    heads: int
    image: int
    patch: int
    channels: int
    classes: int
    batch: int
    norm_eps: float = 1e-6

    @property
    def grid(self) -> int:
        return self.image // self.patch

    @property
    def tokens(self) -> int:
        return self.grid**2 + 1

    def text(self) -> str:
        return (f"width {self.width}, {self.blocks} blocks, {self.heads} heads, {self.batch} images of {self.image} x "
                f"{self.image} in patches of {self.patch}, {self.classes} classes")


@dataclass(frozen=True)
class DiffusionShape(VisionShape):
    label_dropout: float = 0.1

    @property
    def tokens(self) -> int:
        return self.grid**2

    def text(self) -> str:
        return (f"width {self.width}, {self.blocks} blocks, {self.heads} heads, {self.batch} latents of "
                f"{self.channels} x {self.image} x {self.image} in patches of {self.patch}, {self.classes} classes")


KINDS = {"lm": Shape, "moe": MixtureShape, "vit": VisionShape, "dit": DiffusionShape}


def load(name: str) -> Shape | VisionShape:
    """The recipe's plain `key: number` lines; keys are unique across its sections."""
    text = (FOLDER / f"{name}.yaml").read_text()
    family = re.search(r"^ +family: (\w+)$", text, flags=re.MULTILINE)
    kind = KINDS[family[1] if family else "lm"]
    values = dict(re.findall(r"^ +(\w+): (\d+)$", text, flags=re.MULTILINE))
    return kind(**{field.name: int(values[field.name]) for field in fields(kind) if field.type in (int, "int")})
