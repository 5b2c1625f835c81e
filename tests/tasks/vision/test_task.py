"""Splits and batch augmentation."""

from itertools import product

import torch
from torch import Generator, Tensor

from tasks.vision.task import MixRecipe, crop_and_flip, mix, stratify, warp


def generator_of(seed: int = 0) -> Generator:
    return Generator().manual_seed(seed)


LABELS = torch.tensor([0] * 40 + [1] * 20 + [2] * 41)


def test_parts_are_a_partition() -> None:
    parts = stratify(LABELS, (20, 10))
    assert [len(part) for part in parts] == [20, 10, 71]
    assert sorted(torch.cat(parts).tolist()) == list(range(101))


def test_every_part_has_the_class_proportions() -> None:
    for part in stratify(LABELS, (20, 10)):
        expected = LABELS.bincount() * len(part) / len(LABELS)
        assert (LABELS[part].bincount(minlength=3) - expected).abs().max() < 1.5


def test_splits_do_not_change() -> None:
    assert stratify(torch.arange(8) % 2, (4,))[0].tolist() == [6, 1, 2, 7]
    assert stratify(torch.arange(8) % 2, (4,), seed=1)[0].tolist() != [6, 1, 2, 7]


def test_a_crop_is_a_window_of_the_padded_image_or_its_mirror_image() -> None:
    images = torch.randint(1, 256, (50, 3, 6, 5), generator=generator_of(), dtype=torch.uint8)
    frames = torch.zeros(50, 3, 10, 9, dtype=torch.uint8)
    frames[:, :, 2:8, 2:7] = images
    crops = crop_and_flip(images, 2, generator_of(1))
    assert crops.shape == images.shape
    places = [_place(crop, wide) for crop, wide in zip(crops, frames, strict=True)]
    assert all(places)
    assert len(set(places)) > 25  # 50 places and mirror images


def _place(crop: Tensor, image: Tensor) -> tuple[int, int, bool] | None:
    for top in range(5):
        for column in range(5):
            window = image[:, top : top + 6, column : column + 5]
            for flip in (False, True):
                if torch.equal(crop, window.flip(-1) if flip else window):
                    return top, column, flip
    return None


def test_a_warp_of_nothing_changes_nothing() -> None:
    images = torch.rand(4, 1, 8, 8, generator=generator_of())
    assert torch.allclose(warp(images, 0, 0, 0, generator_of()), images, atol=1e-6)


def test_a_warp_rotates_about_the_center() -> None:
    image = torch.zeros(1, 1, 9, 9)
    image[0, 0, 4, :] = 1.0
    rotated_image = warp(image.expand(200, -1, -1, -1), 90, 0, 0, generator_of())
    assert torch.allclose(rotated_image[:, 0, 4, 4], torch.ones(200), atol=1e-5)
    assert rotated_image[:, 0, 0, 4].max() > 0.9  # some upright
    assert rotated_image[:, 0, 4, 0].max() > 0.9  # some turned


def test_a_warp_moves_at_most_by_the_limit() -> None:
    image = torch.zeros(1, 1, 21, 21)
    image[0, 0, 10, 10] = 1.0
    shifts = warp(image.expand(200, -1, -1, -1), 0, 2 / 21, 0, generator_of())[:, 0]
    mass = shifts.sum(dim=(1, 2))
    places = torch.arange(21.0)
    across = (shifts.sum(dim=1) * places).sum(dim=1) / mass - 10
    down = (shifts.sum(dim=2) * places).sum(dim=1) / mass - 10
    for distance in (across, down):
        assert 1.5 < distance.abs().max() <= 2 + 1e-4
        assert distance.min() < -1.5


def test_mixed_labels_are_the_shares_of_the_mixed_images() -> None:
    images = torch.zeros(6, 1, 10, 10)
    images[:3] = 1.0  # the mean of an image is its share of the first half
    labels = torch.tensor([1, 1, 1, 0, 0, 0])
    recipes = (
        MixRecipe(steps=1, batch=6, lr=1.0, mixup=1.0),
        MixRecipe(steps=1, batch=6, lr=1.0, cutmix=1.0),
        MixRecipe(steps=1, batch=6, lr=1.0, mixup=1.0, cutmix=1.0),
    )
    for recipe, seed in product(recipes, range(4)):
        mixtures, shares = mix((images.clone(), labels), recipe, 2, generator_of(seed))
        assert torch.allclose(shares.sum(dim=1), torch.ones(6))
        assert torch.allclose(shares[:, 1], mixtures.mean(dim=(1, 2, 3)), atol=1e-6)
        assert shares[0, 1] > 0


def test_without_mixing_a_batch_is_unchanged() -> None:
    batch = torch.rand(3, 1, 4, 4), torch.tensor([0, 1, 2])
    assert mix(batch, MixRecipe(steps=1, batch=3, lr=1.0), 3, generator_of()) is batch


def test_an_image_without_a_partner_is_left_out() -> None:
    batch = torch.rand(3, 1, 4, 4), torch.tensor([0, 1, 2])
    images, shares = mix(batch, MixRecipe(steps=1, batch=3, lr=1.0, mixup=1.0), 3, generator_of())
    assert len(images) == len(shares) == 2
