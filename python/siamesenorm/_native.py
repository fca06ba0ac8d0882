"""The compiled part: libsiamese_ops.so (torch.ops.siamese.*) and the binding, loaded once when the package is imported.

Both stand in this folder. A source tree that was not built has neither: then everything that needs no compiled part
works, and the rest says what is missing when it is used.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import torch

TORCH = "2.13"  # whose binary interface the compiled part was built for

_FOLDER = Path(__file__).parent
_binding: ModuleType | None = None


def check_torch(version: str) -> None:
    """ImportError in one sentence unless the compiled part fits this version of torch."""
    if version.split("+", maxsplit=1)[0].rsplit(".", 1)[0] != TORCH:
        raise ImportError(
            f"siamesenorm: expected torch {TORCH}.x, for which its compiled part was built, got {version}: "
            f"pip install 'torch=={TORCH}.*', or build siamesenorm anew"
        )


def is_built() -> bool:
    """Whether the compiled part lies beside this file."""
    return (_FOLDER / "libsiamese_ops.so").exists() and any(_FOLDER.glob("_binding*.so"))


def load() -> None:
    """Registers torch.ops.siamese.* and loads the binding; does nothing in a source tree that was not built."""
    global _binding
    if _binding is not None or not is_built():
        return
    check_torch(torch.__version__)
    torch.ops.load_library(str(_FOLDER / "libsiamese_ops.so"))
    _binding = importlib.import_module("siamesenorm._binding")


def binding() -> ModuleType:
    """The compiled functions; ImportError when they were not built."""
    if _binding is None:
        raise ImportError(
            f"siamesenorm: expected its compiled part in {_FOLDER}, got a source tree: pip install . in the "
            "repository, or a wheel by `make wheel`"
        )
    return _binding
