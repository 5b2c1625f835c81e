"""`nas reproduce figures`: what it prints and draws, and what it refuses."""

import csv
import io
import sys
from pathlib import Path

import pytest

from nas.cli import main
from nas.figures import Curve, Panel, low_rank, shortcut_layouts


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, paper in ((shortcut_layouts, "ancre"), (low_rank, "dca")):
        across = "steps" if paper == "ancre" else "layers"
        panel = Panel(paper, "2 (a)", "said", across, [Curve("net", [1, 7], [[0.5, 1.5], [-2.0, -3.0]])])
        monkeypatch.setattr(module, "panels", lambda panel=panel: [panel])


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["nas", "reproduce", *words])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def test_where_each_curve_ends_is_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "figures") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if "net" in line and "2 (a)" in line]
    assert lines == [
        ["ancre", "2", "(a)", "net", "7", "steps", "-2.50±0.50"],
        ["dca", "2", "(a)", "net", "7", "layers", "-2.50±0.50"],
    ]


def test_every_point_is_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ("figures", "--paper", "ancre", "--format", "csv", "--plot", str(tmp_path / "f.png"))
    assert run(monkeypatch, *words) == 0
    found = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [(line["paper"], line["steps"], line["log10_loss"]) for line in found] == [
        ("ancre", "1", "1"),
        ("ancre", "7", "-2.5"),
    ]
    assert (tmp_path / "f.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("figures --paper rmt", "`nas reproduce figures` has nothing of --paper rmt. Choose from: ancre, dca."),
        ("figures --plot f.xyz", "a picture must end in .png, .pdf, .svg, got 'f.xyz'."),
        ("params --plot f.png", "only figures are drawn, got --plot f.png for params. Leave it out."),
        ("figures --preset smoke", "only claims are trained, got --preset smoke for figures. Leave it out."),
    ],
)
def test_what_cannot_be_is_a_line(
    words: str, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, *words.split()) == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"nas: {line}"
