"""Training and comparing from Python: the engine's own runs, in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ._config import FOLDERS, Config, as_overrides, as_source
from ._native import binding
from ._progress import Progress, shown

Watcher = Callable[[str, dict[str, Any]], None]
"""Called with (what happened, its numbers): started, step, evaluated, saved, warned."""


def train(
    config: Config,
    *,
    out: str | Path,
    overwrite: bool = False,
    progress: bool | Watcher = True,
    **overrides: Any,
) -> dict[str, Any]:
    """Trains a model into the new run directory `out` and returns {"status": ..., "dir": ...}.

    config: a recipe, a YAML file or a dict; overrides as keywords: `train("arithmetic-small", out="runs/pre",
    model__residual="pre", optim__lr=2e-3)`. progress: a line on a terminal or in a notebook, False for none, or a
    function of your own. Ctrl-C saves after the current step and raises KeyboardInterrupt; `resume` goes on.
    """
    source, is_text = as_source(config)
    text = binding().resolve_config(source, is_text, as_overrides(overrides), FOLDERS)
    with _watching(progress) as watcher:
        return dict(binding().train(text, str(out), overwrite, watcher))


def resume(
    run: str | Path, *, accept_changed_data: bool = False, progress: bool | Watcher = True
) -> dict[str, Any]:
    """Goes on with a run that was stopped or killed, to the same bits."""
    with _watching(progress) as watcher:
        return dict(binding().resume(str(run), accept_changed_data, watcher))


def report(run_or_sweep: str | Path) -> Path:
    """Writes report.html about a run or a sweep; returns its path."""
    return Path(binding().report(str(run_or_sweep)))


def _watching(progress: bool | Watcher) -> Progress:
    return shown(sys.stderr) if progress is True else Progress(progress or None)


def read_run(run: str | Path, *, frame: bool | None = None) -> dict[str, Any]:
    """What a run recorded: {"steps": ..., "evals": ..., "status", "scheme", "family", "parameters", "config", "notes"}.

    steps and evals are columns by name: numpy arrays in a dict, or a pandas DataFrame where pandas is installed (frame
    True or False asks for one or the other). A number that was not recorded is NaN; notes say what could not be read.
    """
    record = dict(binding().read_run(str(run)))
    for table in ("steps", "evals"):
        record[table] = _as_frame(record[table], frame)
    return record


def _as_frame(columns: Mapping[str, Any], frame: bool | None) -> Any:
    if frame is False:
        return dict(columns)
    try:
        import pandas
    except ImportError:
        if frame:
            raise
        return dict(columns)
    return pandas.DataFrame(columns)
