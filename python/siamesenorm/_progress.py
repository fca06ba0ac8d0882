"""What training shows while it works: one line that is redrawn on a terminal and in a notebook, a line every few
seconds elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TextIO

_PAUSE_REDRAWN = 0.2
_PAUSE_LINES = 5.0


class Progress:
    """Hands what happens to a function; None is silent but for warnings."""

    def __init__(self, watcher: Callable[[str, dict[str, Any]], None] | None) -> None:
        self._watcher = watcher

    def __enter__(self) -> Callable[[str, dict[str, Any]], None] | None:
        return self._watcher

    def __exit__(self, *_: object) -> None:
        pass


class Line(Progress):
    """One line about the newest step."""

    def __init__(self, file: TextIO, redraws: bool) -> None:
        super().__init__(self._show)
        self._file = file
        self._redraws = redraws
        self._last = 0.0
        self._width = 0

    def __exit__(self, *_: object) -> None:
        if self._width:
            self._file.write("\n")
            self._file.flush()

    def _show(self, what: str, numbers: dict[str, Any]) -> None:
        if what != "step":
            self._write(text_of(what, numbers), stays=True)
            return
        now = time.monotonic()
        pause = _PAUSE_REDRAWN if self._redraws else _PAUSE_LINES
        if now - self._last < pause and numbers["step"] != numbers["steps"]:
            return
        self._last = now
        self._write(text_of(what, numbers), stays=not self._redraws)

    def _write(self, text: str, stays: bool) -> None:
        start = "\r" if self._width else ""
        self._file.write(start + text.ljust(self._width) + ("\n" if stays else ""))
        self._file.flush()
        self._width = 0 if stays else len(text)


def text_of(what: str, numbers: dict[str, Any]) -> str:
    """One line for a person."""
    if what == "step":
        return (
            f"step {numbers['step']}/{numbers['steps']}  loss {numbers['loss']:.4f}  grad {numbers['grad_norm']:.3f}"
            f"  lr {numbers['lr']:.2e}"
        )
    if what == "evaluated":
        return f"step {numbers['step']}: held-out loss {numbers['loss']:.4f}, {numbers['measures']}"
    return str(numbers["text"]).strip() if what in ("started", "said") else f"{what}: {numbers['text']}"


def shown(file: TextIO) -> Line:
    """The line for this terminal, notebook or file."""
    return Line(file, redraws=_redraws(file))


def _redraws(file: TextIO) -> bool:
    in_notebook = type(file).__module__.startswith("ipykernel")
    return in_notebook or file.isatty()
