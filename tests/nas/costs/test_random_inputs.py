"""Random inputs like an example: ids of a table, other integers, masks, features."""

import torch
from torch import Tensor, nn

from nas.costs.random_inputs import RandomInputs
from toy_networks import MIXED_INPUTS, MixedInputs, Steps


def test_ids_are_drawn_from_the_whole_table() -> None:
    draws = RandomInputs(MixedInputs(), MIXED_INPUTS)
    inputs = draws.draw(500)
    assert isinstance(inputs, dict)
    assert set(inputs["ids"].unique().tolist()) == {0, 1, 2}
    assert inputs["mask"].all()  # the example has no False
    assert inputs["x"].std() > 0.9
    assert {len(x) for x in inputs.values()} == {500}


class TwoTables(nn.Module):
    """Looks the same ids up in a long and in a short table."""

    def __init__(self) -> None:
        super().__init__()
        self.long, self.short = nn.Embedding(9, 4), nn.Embedding(2, 4)

    def forward(self, ids: Tensor) -> Tensor:
        words: Tensor = self.short(ids) + self.long(ids)
        return words


def test_ids_of_two_tables_are_valid_in_both() -> None:
    ids = RandomInputs(TwoTables(), torch.zeros(1, 5, dtype=torch.long)).draw(50)
    assert isinstance(ids, Tensor)
    assert set(ids.unique().tolist()) == {0, 1}


def test_other_integers_are_those_of_the_example() -> None:
    ids = RandomInputs(Steps(), torch.tensor([5, 900])).draw(50)
    assert isinstance(ids, Tensor)
    assert set(ids.tolist()) == {5, 900}
