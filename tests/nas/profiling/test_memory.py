"""Peak memory: what a piece of work held at once, whatever it kept and whatever was there before."""

import torch

from nas.profiling.memory import peak_of

CPU = torch.device("cpu")
MIB = 2**20


def test_memory_that_was_given_back_counts_and_what_was_there_before_does_not() -> None:
    held = torch.ones(16 * MIB)
    assert 32 * MIB <= peak_of(lambda: torch.ones(8 * MIB).sum(), CPU) < 33 * MIB
    assert held.sum() == held.numel()


def test_what_is_held_together_adds_up_and_what_follows_does_not() -> None:
    def together() -> None:
        pair = torch.ones(MIB), torch.ones(MIB)
        assert len(pair) == 2

    def one_after_the_other() -> None:
        for _ in range(3):
            torch.ones(MIB)

    assert 8 * MIB <= peak_of(together, CPU) < 9 * MIB
    assert 4 * MIB <= peak_of(one_after_the_other, CPU) < 5 * MIB


def test_the_same_work_has_the_same_peak_each_time() -> None:
    peaks = {peak_of(lambda: torch.ones(MIB).sum(), CPU) for _ in range(3)}
    assert len(peaks) == 1


def test_work_without_tensors_has_none() -> None:
    assert peak_of(lambda: None, CPU) == 0
