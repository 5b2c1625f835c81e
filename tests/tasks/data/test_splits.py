"""Examples in memory: order, augmentation and fingerprints."""

from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch
from torch import Generator

from expect import raises
from search_spaces.support.errors import Kind
from tasks.data.batches import Batch
from tasks.data.splits import TensorSplits, derived_seed, even_indices, shuffled_order
from tasks.load import load_task
from tasks.recipes.recipe import Recipe

CPU = torch.device("cpu")
RECIPE = Recipe(epochs=1, batch=4, lr=1.0)


def number_examples(examples: int, first: int = 0) -> Batch:
    return torch.arange(first, first + examples).float()[:, None], torch.arange(first, first + examples)


def jitter(batch: Batch, recipe: Recipe, generator: Generator) -> Batch:
    return batch[0] + torch.rand(batch[0].shape, generator=generator), batch[1]


SPLITS = TensorSplits(number_examples(10), number_examples(6, 100), number_examples(5, 200), augment=jitter)


def test_an_epoch_has_whole_batches_of_distinct_examples_in_a_new_order() -> None:
    labels = [batch[1].tolist() for batch, _ in islice(SPLITS.training_batches(RECIPE, 0, (), CPU), 4)]
    first, second = labels[0] + labels[1], labels[2] + labels[3]
    assert len(set(first)) == len(set(second)) == 8
    assert set(first) | set(second) <= set(range(10))
    assert first != second


def test_batches_resume_from_any_position() -> None:
    straight = list(islice(SPLITS.training_batches(RECIPE, 3, (), CPU), 7))
    for passes in range(1, 7):
        (inputs, labels), progress = next(SPLITS.training_batches(RECIPE, 3, straight[passes - 1][1], CPU))
        assert torch.equal(inputs, straight[passes][0][0])
        assert torch.equal(labels, straight[passes][0][1])
        assert progress == straight[passes][1]


def test_seeds_give_different_orders_and_draws() -> None:
    (first, order), _ = next(SPLITS.training_batches(RECIPE, 0, (), CPU))
    (second, other), _ = next(SPLITS.training_batches(RECIPE, 1, (), CPU))
    assert order.tolist() != other.tolist()
    assert not torch.equal(first - order[:, None], second - other[:, None])


def test_measured_examples_are_in_order_and_not_augmented() -> None:
    batches = list(SPLITS.evaluation_batches("validation", RECIPE, CPU))
    assert torch.cat([labels for _, labels in batches]).tolist() == list(range(100, 106))
    assert torch.cat([inputs for inputs, _ in batches])[:, 0].tolist() == list(range(100, 106))
    assert torch.cat([labels for _, labels in SPLITS.evaluation_batches("test", RECIPE, CPU)]).tolist() == list(
        range(200, 205)
    )


def test_a_recipe_may_measure_fewer_evenly_spread_examples() -> None:
    batches = SPLITS.evaluation_batches("validation", replace(RECIPE, measured=3), CPU)
    assert torch.cat([labels for _, labels in batches]).tolist() == [100, 102, 104]
    assert even_indices(10, 4).tolist() == [0, 2, 5, 7]


def test_inputs_are_encoded_after_augmentation() -> None:
    splits = replace(SPLITS, encode=lambda inputs: 1000 * inputs)
    (inputs, _), _ = next(splits.training_batches(RECIPE, 0, (), CPU))
    (plain, _), _ = next(SPLITS.training_batches(RECIPE, 0, (), CPU))
    assert torch.equal(inputs, 1000 * plain)


def test_fingerprint_depends_on_the_data() -> None:
    for part in ("train", "validation", "test"):
        inputs, labels = getattr(SPLITS, part)
        other_inputs = inputs.clone()
        other_inputs[-1] += 1
        assert replace(SPLITS, **{part: (other_inputs, labels)}).fingerprint != SPLITS.fingerprint
        assert replace(SPLITS, **{part: (inputs.double(), labels)}).fingerprint != SPLITS.fingerprint
        assert replace(SPLITS, **{part: (inputs.clone(), labels)}).fingerprint == SPLITS.fingerprint


def test_fingerprints_include_names_and_types() -> None:
    def of(*names: str, dtype: torch.dtype = torch.float32) -> str:
        inputs = {name: torch.full((2, 1), float(number), dtype=dtype) for number, name in enumerate(names)}
        return TensorSplits(*[(inputs, torch.arange(2))] * 3).fingerprint

    assert len({of("p", "q"), of("q", "p"), of("p", "q", dtype=torch.bfloat16), of("p", "q", dtype=torch.half)}) == 4
    assert load_task("digits-vit").fingerprint(None) == "07ec2a2be140"  # the fingerprint of plain data never changes


def test_random_numbers_for_different_purposes_differ() -> None:
    seeds = {derived_seed(*parts) for parts in ((0, "a", 1), (0, "a", 2), (0, "b", 1), (1, "a", 1), (0, "a", 1, 1))}
    assert len(seeds) == 5
    assert shuffled_order(20, 0, 1).tolist() != shuffled_order(20, 0, 2).tolist()
    assert sorted(shuffled_order(20, 0, 1).tolist()) == list(range(20))


@pytest.mark.parametrize(
    ("part", "kind", "fields"),
    [
        (None, "wrong-type", {"value": "NoneType"}),
        ((torch.zeros(3, 2),), "wrong-type", {"value": "tuple"}),
        ((np.zeros((3, 2)), torch.zeros(3)), "wrong-type", {"value": ("ndarray",)}),
        (({"x": torch.zeros(3, 2), "y": [1, 2, 3]}, torch.zeros(3)), "wrong-type", {"value": ("int",)}),
        ((torch.zeros(3, 2), torch.zeros(2)), "mismatch", {"value": (3, 2)}),
        (({"x": torch.zeros(3, 2), "y": torch.zeros(4)}, torch.zeros(3)), "mismatch", {"value": (3, 4, 3)}),
        ((torch.zeros(0, 2), torch.zeros(0)), "bad-data", {"value": 0}),
    ],
)
@pytest.mark.parametrize("name", ["train", "validation", "test"])
def test_parts_that_are_no_examples_are_named(name: str, part: Any, kind: Kind, fields: dict[str, Any]) -> None:
    parts = {"train": number_examples(3), "validation": number_examples(3), "test": number_examples(3), name: part}
    with raises(kind, option=name, **fields):
        TensorSplits(**parts)
