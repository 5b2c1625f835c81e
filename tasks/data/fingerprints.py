"""Fingerprints of examples in any form."""

import hashlib
from collections.abc import Iterable, Mapping, Sized
from typing import Any

import numpy as np
import torch
from torch import Tensor

from search_spaces.support.errors import UserError
from tasks.data.splits import seeded_rng

_PLAIN = (str, bytes, int, float, bool, complex, type(None), np.generic)


def fingerprint_of(parts: Iterable[Iterable[Any]]) -> str:
    """Return twelve hex digits of all examples of all parts, in order; random draws are seeded.

    Examples are tensors, arrays, images, numbers or texts, or mappings and sequences of these.

    Raises:
        UserError: An example contains anything else.
    """
    digest = hashlib.sha256()
    for number, part in enumerate(parts):
        digest.update(f"part {number}".encode())
        with seeded_rng(number):
            for example in part:
                _add(digest, example)
    return digest.hexdigest()[:12]


def iter_examples(loader: Any) -> Iterable[Any]:
    """Return the examples of a loader's data set if it has random access, else its batches."""
    data = getattr(loader, "dataset", None)
    if isinstance(data, Sized) and hasattr(data, "__getitem__"):
        return (data[number] for number in range(len(data)))
    batches: Iterable[Any] = loader
    return batches


def _add(digest: "hashlib._Hash", value: Any) -> None:
    """Add a value's type, shape and bytes to a digest."""
    if isinstance(value, _PLAIN):
        digest.update(f"{value!r},".encode())
    elif isinstance(value, Tensor):
        digest.update(f"{value.dtype}{tuple(value.shape)}".encode())
        digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    elif isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"{value.dtype}{value.shape}".encode())
        digest.update(value.tobytes())
    elif isinstance(value, Mapping):
        for name, member in value.items():
            digest.update(f"{name!r}:".encode())
            _add(digest, member)
    elif isinstance(value, list | tuple | np.ndarray):
        digest.update(f"{len(value)}[".encode())
        for member in value:
            _add(digest, member)
    elif hasattr(value, "tobytes"):  # a Pillow image
        digest.update(f"{getattr(value, 'mode', '')}{getattr(value, 'size', '')}".encode())
        digest.update(value.tobytes())
    else:
        raise UserError(
            "wrong-type",
            f"examples must be tensors, arrays, numbers or text for a fingerprint, got {type(value).__name__}. "
            "Convert them, or override fingerprint(recipe) to return hex digits that change with the data.",
            option="examples",
            type=type(value).__name__,
        )
