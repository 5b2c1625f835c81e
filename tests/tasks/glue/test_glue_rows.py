"""Rows of labelled texts: training, validation and test."""

import torch

from tasks.glue.sets import GlueSetData, LabelledTexts
from tasks.glue.token_rows import splits_of
from tasks.language.tokenizer import train_tokenizer


def test_validation_rows_are_held_out_of_training() -> None:
    train = LabelledTexts([(f"text {number}",) for number in range(40)], [float(number) for number in range(40)])
    dev = (LabelledTexts([("one",), ("two",)], [100.0, 101.0]), LabelledTexts([("three",)], [102.0]))
    tokenizer = train_tokenizer(["text 0123456789 one two three"], 300)
    splits = splits_of("some", GlueSetData(train, dev), tokenizer, 16)
    learned, validation, test = (part[1]["answer"].tolist() for part in (splits.train, splits.validation, splits.test))
    assert len(validation) == 4
    assert sorted([*learned, *validation]) == train.answers
    assert test == [100.0, 101.0, 102.0]
    assert splits.test[1]["group"].tolist() == [0, 0, 1]
    assert len(splits.train[0][0]) == len(learned)
    first = splits.validation[0][0][0]
    (token,) = tokenizer.encode([f"text {int(validation[0])}"])
    row = torch.zeros(len(first), dtype=torch.int32)
    row[: len(token) + 1] = torch.tensor([*token, tokenizer.boundary])
    assert torch.equal(first, row)
