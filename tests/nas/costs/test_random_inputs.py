"""Random inputs that are like an example: ids of a table, other integers, masks, features."""

import torch
from torch import Tensor, nn

from nas.costs.random_inputs import RandomInputs
from toy_networks import MIXED_INPUTS, MixedInputs, Steps


def test_ids_are_drawn_from_the_whole_table() -> None:
    draws = RandomInputs(MixedInputs(), MIXED_INPUTS)
    found = draws.draw(500)
    assert isinstance(found, dict)
    assert set(found["ids"].unique().tolist()) == {0, 1, 2}
    assert found["mask"].all()  # nobody said that False may be
    assert found["x"].std() > 0.9
    assert {len(x) for x in found.values()} == {500}


class TwoTables(nn.Module):
    """Looks the same ids up in a long table and then in a short one."""

    def __init__(self) -> None:
        super().__init__()
        self.long, self.short = nn.Embedding(9, 4), nn.Embedding(2, 4)

    def forward(self, ids: Tensor) -> Tensor:
        words: Tensor = self.short(ids) + self.long(ids)
        return words


def test_ids_of_two_tables_are_valid_in_both() -> None:
    found = RandomInputs(TwoTables(), torch.zeros(1, 5, dtype=torch.long)).draw(50)
    assert isinstance(found, Tensor)
    assert set(found.unique().tolist()) == {0, 1}


def test_other_integers_are_those_of_the_example() -> None:
    found = RandomInputs(Steps(), torch.tensor([5, 900])).draw(50)
    assert isinstance(found, Tensor)
    assert set(found.tolist()) == {5, 900}
