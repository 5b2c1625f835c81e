"""Preprocessing is recognized as mean and std of channels, and only if it equals them."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from nas.exporters.standardization import Standardization, standardization_of
from tasks.input_formats import ImageInputs
from tasks.vision.cifar10 import Cifar10ViT
from tasks.vision.digits import DigitsViT
from tasks.vision.imagenet import ImageNetViT

GREY, COLOR = (ImageInputs(channels=channels, height=8, width=8) for channels in (1, 3))


def test_tasks_have_their_published_numbers() -> None:
    assert standardization_of(DigitsViT().preprocess, GREY) == Standardization((0.305,), (0.376,))
    cifar10 = Standardization((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))
    assert standardization_of(Cifar10ViT().preprocess, COLOR) == cifar10
    imagenet = Standardization((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    assert standardization_of(ImageNetViT().preprocess, COLOR) == imagenet


def test_a_range_is_a_standardization() -> None:
    candidate = standardization_of(lambda images: images / 127.5 - 1, COLOR)
    assert candidate == Standardization((0.5,) * 3, (0.5,) * 3)
    images = COLOR.example()
    torch.testing.assert_close(candidate(images), images / 127.5 - 1)


OTHERS: dict[str, Callable[[Tensor], Tensor]] = {
    "gamma": lambda images: (images / 255) ** 2.2,
    "negative": lambda images: 1 - images / 255,
    "constant": lambda images: images * 0.0,
    "mirrored": lambda images: images.flip(-1) / 255,
    "size": lambda images: images[..., 1:] / 255,
    "channels": lambda images: images.flip(1) / 255,
    "row": lambda images: images / 255 + torch.arange(8)[:, None],
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_preprocessing_is_none(name: str) -> None:
    assert standardization_of(OTHERS[name], COLOR) is None
