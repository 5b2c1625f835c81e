"""What is out of memory and what is another failure."""

import errno

import pytest
import torch

from nas.failures import clean_up, failed_on_a_gpu, reason_of_failure
from toy_rows import a_row


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("std::bad_alloc"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
    ],
)
def test_memory_that_was_short_is_said(error: BaseException) -> None:
    assert reason_of_failure(error).startswith(f"out-of-memory: {type(error).__name__}")


@pytest.mark.parametrize(
    ("error", "on_a_gpu"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), True),
        (MemoryError(), False),
        (
            RuntimeError("[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory"),
            False,
        ),
        (ValueError("no"), False),
    ],
)
def test_what_fails_on_a_gpu_is_told_from_the_rest(error: BaseException, on_a_gpu: bool) -> None:
    assert failed_on_a_gpu(a_row(status="failed", error=reason_of_failure(error))) is on_a_gpu
    assert not failed_on_a_gpu(a_row(error="CUDA"))


@pytest.mark.parametrize(("initialized", "emptied"), [(True, 1), (False, 0)])
def test_a_gpu_is_given_back_what_was_reserved_of_it(
    initialized: bool, emptied: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: initialized)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: calls.append(1))
    clean_up(a_row())
    assert len(calls) == emptied


def test_a_gpu_that_is_broken_takes_no_row_along(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("CUDA error: device-side assert triggered")

    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "empty_cache", broken)
    clean_up(a_row(status="failed", error="RuntimeError: CUDA error: device-side assert triggered"))


@pytest.mark.parametrize(
    "error", [RuntimeError("mat1 and mat2 cannot be multiplied"), OSError(errno.ENOSPC, "disk full"), SystemExit(3)]
)
def test_other_failures_are_not_blamed_on_memory(error: BaseException) -> None:
    assert reason_of_failure(error).startswith(type(error).__name__)


def test_a_package_that_memory_was_too_short_for_is_not_blamed_itself() -> None:
    error = ImportError("The scipy install you are using seems to be broken")
    assert reason_of_failure(error).startswith("ImportError")
    error.__cause__ = ImportError("_ccallback_c.so: failed to map segment from shared object")
    assert reason_of_failure(error).startswith("out-of-memory: ImportError")
    missing = ModuleNotFoundError("No module named 'nosuchpackage'")
    assert reason_of_failure(missing).startswith("ModuleNotFoundError")
