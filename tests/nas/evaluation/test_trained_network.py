"""Networks as users call them: evaluation mode, preprocessing, and inputs that do not fit."""

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from expect import raises
from nas.evaluation.trained_network import TrainedNetwork
from tasks.data.batches import call
from tasks.vision.digits import DigitsViT
from tasks.vision.imagenet import ImageNetViT
from toy_networks import TINY

TASK = DigitsViT()


@pytest.fixture
def trained() -> TrainedNetwork:
    torch.manual_seed(0)
    return TrainedNetwork(TASK.build(TINY), TASK)


def test_bytes_are_preprocessed(trained: TrainedNetwork) -> None:
    images = torch.randint(256, (5, 1, 8, 8), dtype=torch.uint8)
    assert not trained.training
    assert not any(parameter.requires_grad for parameter in trained.parameters())
    assert torch.equal(trained(images), trained.network(TASK.preprocess(images)))
    assert trained.class_names == tuple("0123456789")
    assert call(trained, trained.example()).shape == (1, 10)


@pytest.mark.parametrize(
    "inputs",
    [
        (torch.zeros(2, 1, 8, 8),),
        (torch.zeros(2, 3, 8, 8, dtype=torch.uint8),),
        (torch.zeros(2, 8, 8, 1, dtype=torch.uint8),),
        (torch.zeros(1, 8, 8, dtype=torch.uint8),),
        (),
        (torch.zeros(2, 1, 8, 8, dtype=torch.uint8),) * 2,
    ],
)
def test_inputs_that_do_not_fit_are_named(trained: TrainedNetwork, inputs: tuple[torch.Tensor, ...]) -> None:
    expected = "uint8 [batch, 1, 8, 8], grey pixels from 0 to 255"
    with raises("mismatch", option="inputs", expected=expected):
        trained(*inputs)


@pytest.mark.parametrize(
    ("inputs", "conversion"),
    [
        (torch.zeros(2, 8, 8, 1, dtype=torch.uint8), ".movedim(-1, 1)"),
        (torch.zeros(1, 8, 8, dtype=torch.uint8), "[None]"),
        (torch.zeros(8, 8, 1, dtype=torch.uint8), ".movedim(-1, 0)[None]"),
        (torch.zeros(2, 8, 8, 3, dtype=torch.uint8), None),
        (torch.zeros(2, 1, 8, 8), None),  # numbers from 0 to 1, or to 255?
        (torch.zeros(64, dtype=torch.uint8), None),
    ],
)
def test_axes_in_another_order_have_a_conversion(
    trained: TrainedNetwork, inputs: torch.Tensor, conversion: str | None
) -> None:
    with raises("mismatch", option="inputs", conversion=conversion):
        trained(inputs)
    if conversion is not None:
        assert trained(eval(f"inputs{conversion}")).shape == (len(inputs) if inputs.dim() == 4 else 1, 10)


@pytest.mark.parametrize(
    ("inputs", "kind"),
    [(np.zeros((2, 1, 8, 8), np.uint8), "ndarray"), ([[1.0]], "float"), ("a.png", "str"), (None, "NoneType")],
)
def test_inputs_must_be_tensors(trained: TrainedNetwork, inputs: Any, kind: str) -> None:
    with raises("mismatch", option="inputs", value=kind):
        trained(inputs)


def test_images_of_imagenet_are_exported_with_their_preprocessing() -> None:
    task = ImageNetViT()
    trained = TrainedNetwork(task.build(replace(TINY, topology="resnet")), task)
    module = torch.export.export(trained, (trained.example(),)).module()
    torch.testing.assert_close(call(module, trained.example()), call(trained, trained.example()))


def test_copies_share_the_task(trained: TrainedNetwork) -> None:
    twin = copy.deepcopy(trained)
    images = trained.example()
    assert torch.equal(call(twin, images), call(trained, images))
    assert next(twin.parameters()) is not next(trained.parameters())
