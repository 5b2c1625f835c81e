"""Workers: how many, where, and which GPUs each of them has."""

import os
from typing import Any

import pytest
import torch

from nas.workers import local_processes, workers
from nas.workers.resources import Resources, fitting, resources_of
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
    with pytest.raises(UserError, match="0 GPUs"):
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


@pytest.mark.parametrize("gpus", [-1, 1.5, True, float("nan"), float("inf")])
def test_gpus_are_whole_or_a_share_of_one(gpus: Any) -> None:
    with pytest.raises(UserError, match=r"^--trial-gpus must be"):
        resources_of(1, 1, trial_gpus=gpus)
