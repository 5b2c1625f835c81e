"""How many threads there are while something is computed; trainings are in test_supervised."""

import torch
from threadpoolctl import threadpool_info, threadpool_limits

from tasks.threads import threads_on_the_cpu


def threads() -> list[int]:
    blas = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
    return [torch.get_num_threads(), *blas]


def test_pytorch_and_numpy_have_so_many_and_then_as_many_as_before() -> None:
    with threadpool_limits(3, "blas"):
        before = threads()
        with threads_on_the_cpu(2):
            assert set(threads()) == {2}
        assert threads() == before
    assert 2 not in before
    assert len(before) > 1
