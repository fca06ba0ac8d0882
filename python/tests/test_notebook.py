"""The notebook of the docs runs as it stands, and is committed as it ran."""

from __future__ import annotations

import re

import nbformat
from conftest import REPOSITORY
from nbclient import NotebookClient

NOTEBOOK = REPOSITORY / "examples" / "python" / "compare.ipynb"


def printed(notebook: nbformat.NotebookNode) -> str:
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return "".join(output["text"] for output in outputs if output.output_type == "stream" and output.name == "stdout")


def pictures(notebook: nbformat.NotebookNode) -> int:
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return sum("image/png" in output.get("data", {}) for output in outputs)


def test_it_runs() -> None:
    committed = nbformat.read(NOTEBOOK, as_version=4)
    fresh = nbformat.from_dict(committed)
    for cell in fresh.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    where = {"metadata": {"path": str(NOTEBOOK.parent)}}
    NotebookClient(fresh, timeout=600, kernel_name="python3", resources=where).execute()
    for notebook in (committed, fresh):
        losses = dict(re.findall(r"^(pre|siamese) .* held-out loss ([\d.]+)$", printed(notebook), re.M))
        assert losses.keys() == {"pre", "siamese"}
        assert all(1.0 < float(loss) < 3.5 for loss in losses.values()), losses  # it began at log(256) = 5.5
        assert pictures(notebook) == 1
        numbers = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
        assert numbers == list(range(1, len(numbers) + 1))
