"""Why an evaluation failed, in the words that its Row has, and a process that is clean for the next one."""

import errno
import gc
from collections.abc import Iterator
from contextlib import suppress

import torch

from results.records.row import Row
from search_spaces.support.errors import reason_of

OUT_OF_MEMORY, TIMED_OUT = "out-of-memory", "timed-out"
"""First words of the error of a Row that failed for lack of memory or time."""

_OUT_OF_MEMORY_TEXTS = (
    "can't allocate memory",
    "cannot allocate memory",
    "out of memory",
    "bad_alloc",
    "alloc_failed",
    "failed to map segment",
)
"""Parts of messages of torch, its libraries and the operating system where memory is short, in small letters."""

_ON_GPUS = ("cuda", "cublas", "cudnn")
"""Names in messages of errors on a GPU, in small letters."""


def reason_of_failure(error: BaseException) -> str:
    """An error as `errors.reason_of` has it, behind "out-of-memory:" where that is what it was."""
    reason = reason_of(error)
    return f"{OUT_OF_MEMORY}: {reason}" if _is_out_of_memory(error) else reason


def ran_out_of_memory(row: Row) -> bool:
    """Whether an evaluation failed because the memory of host or GPU was short."""
    return (row.error or "").startswith(OUT_OF_MEMORY)


def is_gpu_error(row: Row) -> bool:
    """Whether an evaluation failed by what CUDA or its libraries say, which short memory makes say much."""
    return row.status == "failed" and any(name in (row.error or "").lower() for name in _ON_GPUS)


def clean_up(row: Row) -> None:
    """Give back what an evaluation has left of a GPU, which others may share, and of memory where it ran out of it."""
    on_gpu = torch.cuda.is_initialized()
    if on_gpu or ran_out_of_memory(row):
        gc.collect()
    if on_gpu:
        with suppress(RuntimeError):  # what broke CUDA in this process was said where it did
            torch.cuda.empty_cache()


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    if isinstance(error, ImportError):  # a package may say anything of why it could not be loaded whole
        return any(text in str(cause).lower() for cause in _with_causes(error) for text in _OUT_OF_MEMORY_TEXTS)
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, RuntimeError) and any(text in str(error).lower() for text in _OUT_OF_MEMORY_TEXTS)


def _with_causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and those that it came of."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
