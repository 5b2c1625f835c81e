"""Workers: how many, where, and which GPUs each of them has."""

import os
from functools import partial
from typing import Any

import pytest
import torch

from nas.workers import local_processes, workers
from nas.workers.gpu_load import GpuLoad
from nas.workers.resources import AUTO, Resources, fitting, resources_of
from nas.workers.shared_gpus import SharedGpus
from nas.workers.workers import ThisProcess, pool_of
from search_spaces.errors import UserError


def test_each_process_has_one_of_several_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,7")
    for gpus in (None, 0.5, 1.0):
        assert [local_processes._gpus(place, gpus) for place in range(5)] == ["4", "5", "7", "4", "5"]
    assert local_processes._gpus(0, 2.0) == "4,5"
    assert local_processes._gpus(3, 0.0) == ""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert [local_processes._gpus(place, None) for place in range(3)] == ["0", "1", "2"]


@pytest.mark.parametrize("gpus", [0, 1])
def test_where_there_is_nothing_to_choose_from_nothing_is_chosen(gpus: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    assert local_processes._gpus(1, None) is None


def test_as_many_evaluations_as_gpus_or_cores_where_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    assert workers.usual() == 3
    assert [workers.usual(gpus) for gpus in (0.5, 1.0, 2.0)] == [6, 3, 1]
    assert 1 <= workers.usual(0.0) <= (os.cpu_count() or 1)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert 1 <= workers.usual() <= (os.cpu_count() or 1)


@pytest.mark.parametrize(
    ("there", "each", "room"), [(4, 1, 4), (4, 3, 1), (4, 0.5, 8), (3, 0.4, 6), (2, 1 / 3, 6), (1, 2, 0), (2, 0.1, 20)]
)
def test_a_share_of_a_gpu_is_of_one_gpu(there: int, each: float, room: int) -> None:
    assert fitting(there, each) == room


def test_more_gpus_than_there_are_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    with pytest.raises(UserError, match=r"^--trial-gpus 2 .* 2: 3 GPUs, room for 1"):
        pool_of(Resources(2, gpus=2.0), 8)
    with pool_of(Resources(gpus=0.5), 8) as pool:
        assert pool.capacity == 6
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(UserError, match=r"^--trial-gpus 0\.5 is for GPUs, and this machine has none\. Leave it out\.$"):
        pool_of(Resources(1, gpus=0.5), 8)
    assert isinstance(pool_of(Resources(1), 8), ThisProcess)


@pytest.mark.parametrize(
    ("asked", "workers"),
    [(None, None), (3, 3), ("3", 3), ("ray", "ray"), ("ray://10.0.0.1:10001", "ray://10.0.0.1:10001")],
)
def test_workers_are_a_number_or_a_cluster(asked: Any, workers: Any) -> None:
    assert resources_of(asked, 1).workers == workers


@pytest.mark.parametrize("asked", [0, -1, "0", 1.5, True, "two", "rays", "ray:", "ray://", "ray://host", "ray:10001"])
def test_workers_that_are_neither_are_refused(asked: Any) -> None:
    with pytest.raises(UserError, match=r"^--workers must be a whole number of at least 1, ray, or ray://HOST:PORT"):
        resources_of(asked, 1)


@pytest.mark.parametrize(
    ("asked", "gpus"), [(None, None), (0, 0.0), (2, 2.0), ("2", 2.0), (0.5, 0.5), (" .25", 0.25), (" auto", "auto")]
)
def test_gpus_are_whole_or_a_share_of_one(asked: Any, gpus: Any) -> None:
    assert resources_of(1, 1, trial_gpus=asked).gpus == gpus


@pytest.mark.parametrize("gpus", [-1, 1.5, True, float("nan"), float("inf"), "", "all", "1e3", "1_0", "Auto"])
def test_gpus_that_are_neither_are_refused(gpus: Any) -> None:
    with pytest.raises(
        UserError, match=r"^--trial-gpus must be a whole number, a share of a GPU such as 0\.5, or auto"
    ):
        resources_of(1, 1, trial_gpus=gpus)


def test_gpus_are_shared_where_there_are_any_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(UserError, match=r"^--trial-gpus auto is for GPUs, and this machine has none\. Leave it out\.$"):
        pool_of(Resources(gpus=AUTO), 8)


def test_a_cluster_is_told_a_share() -> None:
    pytest.importorskip("ray")
    with pytest.raises(UserError, match=r"^--trial-gpus auto is for this machine's GPUs\."):
        pool_of(Resources("ray", gpus=AUTO), 8)


@pytest.mark.parametrize(
    ("resources", "trials", "at_first", "at_most"),
    [
        (Resources(gpus=AUTO), 100, 3, 8),
        (Resources(gpus=AUTO, threads=4), 100, 3, 3),
        (Resources(2, gpus=AUTO), 100, 2, 2),
        (Resources(gpus=AUTO), 2, 2, 2),
    ],
)
def test_gpus_are_shared_by_no_more_than_cores_workers_or_evaluations(
    resources: Resources, trials: int, at_first: int, at_most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(workers.joblib, "cpu_count", lambda only_physical_cores: 8)
    monkeypatch.setattr(workers, "SharedGpus", partial(SharedGpus, read=lambda gpu: GpuLoad(0.0, 0.0)))
    pool = pool_of(resources, trials)
    assert isinstance(pool, SharedGpus)
    assert (pool.capacity, pool._bound) == (at_first, at_most)
