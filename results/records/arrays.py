"""Build Arrow arrays without `pyarrow.array`, which imports pandas: slower than a whole query."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def array(values: Sequence[Any], kind: type) -> pa.Array:
    """Build an array of int, float or str values; None becomes null.

    Non-finite numbers become null. Invalid Unicode becomes question marks.

    Raises:
        OverflowError: An integer beyond 64 bits.
        pyarrow.ArrowCapacityError: More than 2 GiB of text.
    """
    if kind is str:
        return _texts(values)
    if kind is float:
        numbers = np.array(values, dtype=np.float64)  # None becomes NaN
        return _with_nulls(pa.float64(), np.isfinite(numbers), numbers)
    valid = np.array([value is not None for value in values], dtype=bool)
    integers = np.array([0 if value is None else value for value in values], dtype=np.int64)
    return _with_nulls(pa.int64(), valid, integers)


def _texts(values: Sequence[str | None]) -> pa.Array:
    if len(set(values)) == 1:  # as in most columns of one study
        return _repeat(values[0], len(values))
    valid = np.array([value is not None for value in values], dtype=bool)
    texts = [value or "" for value in values]
    text = "".join(texts)
    if text.isascii():
        content, sizes = text.encode(), list(map(len, texts))
    else:
        contents = [text.encode("utf-8", "replace") for text in texts]  # a file name in an error may not be Unicode
        content, sizes = b"".join(contents), list(map(len, contents))
    _check(len(content))
    ends = np.concatenate([np.zeros(1, dtype=np.int32), np.cumsum(sizes, dtype=np.int32)])
    return _with_nulls(pa.string(), valid, ends, content)


def _repeat(text: str | None, times: int) -> pa.Array:
    content = (text or "").encode("utf-8", "replace")
    _check(len(content) * times)
    ends = np.arange(times + 1, dtype=np.int32) * np.int32(len(content))
    return _with_nulls(pa.string(), np.full(times, text is not None), ends, content * times)


def _check(size: int) -> None:
    if size > np.iinfo(np.int32).max:
        raise pa.ArrowCapacityError("a text column must have at most 2 GiB")


def _with_nulls(kind: pa.DataType, valid: NDArray[np.bool_], *content: NDArray[Any] | bytes) -> pa.Array:
    bits = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(valid), [bits, *map(pa.py_buffer, content)])
