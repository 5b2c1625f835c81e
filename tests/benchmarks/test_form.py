"""How every benchmark is run, and what it says where it measures nothing."""

import os
import sys

import pytest

from benchmarks import compiled_step
from benchmarks.form import Figure, main
from benchmarks.topology_step import TOPOLOGIES


def test_what_a_benchmark_starts_keeps_its_bytecode(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setattr(sys, "argv", ["toy"])
    main("toy", lambda quick: {"kept": Figure("PYTHONDONTWRITEBYTECODE" not in os.environ, "0 or 1", "higher", 1)})
    assert "reached" in capsys.readouterr().out


def test_nothing_is_compiled_with_quick_which_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    found = compiled_step.figures(quick=True)
    assert {figure.value for figure in found.values()} == {None}
    assert len(found) % len(TOPOLOGIES) == 0 < len(found)
    assert capsys.readouterr().out == "nothing is compiled with --quick: leave it out\n"
