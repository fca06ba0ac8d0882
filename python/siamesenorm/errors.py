"""What the engine refuses, as Python exceptions. Each carries the engine's one line: what, expected, got."""

from __future__ import annotations


class UsageError(ValueError):
    """A wrong argument, key, value or shape: what was asked for cannot be done (exit code 2 of the command line)."""


class DataError(OSError):
    """A file that is missing, cut short or not what it claims to be (exit code 3)."""


class MachineError(RuntimeError):
    """The machine said no: disk full, not writable, a device that is not here (exit code 1)."""


class DivergedError(RuntimeError):
    """Training cannot go on: the loss or the gradient stayed non-finite (exit code 4)."""
