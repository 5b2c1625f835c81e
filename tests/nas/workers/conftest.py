"""Fixtures of workers' tests: processes that are forked from the test's own, which start at once."""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def status_of_fork() -> Callable[[Callable[[], object]], int | None]:
    """Call a function in a fork; return its exit status, which is 1 if the function raises."""

    def run(function: Callable[[], object]) -> int | None:
        process = FORK.Process(target=function)
        process.start()
        process.join(60)
        return process.exitcode

    return run


class Forks(ProcessPoolExecutor):
    """A stand-in for loky's pool, whose processes are forks."""

    def __init__(self, processes: int, *, context: Any, **how: Any) -> None:
        super().__init__(processes, mp_context=FORK, **how)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False, kill_workers: bool = False) -> None:
        """End the processes, which are idle at the end of a test."""
        super().shutdown(wait, cancel_futures=cancel_futures)


@pytest.fixture
def forks() -> type[Forks]:
    return Forks
