"""Input formats: their JSON, their examples, and that tasks preprocess as they train."""

import pytest
import torch

from tasks.data.splits import TensorSplits
from tasks.input_formats import ImageInputs, InputFormat, TableInputs, TextInputs, from_json, to_json
from tasks.vision.digit_ranks import DigitRanksViT
from tasks.vision.digits import DigitsViT

FORMATS: tuple[InputFormat, ...] = (
    ImageInputs(channels=3, height=4, width=5, crop=0.5),
    TableInputs(features=7),
    TextInputs(tokenizer="{}", context=9),
)


@pytest.mark.parametrize("input_format", FORMATS)
def test_formats_survive_json(input_format: InputFormat) -> None:
    assert from_json(to_json(input_format)) == input_format
    assert from_json(to_json(None)) is None


def test_examples_have_the_formats_types_and_sizes() -> None:
    image, table, text = (input_format.example() for input_format in FORMATS)
    assert (image.dtype, image.shape) == (torch.uint8, (1, 3, 4, 5))
    assert len(image.unique()) > 30
    assert (table.dtype, table.shape) == (torch.float32, (1, 7))
    assert (text.dtype, text.shape) == (torch.int64, (1, 9))


@pytest.mark.parametrize("task", [DigitsViT(), DigitRanksViT()])
def test_bytes_are_preprocessed_as_in_training(task: DigitsViT | DigitRanksViT) -> None:
    splits = task.load()
    assert isinstance(splits, TensorSplits)
    scans = splits.test[0][:50]  # from 0 to 1
    in_bytes = (scans * 255).round().to(torch.uint8)
    assert (task.preprocess(in_bytes) - splits.encode(scans)).abs().max() < 0.5 / 255 / 0.376 + 1e-6
    white = torch.full((1, *scans.shape[1:]), 255, dtype=torch.uint8)
    assert torch.allclose(task.preprocess(white), splits.encode(torch.ones_like(scans[:1])))
