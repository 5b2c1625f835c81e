"""Whether another evaluation fits on a GPU, and errors of an unknown load."""

import sys
from types import SimpleNamespace

import pytest
import torch

from expect import raises
from nas.workers.gpu_load import ENOUGH_LOADS, GpuLoad, has_room_for_one_more, read_load

ROOM = [  # busy, memory, running evaluations, room
    (0.3, 0.1, 1, True),
    (0.45, 0.1, 1, True),
    (0.46, 0.1, 1, False),  # two would be busy 0.92 of the time
    (0.1, 0.5, 1, False),  # two would take all the memory
    (0.6, 0.2, 2, True),
    (0.62, 0.2, 2, False),
    (0.0, 0.8, 8, True),
    (0.0, 0.81, 8, False),
    (1.0, 0.1, 4, False),
]


def test_one_more_evaluation_needs_as_much_as_each_running_one() -> None:
    rooms = [
        (busy, memory, running, has_room_for_one_more([GpuLoad(busy, memory)] * ENOUGH_LOADS, running))
        for busy, memory, running, _ in ROOM
    ]
    assert rooms == ROOM


def test_time_counts_on_average_and_memory_at_its_peak() -> None:
    idle, full = [GpuLoad(0.0, 0.1)] * ENOUGH_LOADS, [GpuLoad(1.0, 0.1)]
    assert has_room_for_one_more([*idle, *full], 1)
    assert not has_room_for_one_more([*idle, GpuLoad(0.0, 0.6)], 1)


def test_too_few_measurements_give_no_room() -> None:
    assert not has_room_for_one_more([GpuLoad(0.0, 0.0)] * (ENOUGH_LOADS - 1), 1)


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Three GPUs, which NVML counts in reverse."""
    library = SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByUUID={f"GPU-uuid-{gpu}": gpu for gpu in range(3)}.__getitem__,
        nvmlDeviceGetMemoryInfo=lambda gpu: SimpleNamespace(used=10 * gpu, total=40),
        nvmlDeviceGetUtilizationRates=lambda gpu: SimpleNamespace(gpu=30 * gpu),
    )
    monkeypatch.setitem(sys.modules, "pynvml", library)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda gpu: SimpleNamespace(uuid=f"uuid-{gpu}"))
    return library


@pytest.mark.usefixtures("nvml")
def test_load_is_read_of_the_gpu_with_that_number() -> None:
    assert [read_load(gpu) for gpu in range(3)] == [GpuLoad(0.0, 0.0), GpuLoad(0.3, 0.25), GpuLoad(0.6, 0.5)]


def test_gpu_without_a_load_is_a_user_error(nvml: SimpleNamespace) -> None:
    def refuse(gpu: int) -> None:
        raise RuntimeError("Not Supported")

    nvml.nvmlDeviceGetUtilizationRates = refuse
    with raises("needs-system", option="--trial-gpus", value="auto", gpu=0, cause="RuntimeError") as error:
        read_load(0)
    assert "Not Supported" in str(error.value)


def test_missing_nvml_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with raises("needs-extra", option="--trial-gpus", value="auto", extra="gpu"):
        read_load(0)
