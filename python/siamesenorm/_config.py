"""Configs on their way to the engine: recipes, files, dicts, and overrides as keyword arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Config = str | Path | Mapping[str, Any]
"""The name of a shipped recipe ("arithmetic-small"), a YAML file, or a dict of the same shape."""

FOLDERS = [str(path) for path in (Path("configs"), Path(__file__).parent / "configs")]
"""Where recipes are looked up: ./configs, then those that came with the package."""


def as_text(value: Any) -> str:
    """A value of Python as YAML that the engine reads."""
    return value if isinstance(value, str) else json.dumps(value, default=str)


def as_overrides(overrides: Mapping[str, Any]) -> list[str]:
    """{"optim__lr": 2e-3, "model.residual": "pre"} -> ["optim.lr=0.002", "model.residual=pre"]."""
    return [f"{key.replace('__', '.')}={as_text(value)}" for key, value in overrides.items()]


def as_source(config: Config) -> tuple[str, bool]:
    """(name, path or YAML text; whether it is text)."""
    if isinstance(config, Mapping):
        return json.dumps(_nested(config), default=str), True
    return str(config), False


def _nested(config: Mapping[str, Any]) -> dict[str, Any]:
    """{"model.width": 64} -> {"model": {"width": 64}}, at any depth."""
    tree: dict[str, Any] = {}
    for key, value in config.items():
        *sections, last = str(key).split(".")
        place = tree
        for section in sections:
            place = place.setdefault(section, {})
        if isinstance(value, Mapping):
            place.setdefault(last, {}).update(_nested(value))
        else:
            place[last] = value
    return tree
