"""Targets and output of the benchmark of steps."""

import pytest
import torch

from benchmarks import topology_step


def test_quick_run_has_no_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology_step, "TOPOLOGIES", ("rmt", "rezero"))
    monkeypatch.setattr(topology_step, "available_device", lambda: torch.device("cpu"))
    monkeypatch.setattr(topology_step, "ratio_of", lambda *arguments: 1.0)
    monkeypatch.setattr(topology_step, "memory", lambda *arguments: 1)
    quick, full = topology_step.figures(quick=True), topology_step.figures(quick=False)
    assert list(quick) == list(full)
    assert {figure.target for figure in quick.values()} == {None}
    assert {name for name, figure in full.items() if figure.target is not None} == {
        "step_rmt_cpu_eager",
        "memory_rmt_cpu_recomputed",
        "memory_rezero_cpu_recomputed",
    }


def test_ratios_are_printed_immediately(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(topology_step, "TOPOLOGIES", ("rmt", "rezero"))
    monkeypatch.setattr(topology_step, "ratio_of", lambda *arguments: 1.0)
    ratios = topology_step.step_ratios(topology_step.CPU_SHAPES["cpu"], torch.device("cpu"), "eager", 1)
    assert next(ratios) == ("rmt", 1.0)
    assert capsys.readouterr().out.split() == ["eager", "256", "rmt", "1.000"]
