"""Peak memory: what a piece of work held at once, whatever it kept."""

import sys

import pytest
import torch

from nas.profiling.memory import peak_of


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process's peak")
def test_memory_that_was_given_back_counts_and_what_was_there_before_does_not() -> None:
    held = torch.ones(64 * 2**20)  # 256 MiB
    peak = peak_of(lambda: torch.ones(32 * 2**20).sum(), torch.device("cpu"))  # 128 MiB, gone at the end
    if peak is None:
        pytest.skip("this system does not let a process reset its peak")
    assert 100 * 2**20 <= peak <= 200 * 2**20
    assert held.sum() == held.numel()
