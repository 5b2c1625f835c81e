"""The shares of three processes, without starting any."""

from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Generator, Tensor

from grouped import grouped
from search_spaces.support.rank import ALONE, RankInfo
from tasks.data.batches import Batch
from tasks.data.image_splits import ImageSplits
from tasks.data.splits import Part, Splits, TensorSplits
from tasks.load import load_task
from tasks.recipes.recipe import Recipe
from tasks.run import Run
from tasks.training.supervised import SupervisedTask
from tasks.vision.imagenet import ImageNetRecipe, ImageNetViT

CPU = torch.device("cpu")
THREE = tuple(RankInfo(rank, 3) for rank in range(3))
RECIPE = ImageNetRecipe(steps=1, batch=6, lr=1.0, loaders=0)
KINDS = ("tensors", "images", "shards")


def pixels(image: Image.Image) -> Tensor:
    """A number that is unique to the image."""
    return torch.tensor(np.asarray(image.convert("RGB"), dtype=np.int64).sum())


def as_they_are(batch: Batch, recipe: Recipe, generator: Generator) -> Batch:
    return batch


@pytest.fixture
def splits(request: pytest.FixtureRequest) -> Splits:
    """Splits of one kind whose examples are unique numbers."""
    if request.param == "tensors":
        train, validation, test = (torch.arange(first, first + 25) for first in (0, 100, 200))
        return TensorSplits((train, train), (validation, validation), (test, test))
    folder: Path = request.getfixturevalue("image_folder" if request.param == "images" else "image_shards")
    splits = ImageNetViT(folder).load()
    assert isinstance(splits, ImageSplits)
    return replace(splits, eval_transform=pixels, train_transform=lambda recipe: pixels, augment=as_they_are)


def measured_examples(splits: Splits, part: Part, recipe: Any, share: RankInfo) -> Counter[int]:
    return Counter(int(x) for inputs, _ in splits.evaluation_batches(part, recipe, CPU, share) for x in inputs)


@pytest.mark.parametrize("splits", KINDS, indirect=True)
def test_processes_measure_every_example_exactly_once(splits: Splits) -> None:
    parts: tuple[Part, ...] = ("validation", "test")
    with grouped() as case:
        for limit in (0, 5):
            for part in parts:
                with case(f"{part}, measured={limit}"):
                    recipe = replace(RECIPE, measured=limit)
                    alone = measured_examples(splits, part, recipe, ALONE)
                    together = [measured_examples(splits, part, recipe, share) for share in THREE]
                    assert sum(together, Counter()) == alone
                    assert set(alone.values()) == {1}


@pytest.mark.parametrize("splits", KINDS, indirect=True)
def test_processes_share_every_micro_batch_without_overlap(splits: Splits) -> None:
    def batches(share: RankInfo) -> list[Counter[int]]:
        batches = islice(splits.training_batches(RECIPE, 0, (), CPU, share), 9)
        return [Counter(map(int, inputs)) for (inputs, _), _ in batches]

    together = [sum(parts, Counter()) for parts in zip(*map(batches, THREE), strict=True)]
    assert together == batches(ALONE)
    assert all(len(batch) == RECIPE.batch for batch in together)


def test_each_process_draws_its_own_dropout() -> None:
    task = load_task(f"{Path(__file__).parents[1]}/moons.py:Moons")
    assert isinstance(task, SupervisedTask)
    recipe = task.presets["smoke"]
    training = task.training(Run(architecture=task.base, recipe=recipe, seed=0), recipe, task.splits)
    with torch.random.fork_rng():
        draws = []
        for share in (ALONE, *THREE):
            training.rank_info = share
            training._seed_draws(0)
            draws.append(torch.rand(1).item())
    assert len(set(draws)) == 4
