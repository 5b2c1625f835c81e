"""Costs of a change in one block or segment: counted on one network, and equal in all others."""

from collections.abc import Callable
from dataclasses import dataclass

from nas.budget.implicit.knapsack import Cost
from search_spaces.architecture.architecture import Architecture
from search_spaces.spaces.space import Point, SearchSpace

CostFunction = Callable[[Architecture], Cost]
"""Maps an architecture to its amount of each bounded quantity."""


@dataclass(frozen=True)
class BlockCosts:
    """Costs of one block of a network by the block's values, up to a constant.

    Attributes:
        network: The network.
        block: Index of the block.
        costs: Values of the block -> cost of the whole network.
    """

    network: Architecture
    block: int
    costs: dict[tuple[int, ...], Cost]


@dataclass(frozen=True)
class ChangeCosts:
    """Costs of changes of a network.

    Attributes:
        costs: Cost function of networks.
        first: The network that is changed.
        cost: Its cost.
        tables: Costs of blocks so far, by topology group and first field: heads or hidden.
    """

    costs: CostFunction
    first: Architecture
    cost: Cost
    tables: dict[tuple[object, str], BlockCosts]

    def topology(self, space: SearchSpace, point: Point, axis: str, text: str) -> Cost:
        """Return the cost of another topology in one segment, relative to the first network."""
        return add_costs(self.costs(space.candidate(point | {axis: text}).architecture), self.cost, -1)

    def block(self, block: int, group: object, fields: tuple[str, ...], values: tuple[int, ...]) -> Cost:
        """Return the cost of other values in one block; it is equal in all blocks of a topology group."""
        table = self.tables.setdefault((group, fields[0]), BlockCosts(self.first, block, {}))
        current = tuple(self.first.by_block(field)[block] for field in fields)
        for choice in (values, current):
            if choice not in table.costs:
                changes = {field: list(table.network.by_block(field)) for field in fields}
                for field, value in zip(fields, choice, strict=True):
                    changes[field][table.block] = value
                table.costs[choice] = self.costs(table.network.with_fields(changes))
        return add_costs(table.costs[values], table.costs[current], -1)


def add_costs(cost: Cost, other: Cost, times: int = 1) -> Cost:
    """Return a cost plus `times` another one."""
    return tuple(a + times * b for a, b in zip(cost, other, strict=True))
