"""The notebook of the documentation runs, and its results show tables and pictures."""

import re
from ast import literal_eval
from pathlib import Path
from typing import Any

import pytest

from doc_pages import ROOT

nbformat = pytest.importorskip("nbformat", reason="nbformat is in the extra `test`")
NotebookClient: Any = pytest.importorskip("nbclient", reason="nbclient is in the extra `test`").NotebookClient


def html_of(cell: Any) -> str:
    """The HTML that a cell shows."""
    return "".join(output.get("data", {}).get("text/html", "") for output in cell.outputs)


def test_stored_results_name_no_folder_of_a_machine() -> None:
    assert not re.search(r"/(?:tmp|root|home|work)/", (ROOT / "docs" / "first_search.ipynb").read_text())


@pytest.mark.outside
def test_notebook_runs_and_shows_results(tmp_path: Path) -> None:
    notebook = nbformat.read(ROOT / "docs" / "first_search.ipynb", as_version=4)
    search = next(cell for cell in notebook.cells if "nas.search(" in cell.source)
    search.source = search.source.replace("trials=12", 'trials=3, settings={"epochs": 1}')
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": tmp_path}}).execute()
    by_source = {cell.source: cell for cell in notebook.cells if cell.cell_type == "code"}
    study, comparison = by_source["study"], next(cell for text, cell in by_source.items() if "nas.compare(" in text)
    for cell in (study, comparison):
        assert "<table" in html_of(cell)
        assert "data:image/png;base64," in html_of(cell)
    assert "accuracy" in html_of(next(cell for text, cell in by_source.items() if text.endswith("\nrow")))
    accuracies = next(cell for text, cell in by_source.items() if "torch.export.load" in text)
    exported, trained = literal_eval(accuracies.outputs[-1]["data"]["text/plain"])
    assert abs(exported - trained) < 0.01  # bytes are rounded
