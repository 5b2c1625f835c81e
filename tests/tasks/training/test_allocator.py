"""Freed memory stays in the process until the training ends."""

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

PAGES = 16 * 2**21 // resource.getpagesize()  # 16 arrays of 2 MiB; from 4 MiB on numpy uses huge pages

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
KEEP_OPTIONS = [(-3, 32 * 2**20), (-1, -1)]
UNDONE = [(-1, 64 * 2**20), (0,)]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Recorded calls of mallopt."""
    options: Calls = []

    def note(*numbers: int) -> int:
        options.append(numbers)
        return 1

    for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    library = SimpleNamespace(mallopt=note, malloc_trim=note)
    monkeypatch.setattr(allocator, "ctypes", SimpleNamespace(CDLL=lambda name: library))
    return options


@pytest.mark.skipif(not of_glibc(), reason="the allocator is another")
@pytest.mark.skipif(HUGE.exists() and "[always]" in HUGE.read_text(), reason="pages are huge")
def test_steps_reuse_pages_which_are_returned_at_the_end() -> None:
    output = subprocess.run([sys.executable, "-c", STEPS], check=True, capture_output=True, text=True).stdout
    usual, during, after_steps, afterwards = map(float, output.split())
    assert usual > 15  # over 20 steps
    assert during < 0.5
    assert after_steps < 0.5
    assert afterwards < 0.5  # within 64 MiB, like glibc's own limit


def test_a_failed_training_restores_the_allocator(calls: Calls) -> None:
    with pytest.raises(RuntimeError), keep_freed_memory():
        raise RuntimeError
    assert calls == KEEP_OPTIONS + UNDONE


def test_the_outer_context_restores_the_allocator(calls: Calls) -> None:
    with keep_freed_memory():
        with keep_freed_memory():
            pass
        assert calls == KEEP_OPTIONS + KEEP_OPTIONS
    assert calls == KEEP_OPTIONS + KEEP_OPTIONS + UNDONE


def test_settings_in_the_environment_win(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"):
        with monkeypatch.context() as patch:
            patch.setenv(name, "glibc.malloc.trim_threshold=1")
            with keep_freed_memory():
                pass
        assert not calls


def test_other_c_libraries_and_systems_are_not_changed(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[int] = []
    monkeypatch.setattr(allocator.ctypes, "CDLL", lambda name: SimpleNamespace(mallopt=lambda *numbers: log.append(1)))
    with keep_freed_memory():
        pass
    monkeypatch.setattr(sys, "platform", "darwin")
    with keep_freed_memory():
        pass
    assert not log
    assert not calls


class RecordingTask(DigitsViT):
    """A digits-vit that records the threshold at each loss."""

    def __init__(self, calls: Calls) -> None:
        super().__init__()
        self.calls, self.thresholds = calls, set[int]()

    def loss(self, outputs: Tensor, targets: Tensor, recipe: Any) -> Tensor:
        self.thresholds.add([numbers for numbers in self.calls if numbers[0] == -1][-1][1])
        return super().loss(outputs, targets, recipe)


def test_trainings_and_profiles_keep_freed_memory(calls: Calls) -> None:
    task = RecordingTask(calls)
    recipe = replace(DigitsViT.presets["smoke"], epochs=0, steps=2, reports=1, measured=8)
    small = replace(task.base, depth=1)
    task.fit(Run(architecture=small, recipe=recipe, seed=0))
    assert task.thresholds == {-1}
    assert calls[-2:] == UNDONE
    task.thresholds.clear()
    profile(task, small, recipe, None, None)
    assert task.thresholds == {-1}
    assert calls[-2:] == UNDONE
