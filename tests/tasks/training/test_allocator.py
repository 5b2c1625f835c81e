"""What a training frees stays with the process until it is over, and no longer."""

import ctypes
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from torch import Tensor

from nas.costs.profile.profile import profile
from tasks.run import Run
from tasks.training import allocator
from tasks.training.allocator import keep_freed_memory
from tasks.vision.digits import DigitsViT

STEPS = """
import resource
from contextlib import nullcontext
from pathlib import Path
import numpy as np
from tasks.training.allocator import keep_freed_memory

PAGES = 16 * 2**21 // resource.getpagesize()  # of 16 arrays of 2 MiB; from 4 MiB on numpy asks for huge pages

def step():
    _ = [np.ones(2**18) for _ in range(16)]

def faults(around):
    with around:
        step(), step()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(20):
            step()
        return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / PAGES

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1])

usual, before = faults(nullcontext()), resident()
kept, after = faults(keep_freed_memory()), resident()
print(usual, kept, (after - before) / PAGES, faults(nullcontext()))
"""


def of_glibc() -> bool:
    return sys.platform == "linux" and hasattr(ctypes.CDLL(None), "malloc_trim")


HUGE = Path("/sys/kernel/mm/transparent_hugepage/enabled")

Calls = list[tuple[int, ...]]
KEPT = [(-3, 32 * 2**20), (-1, -1)]
UNDONE = [(-1, 64 * 2**20), (0,)]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """What the C library is told."""
    said: Calls = []

    def note(*numbers: int) -> int:
        said.append(numbers)
        return 1

    for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    library = SimpleNamespace(mallopt=note, malloc_trim=note)
    monkeypatch.setattr(allocator, "ctypes", SimpleNamespace(CDLL=lambda name: library))
    return said


@pytest.mark.skipif(not of_glibc(), reason="the allocator is another")
@pytest.mark.skipif(HUGE.exists() and "[always]" in HUGE.read_text(), reason="pages are huge")
def test_steps_reuse_pages_which_are_returned_at_the_end() -> None:
    said = subprocess.run([sys.executable, "-c", STEPS], check=True, capture_output=True, text=True).stdout
    usual, kept, left, afterwards = map(float, said.split())
    assert usual > 15  # of 20 steps: what this is for
    assert kept < 0.5
    assert left < 0.5
    assert afterwards < 0.5  # within 64 MiB, where glibc's own rules end as well


def test_a_failed_training_restores_the_allocator(calls: Calls) -> None:
    with pytest.raises(RuntimeError), keep_freed_memory():
        raise RuntimeError
    assert calls == KEPT + UNDONE


def test_the_outer_of_two_nested_contexts_restores(calls: Calls) -> None:
    with keep_freed_memory():
        with keep_freed_memory():
            pass
        assert calls == KEPT + KEPT
    assert calls == KEPT + KEPT + UNDONE


def test_settings_in_the_environment_win(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"):
        with monkeypatch.context() as patch:
            patch.setenv(name, "glibc.malloc.trim_threshold=1")
            with keep_freed_memory():
                pass
        assert not calls


def test_other_c_libraries_and_systems_are_left_alone(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    monkeypatch.setattr(allocator.ctypes, "CDLL", lambda name: SimpleNamespace(mallopt=lambda *numbers: told.append(1)))
    with keep_freed_memory():
        pass
    monkeypatch.setattr(sys, "platform", "darwin")
    with keep_freed_memory():
        pass
    assert not told
    assert not calls


class Watched(DigitsViT):
    """digits-vit, which looks at the thresholds at each loss."""

    def __init__(self, calls: Calls) -> None:
        super().__init__()
        self.calls, self.seen = calls, set[int]()

    def loss(self, outputs: Tensor, targets: Tensor, recipe: Any) -> Tensor:
        self.seen.add([numbers for numbers in self.calls if numbers[0] == -1][-1][1])
        return super().loss(outputs, targets, recipe)


def test_trainings_and_profiles_keep_freed_memory(calls: Calls) -> None:
    task = Watched(calls)
    recipe = replace(DigitsViT.presets["smoke"], epochs=0, steps=2, reports=1, measured=8)
    small = replace(task.base, depth=1)
    task.fit(Run(architecture=small, recipe=recipe, seed=0))
    assert task.seen == {-1}
    assert calls[-2:] == UNDONE
    task.seen.clear()
    profile(task, small, recipe, None, None)
    assert task.seen == {-1}
    assert calls[-2:] == UNDONE
