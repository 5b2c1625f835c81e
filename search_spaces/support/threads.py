"""How many threads an operator on the CPU has."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits


@contextmanager
def cpu_threads(threads: int) -> Iterator[None]:
    """So many threads for an operator on the CPU: PyTorch's, and those of a BLAS that is loaded, which is NumPy's.

    Beside other trainings, threads of a BLAS wait for each other many times longer than a small matrix takes.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with threadpool_limits(threads, "blas"):
            yield
    finally:
        torch.set_num_threads(before)
