"""What can be searched for: a task's metrics, what an architecture costs, and what is measured once it is trained."""

from collections.abc import Iterable, Mapping, Sequence

from results.row import Goal
from search_spaces.mistake import Mistake, unknown

COUNTED = ("params", "macs", "flops")
"""What a network costs by counting, and a budget bounds before anything is built: see `results.row.Costs`."""

MEASURED = ("latency_ms", "step_ms", "peak_memory_bytes", "energy_j")
"""What it costs on the device at hand, measured before it is trained: see `nas.profiling.profile`."""

COSTS = (
    *COUNTED,
    *("topology_params", "embedding_params", "non_embedding_params", "train_flops", "elementwise_flops"),
    *MEASURED,
)
"""All that an objective can make small."""

MEASURES: Mapping[str, Mapping[str, Goal]] = {"conditioning": {"condition_number": "min"}}
"""What can be measured of a trained network -> those of its columns that can be searched for."""


def resolve(names: Sequence[str], metrics: Mapping[str, Goal]) -> dict[str, Goal]:
    """Objective -> "max" or "min", from names; costs and condition numbers are always to be small.

    Raises:
        Mistake: An unknown or repeated objective, none at all, or a test metric, which is never searched on.
    """
    if not names:
        raise Mistake(f"--objectives needs at least one of {', '.join((*metrics, *COSTS))}.")
    goals: dict[str, Goal] = {**metrics}
    goals.update(dict.fromkeys(COSTS, "min"))
    for columns in MEASURES.values():
        goals.update(columns)
    for name in names:
        if name.removeprefix("test_") in metrics and name.startswith("test_"):
            raise Mistake(f"objective {name!r} is measured on the test split, which is reported and never searched on.")
        if name not in goals:
            raise unknown("objective", name, goals)
        if names.count(name) > 1:
            raise Mistake(f"objective {name!r} stands twice in --objectives.")
    return {name: goals[name] for name in names}


def measures_for(objectives: Iterable[str]) -> tuple[str, ...]:
    """The measures that give these objectives their values."""
    wanted = set(objectives)
    return tuple(measure for measure, columns in MEASURES.items() if wanted & set(columns))


def known_measures(names: Sequence[str]) -> tuple[str, ...]:
    """The same names. Raises Mistake for one that is unknown."""
    for name in names:
        if name not in MEASURES:
            raise unknown("measure", name, MEASURES)
    return tuple(names)
