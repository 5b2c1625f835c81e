"""Rows of labelled texts: what trains, what validates, what tests."""

import torch

from tasks.glue.rows import splits_of
from tasks.glue.sets import Labelled, SetTexts
from tasks.glue.stdlib_glue import StdlibGlue


def test_what_validates_is_not_trained_on() -> None:
    train = Labelled([(f"text {number}",) for number in range(40)], [float(number) for number in range(40)])
    dev = (Labelled([("one",), ("two",)], [100.0, 101.0]), Labelled([("three",)], [102.0]))
    splits = splits_of("some", SetTexts(train, dev), StdlibGlue().read_text()[1], 16)
    learnt, held, tested = (part[1]["answer"].tolist() for part in (splits.train, splits.validation, splits.test))
    assert len(held) == 4
    assert sorted([*learnt, *held]) == train.answers
    assert tested == [100.0, 101.0, 102.0]
    assert splits.test[1]["group"].tolist() == [0, 0, 1]
    assert len(splits.train[0][0]) == len(learnt)
    assert torch.equal(splits.validation[0][0][0], encoded(held[0], splits.validation[0][0].shape[1]))


def encoded(answer: float, length: int) -> torch.Tensor:
    """The row of the text with this answer."""
    tokenizer = StdlibGlue().read_text()[1]
    (own,) = tokenizer.encode([f"text {int(answer)}"])
    row = torch.zeros(length, dtype=torch.int32)
    row[: len(own) + 1] = torch.tensor([*own, tokenizer.boundary])
    return row
