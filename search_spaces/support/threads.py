"""The number of CPU threads per operator."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits


@contextmanager
def cpu_threads(threads: int) -> Iterator[None]:
    """Limit the threads of a CPU operator, in PyTorch and in a loaded BLAS such as NumPy's.

    Beside other trainings, BLAS threads wait for each other far longer than a small matrix product takes.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with threadpool_limits(threads, "blas"):
            yield
    finally:
        torch.set_num_threads(before)
