"""What a training frees stays with the process until it is over, and no longer."""

import ctypes
import resource
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tasks.allocator import freed_memory_kept

STEPS = """
import resource
from contextlib import nullcontext
from pathlib import Path
import numpy as np
from tasks.allocator import freed_memory_kept

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
kept, after = faults(freed_memory_kept()), resident()
print(usual, kept, (after - before) / PAGES, faults(nullcontext()))
"""


def of_glibc() -> bool:
    return sys.platform == "linux" and hasattr(ctypes.CDLL(None), "malloc_trim")


@pytest.mark.skipif(not of_glibc(), reason="the allocator is another")
def test_a_step_finds_the_pages_that_the_one_before_had_and_they_are_given_back_at_the_end() -> None:
    said = subprocess.run([sys.executable, "-c", STEPS], check=True, capture_output=True, text=True).stdout
    usual, kept, left, afterwards = map(float, said.split())
    assert usual > 15  # of 20 steps: what this is for
    assert kept < 0.5
    assert left < 0.5
    assert afterwards < 0.5  # within 64 MiB, where glibc's own rules end as well


@pytest.mark.parametrize("libc", [SimpleNamespace(), SimpleNamespace(mallopt=lambda *numbers: 1)])
def test_elsewhere_nothing_is_done(libc: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: libc)
    with freed_memory_kept():
        assert resource.getpagesize()


@pytest.mark.skipif(not of_glibc(), reason="the allocator is another")
def test_it_is_undone_where_a_training_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[int, ...]] = []

    def note(*numbers: int) -> int:
        said.append(numbers)
        return 1

    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace(mallopt=note, malloc_trim=note))
    with pytest.raises(RuntimeError), freed_memory_kept():
        raise RuntimeError
    assert said == [(-3, 32 * 2**20), (-1, -1), (-1, 64 * 2**20), (0,)]
