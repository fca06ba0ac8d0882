"""Other people's pickles as checkpoints of the engine.

    python -m siamesenorm.convert DiT-XL-2.pt runs/dit --layout official-dit model.heads=16

Reads `.pt` and `.pth` with `weights_only=True`: nothing in the file is executed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ._config import FOLDERS
from ._native import binding
from .errors import DataError

WRAPPERS = ("model", "state_dict", "ema", "model_state_dict", "module")
"""Where trainers put the weights inside what they save."""
PREFIXES = ("module.", "_orig_mod.")
"""What DataParallel and torch.compile put before every name."""


def read_pickle(path: str | Path, key: str | None = None) -> dict[str, Tensor]:
    """The tensors of a `.pt` or `.pth` file by name. key: which part of it; without one, the first of `WRAPPERS`."""
    try:
        held = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise DataError(f"{path}: missing") from None
    except Exception as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"{path}: cannot be read with weights_only=True: {first}") from None
    state = _state_in(held, key, str(path))
    while state and all(name.startswith(PREFIXES) for name in state):
        state = {name.split(".", 1)[1]: value for name, value in state.items()}
    return {name: value.detach().clone(memory_format=torch.contiguous_format) for name, value in state.items()}


def _state_in(held: Any, key: str | None, path: str) -> dict[str, Tensor]:
    if key is not None:
        if not isinstance(held, Mapping) or key not in held:
            raise DataError(f"{path}: expected a part named {key!r}, got {_kinds(held)}")
        held = held[key]
    for wrapper in WRAPPERS if key is None else ():
        if isinstance(held, Mapping) and isinstance(held.get(wrapper), Mapping):
            held = held[wrapper]
            break
    if isinstance(held, Mapping) and held and all(isinstance(value, Tensor) for value in held.values()):
        return {str(name): value for name, value in held.items()}
    raise DataError(f"{path}: expected tensors by name, got {_kinds(held)}; --key says which part of the file")


def _kinds(held: Any) -> str:
    if not isinstance(held, Mapping):
        return type(held).__name__
    return "a dict of " + ", ".join(f"{name!r}" for name in list(held)[:8])


def convert(
    source: str | Path,
    folder: str | Path,
    layout: str,
    *,
    key: str | None = None,
    config: str = "",
    overrides: Sequence[str] = (),
    overwrite: bool = False,
) -> list[str]:
    """Writes `folder` (config.yaml, model.safetensors) from a pickle in a published layout; returns what is worth
    telling: values that were assumed, tensors that were left out."""
    tensors = read_pickle(source, key)
    engine = binding()
    with tempfile.TemporaryDirectory() as aside:
        file = str(Path(aside) / "weights.safetensors")
        engine.save_tensors(file, tensors)
        return list(engine.convert(file, layout, str(folder), config, list(overrides), FOLDERS, overwrite))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m siamesenorm.convert", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", help="a .pt or .pth file")
    parser.add_argument("folder", help="the checkpoint to make")
    parser.add_argument("--layout", required=True, help="whose names: official-dit, official-deit, official-lm, hf-...")
    parser.add_argument("--key", help="the part of the file that holds the weights (model, ema, ...)")
    parser.add_argument("--config", default="", help="what the tensors do not tell: a recipe or YAML file")
    parser.add_argument("--overwrite", action="store_true", help="replace an earlier result that stands there")
    parser.add_argument("overrides", nargs="*", help="key=value, for any key of a config")
    asked = parser.parse_intermixed_args(arguments)  # key=value may follow an option
    try:
        lines = convert(
            asked.source, asked.folder, asked.layout, key=asked.key, config=asked.config, overrides=asked.overrides,
            overwrite=asked.overwrite,
        )  # fmt: skip
    except (ValueError, OSError, RuntimeError) as error:
        print(f"siamesenorm.convert: {error}", file=sys.stderr)
        return 2 if isinstance(error, ValueError) else 3
    for line in lines:
        print(line)
    print(f"{asked.source} ({asked.layout}) -> {asked.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
