"""Energy is the difference of NVML's counter over a window; without NVML, there is a reason."""

import sys
import time
from types import SimpleNamespace

import pytest
import torch

from nas.costs.profile import energy
from nas.costs.profile.energy import energy_of

GPU = torch.device("cuda")


class NVMLError(Exception):
    """pynvml's error."""


def test_energy_without_a_gpu_is_missing_and_not_zero() -> None:
    joules, reason = energy_of(lambda: None, torch.device("cpu"))
    assert joules is None
    assert reason


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A pynvml whose counter rises by 3 J, in mJ, between two readings."""
    counter = iter([5000, 8000])
    library = SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByUUID=lambda uuid: uuid,
        nvmlDeviceGetTotalEnergyConsumption=lambda handle: next(counter),
        NVMLError=NVMLError,
    )
    monkeypatch.setitem(sys.modules, "pynvml", library)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(uuid="1-2"))
    return library


@pytest.mark.usefixtures("nvml")
def test_energy_is_of_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])

    def call() -> None:
        clock[0] += 1.0

    monkeypatch.setattr(energy, "WINDOW_S", 6.0)
    assert energy_of(call, GPU) == (pytest.approx(0.5), "")


@pytest.mark.usefixtures("nvml")
def test_call_longer_than_the_window_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(energy, "WINDOW_S", 0.0)
    assert energy_of(lambda: None, GPU) == (pytest.approx(3.0), "")


def test_refusal_of_nvml_is_the_reason(nvml: SimpleNamespace) -> None:
    def refuse(handle: str) -> int:
        raise NVMLError("Not Supported")

    nvml.nvmlDeviceGetTotalEnergyConsumption = refuse
    joules, reason = energy_of(lambda: None, GPU)
    assert joules is None
    assert "Not Supported" in reason
