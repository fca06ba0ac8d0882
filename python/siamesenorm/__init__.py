"""Transformers with any residual scheme: SiameseNorm and its rivals inside PyTorch.

    import siamesenorm as sn
    stack = sn.ResidualStack("siamese", width=512, blocks=12)
    y = stack(x, sublayers)

Every scheme, op and model is the C++ engine's own; `docs/python.md` has the start and the reference.
"""

from __future__ import annotations

from . import _native
from .errors import DataError, DivergedError, MachineError, UsageError
from .groups import KINDS, init_, param_groups, parameter_kinds
from .kernels import kernel_counts, register_kernels
from .model import Model, load, save
from .patch import Patched, patch
from .runs import read_run, read_sweep, report, resume, sweep, train
from .scheme import Scheme, Site, Streams, canonical_scheme, schemes
from .stack import Junction, ResidualStack

_native.load()
register_kernels()

__version__ = "0.2.0"

__all__ = [
    "KINDS",
    "DataError",
    "DivergedError",
    "Junction",
    "MachineError",
    "Model",
    "Patched",
    "ResidualStack",
    "Scheme",
    "Site",
    "Streams",
    "UsageError",
    "canonical_scheme",
    "init_",
    "kernel_counts",
    "load",
    "param_groups",
    "parameter_kinds",
    "patch",
    "read_run",
    "read_sweep",
    "report",
    "resume",
    "save",
    "schemes",
    "sweep",
    "train",
]
