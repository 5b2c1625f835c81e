"""Peak memory: what a function allocates at once, beyond what was there before."""

import torch

from nas.costs.profile.memory import peak_of

CPU = torch.device("cpu")
MIB = 2**20


def test_peak_counts_freed_memory_but_not_earlier_tensors() -> None:
    buffer = torch.ones(16 * MIB)
    assert 32 * MIB <= peak_of(lambda: torch.ones(8 * MIB).sum(), CPU) < 33 * MIB
    assert buffer.sum() == buffer.numel()


def test_tensors_alive_at_once_add_up_and_sequential_ones_do_not() -> None:
    def at_once() -> None:
        pair = torch.ones(MIB), torch.ones(MIB)
        assert len(pair) == 2

    def in_sequence() -> None:
        for _ in range(3):
            torch.ones(MIB)

    assert 8 * MIB <= peak_of(at_once, CPU) < 9 * MIB
    assert 4 * MIB <= peak_of(in_sequence, CPU) < 5 * MIB


def test_peak_is_reproducible() -> None:
    peaks = {peak_of(lambda: torch.ones(MIB).sum(), CPU) for _ in range(3)}
    assert len(peaks) == 1


def test_work_without_tensors_has_no_peak() -> None:
    assert peak_of(lambda: None, CPU) == 0
