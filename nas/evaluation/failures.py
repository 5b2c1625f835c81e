"""The reason of a failed evaluation, as its Row has it, and the cleanup of the process."""

import errno
import gc
from collections.abc import Iterator
from contextlib import suppress

import torch

from results.records.row import Row
from search_spaces.support.errors import reason_of

OUT_OF_MEMORY, TIMED_OUT = "out-of-memory", "timed-out"
"""Prefixes of the error of a Row that failed for lack of memory or time."""

_OUT_OF_MEMORY_TEXTS = (
    "can't allocate memory",
    "cannot allocate memory",
    "out of memory",
    "bad_alloc",
    "alloc_failed",
    "failed to map segment",
)
"""Parts of out-of-memory messages of torch, its libraries and the operating system, in lower case."""

_ON_GPUS = ("cuda", "cublas", "cudnn")
"""Names in messages of GPU errors, in lower case."""


def reason_of_failure(error: BaseException) -> str:
    """Return `errors.reason_of` an error, with the prefix "out-of-memory:" if memory ran out."""
    reason = reason_of(error)
    return f"{OUT_OF_MEMORY}: {reason}" if _is_out_of_memory(error) else reason


def ran_out_of_memory(row: Row) -> bool:
    """Return whether an evaluation failed because host or GPU memory ran out."""
    return (row.error or "").startswith(OUT_OF_MEMORY)


def is_gpu_error(row: Row) -> bool:
    """Return whether an evaluation failed with an error of CUDA or its libraries, often a symptom of low memory."""
    return row.status == "failed" and any(name in (row.error or "").lower() for name in _ON_GPUS)


def clean_up(row: Row) -> None:
    """Free GPU memory, which others may share, and host memory if the evaluation ran out of it."""
    on_gpu = torch.cuda.is_initialized()
    if on_gpu or ran_out_of_memory(row):
        gc.collect()
    if on_gpu:
        with suppress(RuntimeError):  # a broken CUDA context was reported by the evaluation
            torch.cuda.empty_cache()


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    if isinstance(error, ImportError):  # a package may raise it with any text
        return any(text in str(cause).lower() for cause in _with_causes(error) for text in _OUT_OF_MEMORY_TEXTS)
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, RuntimeError) and any(text in str(error).lower() for text in _OUT_OF_MEMORY_TEXTS)


def _with_causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and the errors that caused it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
