"""Workers: how many, and which GPU each of them has."""

import os

import pytest
import torch

from nas import workers


def test_each_process_has_one_of_several_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,7")
    assert [workers._gpu(place) for place in range(5)] == ["4", "5", "7", "4", "5"]
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert [workers._gpu(place) for place in range(3)] == ["0", "1", "2"]


@pytest.mark.parametrize("gpus", [0, 1])
def test_where_there_is_nothing_to_choose_from_nothing_is_chosen(gpus: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    assert workers._gpu(1) is None


def test_as_many_evaluations_as_gpus_or_cores_where_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    assert workers.usual() == 3
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert 1 <= workers.usual() <= (os.cpu_count() or 1)
