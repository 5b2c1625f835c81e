"""Costs of changing one block or one run: counted on one network, the same in all others."""

from collections.abc import Callable
from dataclasses import dataclass

from nas.budget.implicit.knapsack import Cost
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.space import Point, SearchSpace

CostFunction = Callable[[Architecture], Cost]
"""Architecture -> the amount of each bounded quantity."""


@dataclass(frozen=True)
class BlockCosts:
    """Costs of one block of a network by its values, up to a constant.

    Attributes:
        network: The network.
        block: Which of its blocks.
        costs: Values -> what the network costs with them.
    """

    network: Architecture
    block: int
    costs: dict[tuple[int, ...], Cost]


@dataclass(frozen=True)
class ChangeCosts:
    """Costs of changes of a network.

    Attributes:
        costs: Of any network.
        first: The network that is changed.
        cost: What it costs.
        tables: Costs of blocks so far, by their topology group and by heads and head dims or hidden features.
    """

    costs: CostFunction
    first: Architecture
    cost: Cost
    tables: dict[tuple[object, str], BlockCosts]

    def topology(self, space: SearchSpace, place: Point, axis: str, text: str) -> Cost:
        """Another topology in one run."""
        return plus(self.costs(space.candidate(place | {axis: text}).architecture), self.cost, -1)

    def block(self, block: int, group: object, fields: tuple[str, ...], values: tuple[int, ...]) -> Cost:
        """Other values in one block; they cost the same in all blocks of one topology group."""
        table = self.tables.setdefault((group, fields[0]), BlockCosts(self.first, block, {}))
        current = tuple(self.first.by_block(field)[block] for field in fields)
        for choice in (values, current):
            if choice not in table.costs:
                changes = {field: list(table.network.by_block(field)) for field in fields}
                for field, value in zip(fields, choice, strict=True):
                    changes[field][table.block] = value
                table.costs[choice] = self.costs(table.network.with_fields(changes))
        return plus(table.costs[values], table.costs[current], -1)


def plus(cost: Cost, other: Cost, times: int = 1) -> Cost:
    return tuple(a + times * b for a, b in zip(cost, other, strict=True))
