"""What is out of memory and what is another failure."""

import errno

import pytest
import torch

from nas.failures import ran_out_of_gpu_memory, reason_of_failure
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
    ("error", "of_a_gpu"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), True),
        (MemoryError(), False),
        (
            RuntimeError("[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory"),
            False,
        ),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), False),
    ],
)
def test_a_gpus_memory_is_told_from_the_hosts(error: BaseException, of_a_gpu: bool) -> None:
    assert ran_out_of_gpu_memory(a_row(status="failed", error=reason_of_failure(error))) is of_a_gpu
    assert not ran_out_of_gpu_memory(a_row())


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
