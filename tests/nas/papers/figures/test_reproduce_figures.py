"""`nas reproduce figures`: tables, pictures, and errors of options."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from command_line import Command
from expect import raises
from grouped import grouped
from nas.cli.options import PaperQuantity
from nas.cli.papers.reproduce import compare_with_papers
from nas.papers.figures import Curve, Panel, low_rank, shortcut_layouts
from search_spaces.support.errors import Kind


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, paper in ((shortcut_layouts, "ancre"), (low_rank, "dca")):
        across = "steps" if paper == "ancre" else "layers"
        panel = Panel(paper, "2 (a)", "said", across, [Curve("net", [1, 7], [[0.5, 1.5], [-2.0, -3.0]])])
        monkeypatch.setattr(module, "panels", lambda panel=panel: [panel])


def test_table_has_the_end_of_each_curve(command: Command) -> None:
    result = command("reproduce", "figures")
    assert result.returncode == 0
    lines = [line.split() for line in result.stdout.splitlines() if "net" in line and "2 (a)" in line]
    assert lines == [
        ["ancre", "2", "(a)", "net", "7", "steps", "-2.50±0.50"],
        ["dca", "2", "(a)", "net", "7", "layers", "-2.50±0.50"],
    ]


def test_csv_has_every_point(command: Command, tmp_path: Path) -> None:
    result = command("reproduce", "figures", "--paper", "ancre", "--format", "csv", "--plot", str(tmp_path / "f.png"))
    assert result.returncode == 0
    points = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [(line["paper"], line["steps"], line["log10_loss"]) for line in points] == [
        ("ancre", "1", "1"),
        ("ancre", "7", "-2.5"),
    ]
    assert (tmp_path / "f.png").read_bytes()[:4] == b"\x89PNG"


MISTAKES: list[tuple[dict[str, Any], Kind, dict[str, Any]]] = [
    ({"paper": "rmt"}, "unsupported", {"option": "--paper", "value": "rmt", "choices": ("ancre", "dca")}),
    ({"plot": Path("f.xyz")}, "unsupported", {"path": "f.xyz", "choices": (".png", ".pdf", ".svg")}),
    ({"what": PaperQuantity.PARAMS, "plot": Path("f.png")}, "conflict", {"option": "--plot", "what": "params"}),
    ({"preset": "smoke"}, "conflict", {"option": "--preset", "value": "smoke", "what": "figures"}),
]


def test_impossible_options_are_errors() -> None:
    with grouped() as case:
        for arguments, kind, fields in MISTAKES:
            with case(str(arguments)), raises(kind, **fields):
                compare_with_papers(**{"what": PaperQuantity.FIGURES, **arguments})
