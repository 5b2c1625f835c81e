"""Networks as users call them: evaluation mode, preprocessing, and inputs that do not fit."""

import copy
from dataclasses import replace

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
