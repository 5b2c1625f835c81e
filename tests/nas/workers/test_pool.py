"""Where evaluations run, how many at once, and the GPUs of each process."""

import os
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from expect import raises
from nas.workers import local_processes, pool
from nas.workers.gpu_load import GpuLoad
from nas.workers.local_processes import SingleProcessPool
from nas.workers.pool import ThisProcess, make_pool
from nas.workers.resources import AUTO, Resources
from nas.workers.shared_gpus import SharedGpus


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of GPUs that this machine seems to have; tests change it."""
    number = [3]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: number[0])
    return number


def test_each_process_sees_its_own_gpus(gpus: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    values: list[Any] = []
    monkeypatch.setattr(local_processes, "ProcessPoolExecutor", lambda *of, **how: values.append(how["initargs"]))

    def visible(slot: int, each: float | None) -> str | None:
        SingleProcessPool(slot, None, each)
        devices: str | None = values.pop()[0]
        return devices

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,7")
    for each in (None, 0.5, 1.0):
        assert [visible(slot, each) for slot in range(5)] == ["4", "5", "7", "4", "5"]
    assert visible(0, 2.0) == "4,5"
    assert visible(3, 0.0) == ""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert [visible(slot, None) for slot in range(3)] == ["0", "1", "2"]
    for gpus[0] in (0, 1):
        assert visible(1, None) is None  # there is no choice


def test_default_is_one_worker_a_gpu_or_a_core(gpus: list[int]) -> None:
    assert pool.default_workers() == 3
    assert [pool.default_workers(each) for each in (0.5, 1.0, 2.0)] == [6, 3, 1]
    assert 1 <= pool.default_workers(0.0) <= (os.cpu_count() or 1)
    gpus[0] = 0
    assert 1 <= pool.default_workers() <= (os.cpu_count() or 1)


def test_more_gpus_than_the_machine_has_is_an_error(gpus: list[int]) -> None:
    with raises("out-of-range", option="--trial-gpus", value=2.0, workers=2, most=1):
        make_pool(Resources(2, trial_gpus=2.0), 8)
    with make_pool(Resources(trial_gpus=0.5), 8) as pool:
        assert pool.capacity == 6
    gpus[0] = 0
    for share in (0.5, AUTO):
        with raises("needs-system", option="--trial-gpus", value=share):
            make_pool(Resources(1, trial_gpus=share), 8)
    assert isinstance(make_pool(Resources(1), 8), ThisProcess)


def test_gpus_of_a_cluster_are_not_shared_by_load() -> None:
    with raises("conflict", option="--trial-gpus", value=AUTO, workers="ray"):
        make_pool(Resources("ray", trial_gpus=AUTO), 8)


@pytest.mark.usefixtures("gpus")
def test_shared_gpus_run_at_most_as_many_as_cores_workers_or_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = SimpleNamespace(bound=0)

    def make_shared_gpus(number: int, bound: int, *limits: Any) -> SharedGpus:
        arguments.bound = bound
        return SharedGpus(number, bound, *limits, read=lambda gpu: GpuLoad(0.0, 0.0))

    monkeypatch.setattr(pool.joblib, "cpu_count", lambda only_physical_cores: 8)
    monkeypatch.setattr(pool, "SharedGpus", make_shared_gpus)
    for resources, trials, at_first, at_most in (
        (Resources(trial_gpus=AUTO), 100, 3, 8),
        (Resources(trial_gpus=AUTO, threads=4), 100, 3, 3),
        (Resources(2, trial_gpus=AUTO), 100, 2, 2),
        (Resources(trial_gpus=AUTO), 2, 2, 2),
    ):
        assert (make_pool(resources, trials).capacity, arguments.bound) == (at_first, at_most)
