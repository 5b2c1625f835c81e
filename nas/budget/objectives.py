"""Objectives: a task's metrics, an architecture's costs, and measures of the trained network."""

from collections.abc import Iterable, Mapping, Sequence

from results.records.columns import Direction
from search_spaces.support.errors import UserError, unknown_name_error

COUNT_COSTS = ("params", "macs", "flops")
"""Costs that are counted. A budget bounds them before a network is built. See `results.records.row.Costs`."""

PROFILE_COSTS = ("latency_ms", "step_ms", "peak_memory_bytes", "energy_j")
"""Costs that are measured on the device before training. See `nas.costs.profile.profile`."""

COSTS = (
    *COUNT_COSTS,
    *("topology_params", "embedding_params", "non_embedding_params", "train_flops", "elementwise_flops"),
    *PROFILE_COSTS,
)
"""All costs that can be objectives; each is minimized."""

MEASURES: Mapping[str, Mapping[str, Direction]] = {"conditioning": {"condition_number": "min"}}
"""Measure of a trained network -> its columns that can be objectives, with their directions."""


def names_in(text: str | Sequence[str]) -> list[str]:
    """Return the names in "A,B", or in a sequence."""
    names = text.split(",") if isinstance(text, str) else text
    return [name.strip() for name in names if name.strip()]


def objective_directions(names: Sequence[str], metrics: Mapping[str, Direction]) -> dict[str, Direction]:
    """Return objective -> "max" or "min" for these names; costs and measures have directions of their own.

    Raises:
        UserError: An objective is unknown, repeated or a test metric, or there is none. Test metrics are only reported.
    """
    if not names:
        choices = (*metrics, *COSTS)
        message = f"--objectives needs at least one of {', '.join(choices)}."
        raise UserError("missing-value", message, option="--objectives", choices=choices)
    directions: dict[str, Direction] = {**metrics}
    directions.update(dict.fromkeys(COSTS, "min"))
    for columns in MEASURES.values():
        directions.update(columns)
    for name in names:
        if name.removeprefix("test_") in metrics and name.startswith("test_"):
            message = f"objective {name!r} is a test metric. Searches optimize validation metrics only."
            raise UserError("unsupported", message, option="objective", value=name)
        if name not in directions:
            raise unknown_name_error("objective", name, directions)
        if names.count(name) > 1:
            message = f"objective {name!r} is given twice in --objectives."
            raise UserError("duplicate", message, option="--objectives", value=name)
    return {name: directions[name] for name in names}


def measures_for(objectives: Iterable[str]) -> tuple[str, ...]:
    """Return the measures that compute these objectives."""
    names = set(objectives)
    return tuple(measure for measure, columns in MEASURES.items() if names & set(columns))
