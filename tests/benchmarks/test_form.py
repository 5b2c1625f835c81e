"""What all benchmarks share: processes and output."""

import json
import os
import sys

import pytest

from benchmarks import compiled_step
from benchmarks.form import Figure, main
from benchmarks.topology_step import TOPOLOGIES


def test_benchmark_starts_processes_that_keep_bytecode(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr(sys, "argv", ["toy", "--json"])
    main("toy", lambda quick: {"kept": Figure("PYTHONDONTWRITEBYTECODE" not in os.environ, "0 or 1", "higher", 1)})
    assert json.loads(capsys.readouterr().out)["figures"]["kept"]["value"] == 1


def test_quick_compiles_nothing_and_prints_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    figures = compiled_step.figures(quick=True)
    assert {figure.value for figure in figures.values()} == {None}
    assert len(figures) % len(TOPOLOGIES) == 0 < len(figures)
    (line,) = capsys.readouterr().out.splitlines()
    assert "--quick" in line
