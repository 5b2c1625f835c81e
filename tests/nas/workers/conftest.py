"""What tests of workers share: processes that are forked from the test's own, which begin in no time."""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def status_of_fork() -> Callable[[Callable[[], object]], int | None]:
    """Call a function in a fork of this process; its exit status, 1 where the function raises."""

    def run(function: Callable[[], object]) -> int | None:
        process = FORK.Process(target=function)
        process.start()
        process.join(60)
        return process.exitcode

    return run


class Forks(ProcessPoolExecutor):
    """A pool of loky's, as far as it is used, whose processes are forks."""

    def __init__(self, processes: int, *, context: Any, **how: Any) -> None:
        super().__init__(processes, mp_context=FORK, **how)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False, kill_workers: bool = False) -> None:
        """End them; none is at work where a test ends."""
        super().shutdown(wait, cancel_futures=cancel_futures)


@pytest.fixture
def forks() -> type[Forks]:
    return Forks
