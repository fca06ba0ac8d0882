"""The text of a sweep file, so far as benchmarks/second_stage.py has to know it: the standard library reads no YAML, and the
lines that a second sweep has in common with the first are copied as they stand. One variant a line, lists on one line, as
in every file of configs/sweeps; anything else is an error, and not half understood."""

import itertools
import os
import re
from dataclasses import dataclass
from pathlib import Path

AXES = ("optim.lr", "train.seed")  # other keys of a grid make other variants (siamese/train/sweep_plan.cc)


class Failure(Exception):
    """What is told in one line."""


@dataclass
class Variant:
    name: str  # as a record and a table have it
    keys: list[str]  # "model.residual: pre", as they were written; without the label


@dataclass
class Sweep:
    path: Path
    name: str
    record_text: str  # as it was written
    shared: list[str]  # the lines of `config` and `set`
    variants: list[Variant]
    rates: list[float]
    seeds: list[int]

    @property
    def record(self) -> Path:
        return Path(os.path.normpath(self.path.parent / self.record_text))

    def record_from(self, folder: Path, stem: str) -> str:
        """Another record in the same folder, as a sweep file in `folder` names it."""
        return os.path.relpath(self.record.with_name(f"{stem}.jsonl"), folder)


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def unquoted(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def rate_text(rate: float) -> str:
    """3e-3; what a multiplication left behind the fourth digit goes."""
    mantissa, exponent = f"{rate:.3e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def split_commas(text: str) -> list[str]:
    """At the commas that are not within quotes, brackets or parentheses."""
    parts, depth, quote = [""], 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        depth += 0 if quote else (letter in "[{(") - (letter in ")}]")
        if letter == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def pairs(where: str, entries: list[str]) -> list[tuple[str, str]]:
    found = [re.fullmatch(r"([\w.]+):\s+(.+)", entry) for entry in entries]
    if None in found:
        raise Failure(f"{where}: expected 'key: value', got '{entries[found.index(None)]}'")
    return [(match[1], match[2]) for match in found]


def name_of(keys: list[tuple[str, str]]) -> str:
    """As sweep_plan.cc names a variant."""
    given = dict(keys)
    if "label" in given:
        return unquoted(given["label"])
    parts = [unquoted(given[key]) for key in ("config", "model.residual") if key in given]
    parts += [f"{key.rpartition('.')[2]}={unquoted(value)}" for key, value in keys if key not in ("config", "model.residual")]
    return ", ".join(parts) or "base"


def sections_of(text: str) -> dict[str, list[str]]:
    """The lines of each key at the top, from its own on; comments and blank lines between keys are left out."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        key = re.match(r"([\w.]+):", line)
        if key:
            lines = sections.setdefault(key[1], [])
        if line.strip() and not line.startswith("#"):
            lines.append(line)
    return sections


def value(line: str) -> str:
    return re.sub(r"\s+#.*", "", line.partition(":")[2]).strip()


def items(where: str, text: str) -> list[str]:
    if not re.fullmatch(r"\[.*\]", text):
        raise Failure(f"{where}: expected a list on one line, [a, b], got '{text}'")
    return split_commas(text[1:-1])


def read_sweep(path: Path) -> Sweep:
    sections = sections_of(path.read_text(encoding="utf-8"))
    for key in ("sweep", "record", "variants", "grid"):
        if key not in sections:
            raise Failure(f"{path}: expected a key '{key}', got {', '.join(sections)}")
    listed = []
    for line in sections["variants"][1:]:
        entry = re.fullmatch(r"\s*-\s*\{(.*)\}\s*(#.*)?", line)
        if not entry:
            raise Failure(f"{path}: variants: expected '- {{key: value}}' on one line, got '{line.strip()}'")
        listed.append(pairs(f"{path}: variants", split_commas(entry[1])))
    grid = {line.strip().partition(":")[0]: items(f"{path}: grid", value(line)) for line in sections["grid"][1:]}
    others = [[(key, choice) for choice in choices] for key, choices in grid.items() if key not in AXES]
    variants = []
    for point in itertools.product(*others):
        for keys in listed:
            name = ", ".join([name_of(keys), *(f"{key.rpartition('.')[2]}={choice}" for key, choice in point)])
            variants.append(Variant(name, [f"{key}: {text}" for key, text in [*keys, *point] if key != "label"]))
    return Sweep(path, value(sections["sweep"][0]), value(sections["record"][0]), sections.get("config", []) + sections.get("set", []),
                 variants, [float(rate) for rate in grid.get("optim.lr", [])], [int(seed) for seed in grid.get("train.seed", ["0"])])
