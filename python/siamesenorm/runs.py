"""Training and comparing from Python: the engine's own runs, in this process."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ._config import FOLDERS, Config, as_overrides, as_source
from ._native import binding
from ._progress import Progress, shown

Watcher = Callable[[str, dict[str, Any]], None]
"""Called with (what happened, its numbers): started, step, evaluated, saved, warned, and of a sweep said."""


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


def sweep(
    config: Config,
    *,
    out: str | Path = "",
    record: str | Path = "",
    fresh: bool = False,
    progress: bool | Watcher = True,
    **overrides: Any,
) -> dict[str, Any]:
    """Trains every run of a sweep, one after the other, and returns {"status": ..., "dir": ..., "report": ...}.

    config: a sweep file, the name of a shipped one ("sweeps/depth"), or a dict of the same shape: {"sweep": "mine",
    "config": "arithmetic-small", "variants": [{"model.residual": "pre"}, ...], "grid": {"optim.lr": [1e-3, 2e-3]}}.
    out: default runs/<name of the sweep>. record: the file in which runs that ended are noted; default: what the sweep
    names, unless an override changes results. fresh: what another build recorded or trained is trained again.
    Overrides are for all runs. What is recorded or finished is left as it is, what was stopped goes on; a run that
    diverges is a result. Ctrl-C saves the current run and raises KeyboardInterrupt; the same call goes on.
    `read_sweep` reads the results. Several runs at once are the command line's (`siamese sweep --jobs`).
    """
    is_text = isinstance(config, Mapping)
    source = json.dumps(dict(config), default=str) if isinstance(config, Mapping) else str(config)
    with _watching(progress) as watcher:
        told = dict(
            binding().sweep(
                source, is_text, as_overrides(overrides), FOLDERS, str(out), str(record), fresh, watcher
            )
        )  # fmt: skip
    return {**told, "report": Path(told["dir"]) / "report.html"}


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


def read_sweep(sweep: str | Path, *, frame: bool | None = None) -> dict[str, Any]:
    """What came of a sweep: {"name", "runs": ..., "results": ..., "summary"}.

    runs: a row for each run that is planned; results: a row for each variant and learning rate, means over the seeds
    with their sample standard deviations (`val_loss`, `val_loss_sd`, ...); both as columns by name, as in `read_run`.
    summary: the table as Markdown, with what is to be said about it. A number that is not there is NaN.
    """
    record = dict(binding().read_sweep(str(sweep)))
    record["results"] = _columns_of(record.pop("csv"))
    for table in ("runs", "results"):
        record[table] = _as_frame(record[table], frame)
    return record


def _columns_of(text: str) -> dict[str, Any]:
    """The engine's CSV: texts stay texts, everything else becomes numbers, an empty cell NaN."""
    head, *rows = csv.reader(io.StringIO(text))
    columns: dict[str, Any] = {}
    for index, name in enumerate(head):
        cells = [row[index] for row in rows]
        is_text = name in ("family", "variant")
        columns[name] = np.array(cells if is_text else [float(cell or "nan") for cell in cells])
    return columns


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
