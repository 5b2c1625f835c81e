"""Peak memory is what a piece of work holds at once, beside what was there before."""

import torch

from nas.costs.profile.memory import peak_of

CPU = torch.device("cpu")
MIB = 2**20


def test_peak_counts_freed_memory_and_not_what_was_held_before() -> None:
    held = torch.ones(16 * MIB)
    assert 32 * MIB <= peak_of(lambda: torch.ones(8 * MIB).sum(), CPU) < 33 * MIB
    assert held.sum() == held.numel()


def test_tensors_held_together_add_up_and_later_ones_do_not() -> None:
    def together() -> None:
        pair = torch.ones(MIB), torch.ones(MIB)
        assert len(pair) == 2

    def one_after_the_other() -> None:
        for _ in range(3):
            torch.ones(MIB)

    assert 8 * MIB <= peak_of(together, CPU) < 9 * MIB
    assert 4 * MIB <= peak_of(one_after_the_other, CPU) < 5 * MIB


def test_peak_is_reproducible() -> None:
    peaks = {peak_of(lambda: torch.ones(MIB).sum(), CPU) for _ in range(3)}
    assert len(peaks) == 1


def test_work_without_tensors_has_no_peak() -> None:
    assert peak_of(lambda: None, CPU) == 0
