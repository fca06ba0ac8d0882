"""The shapes of configs/bench, so that both sides measure the same one."""

import re
from dataclasses import dataclass, fields
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "configs/bench"
NAMES = ("s", "d", "m", "v")


@dataclass(frozen=True)
class Shape:
    width: int
    blocks: int
    heads: int
    ffn_width: int
    vocab: int
    context: int
    batch: int
    norm_eps: float = 1e-5
    rope_theta: float = 10000.0

    def text(self) -> str:
        return (f"width {self.width}, {self.blocks} blocks, {self.heads} heads, SwiGLU of {self.ffn_width}, "
                f"vocabulary {self.vocab}, {self.batch} x {self.context} tokens")


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
    def tokens(self) -> int:
        return (self.image // self.patch) ** 2 + 1

    def text(self) -> str:
        return (f"width {self.width}, {self.blocks} blocks, {self.heads} heads, {self.batch} images of {self.image} x "
                f"{self.image} in patches of {self.patch}, {self.classes} classes")


def load(name: str) -> Shape | VisionShape:
    """The recipe's plain `key: number` lines; keys are unique across its sections."""
    text = (FOLDER / f"{name}.yaml").read_text()
    values = dict(re.findall(r"^ +(\w+): (\d+)$", text, flags=re.MULTILINE))
    kind = VisionShape if "image" in values else Shape
    return kind(**{field.name: int(values[field.name]) for field in fields(kind) if field.type in (int, "int")})
