"""What a search gains over the base network, which it trains first."""

from collections.abc import Mapping, Sequence
from math import hypot
from typing import TYPE_CHECKING

from nas.budget.objectives import COSTS
from results.records.cell_text import cell_text
from results.records.row import Direction, Row

if TYPE_CHECKING:
    from results.stats.architecture_summary import ArchitectureSummary


def base_gain(
    rows: Sequence[Row], base: str, objectives: Mapping[str, Direction], architectures: "Sequence[ArchitectureSummary]"
) -> list[str]:
    """Return three lines: the base network's metric, the best on the front at no higher cost, and the cheapest as good.

    The metric is the first objective that is no cost. The front is chosen by validation, so it is compared on test if
    there is a test split. Errors are added as if the two networks had their own examples.

    Args:
        rows: The rows of the search.
        base: The base architecture, as text.
        objectives: Objective -> "max" or "min".
        architectures: All architectures of the search.

    Returns:
        Nothing if the base network has no complete row, or without both a metric and a cost.
    """
    identities = {row.identity() for row in rows if str(row.architecture) == base}
    network = next((one for one in architectures if identities & {*one.identities}), None)
    metric = next((name for name in objectives if name not in COSTS), None)
    costs = [name for name in objectives if name in COSTS]
    if network is None or metric is None or not costs:
        return []

    def worth(one: "ArchitectureSummary") -> float:
        return one.expected[metric] * (1 if objectives[metric] == "max" else -1)

    front = [one for one in architectures if one.on_front]
    cheaper = [one for one in front if all(one.record[cost] <= network.record[cost] for cost in costs)]
    as_good = [one for one in cheaper if worth(one) >= worth(network)]
    if not as_good:
        return []
    best, cheapest = max(cheaper, key=worth), min(as_good, key=lambda one: float(one.record[costs[0]]))
    column = f"test_{metric}" if f"test_{metric}" in network.record else metric
    difference = best.record[column] - network.record[column]
    errors = [
        float(one.record[f"{column}_se"]) for one in (best, network) if one.record.get(f"{column}_se") is not None
    ]
    gain = {column: difference, **({f"{column}_se": hypot(*errors)} if len(errors) == 2 else {})}
    budget = " and ".join(costs)
    lines = [f"base network: {_name(network)}, {column} {cell_text(network.record, column)}, {_costs(network, costs)}"]
    if best is network:
        return [*lines, f"no network of at most its {budget} is better"]
    gained = f"{'+' if difference >= 0 else ''}{cell_text(gain, column)}"
    return [
        *lines,
        f"best of at most its {budget}: {_name(best)}, {column} {cell_text(best.record, column)}, {gained}",
        f"cheapest as good by posterior mean: {_name(cheapest)}, {_costs(cheapest, costs)}",
    ]


def _name(one: "ArchitectureSummary") -> str:
    return f"{one.record['topology']} ({one.record['key']})"


def _costs(one: "ArchitectureSummary", costs: Sequence[str]) -> str:
    return " and ".join(f"{cell_text(one.record, cost)} {cost}" for cost in costs)
