"""Fingerprints of examples of all kinds."""

from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, TensorDataset

from expect import raises
from tasks.data.fingerprints import fingerprint_of, iter_examples

KINDS: list[Any] = [
    1,
    True,
    1.0,
    "1",
    None,
    [1],
    (1, [2]),
    {"a": 1},
    {"b": 1},
    np.float32(1),
    np.ones(2),
    np.ones(2, dtype=np.float32),
    np.array(["1", None], dtype=object),
    torch.ones(2),
    torch.ones(1, 2),
    torch.ones(2, dtype=torch.bfloat16),
    Image.new("L", (2, 1)),
    Image.new("L", (1, 2)),
]


def test_different_examples_have_different_fingerprints() -> None:
    fingerprints = [fingerprint_of([[value]]) for value in KINDS]
    assert len(set(fingerprints)) == len(KINDS)
    assert fingerprints == [fingerprint_of([[value]]) for value in KINDS]


def test_fingerprints_depend_on_parts_and_order() -> None:
    assert len({fingerprint_of(parts) for parts in ([[1, 2]], [[2, 1]], [[1], [2]], [[1, 2], []])}) == 4


def test_fingerprints_of_object_arrays_contain_no_addresses() -> None:
    first, second = (np.array([f"{text}!", None], dtype=object) for text in ("a" * 50, "a" * 50))
    assert fingerprint_of([[first]]) == fingerprint_of([[second]])


def test_unreadable_examples_are_refused() -> None:
    with raises("wrong-type", option="examples", type="object"):
        fingerprint_of([[object()]])


def test_indexable_data_is_read_example_by_example() -> None:
    data = TensorDataset(torch.arange(5))
    assert [int(example[0]) for example in iter_examples(DataLoader(data, 2, shuffle=True))] == [0, 1, 2, 3, 4]
    assert list(iter_examples([1, 2])) == [1, 2]


def test_fingerprints_of_random_examples_are_reproducible_and_move_no_generator() -> None:
    before = torch.get_rng_state()
    first, second = (fingerprint_of([(torch.randn(2) for _ in range(3))]) for _ in range(2))
    assert first == second
    assert torch.equal(torch.get_rng_state(), before)
