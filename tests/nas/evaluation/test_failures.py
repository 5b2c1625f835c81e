"""Out of memory and other failures."""

import errno

import pytest
import torch

from grouped import grouped
from nas.evaluation.failures import clean_up, is_gpu_error, reason_of_failure
from toy_rows import a_row

MEMORY_ERRORS = [
    MemoryError(),
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("std::bad_alloc"),
    OSError(errno.ENOMEM, "Cannot allocate memory"),
]
OTHER_ERRORS = [RuntimeError("mat1 and mat2 cannot be multiplied"), OSError(errno.ENOSPC, "disk full"), SystemExit(3)]


def test_only_errors_of_memory_are_called_out_of_memory() -> None:
    with grouped() as case:
        for error in MEMORY_ERRORS:
            with case(repr(error)):
                assert reason_of_failure(error).startswith(f"out-of-memory: {type(error).__name__}")
        for other in OTHER_ERRORS:
            with case(repr(other)):
                assert reason_of_failure(other).startswith(type(other).__name__)


FAILURES: list[tuple[Exception, bool]] = [
    (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB"), True),
    (RuntimeError("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`"), True),
    (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), True),
    (MemoryError(), False),
    (RuntimeError("[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory"), False),
    (ValueError("no"), False),
]
"""An error, and whether a GPU raised it."""


def test_gpu_errors_differ_from_others() -> None:
    with grouped() as case:
        for error, on_a_gpu in FAILURES:
            with case(repr(error)):
                assert is_gpu_error(a_row(status="failed", error=reason_of_failure(error))) is on_a_gpu
    assert not is_gpu_error(a_row(error="CUDA"))


def test_clean_up_frees_reserved_gpu_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    for has_context, count in ((True, 1), (False, 0)):
        calls = list[int]()
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda has_context=has_context: has_context)
        monkeypatch.setattr(torch.cuda, "empty_cache", lambda calls=calls: calls.append(1))
        clean_up(a_row())
        assert len(calls) == count


def test_a_broken_gpu_does_not_stop_the_clean_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_error() -> None:
        raise RuntimeError("CUDA error: device-side assert triggered")

    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "empty_cache", raise_error)
    clean_up(a_row(status="failed", error="RuntimeError: CUDA error: device-side assert triggered"))


def test_an_import_that_failed_for_lack_of_memory_is_out_of_memory() -> None:
    error = ImportError("The scipy install you are using seems to be broken")
    assert reason_of_failure(error).startswith("ImportError")
    error.__cause__ = ImportError("_ccallback_c.so: failed to map segment from shared object")
    assert reason_of_failure(error).startswith("out-of-memory: ImportError")
    missing = ModuleNotFoundError("No module named 'nosuchpackage'")
    assert reason_of_failure(missing).startswith("ModuleNotFoundError")
