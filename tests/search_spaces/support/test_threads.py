from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

from search_spaces import Architecture
from search_spaces.support.threads import cpu_threads
from tasks.run import Run
from tasks.training.loop import isolated_rng

SHAPE = Architecture(depth=1, width=4, hidden=4)


def threads() -> list[int]:
    blas = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
    return [torch.get_num_threads(), *blas]


@pytest.mark.parametrize(
    "of",
    [cpu_threads, lambda number: isolated_rng(Run(architecture=SHAPE, recipe=None, seed=0, threads=number))],
    ids=["computed", "trained"],
)
def test_threads_of_pytorch_and_blas_are_set_and_restored(
    of: Callable[[int], AbstractContextManager[None]],
) -> None:
    with threadpool_limits(3, "blas"):
        before = threads()
        with of(2):
            assert set(threads()) == {2}
        assert threads() == before
    assert 2 not in before
    assert len(before) > 1
