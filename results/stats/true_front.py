"""The value of some architectures relative to a table's whole front, measured on test.

Shapes: A = architectures of the table, m = objectives.
"""

from collections.abc import Iterable, Mapping
from math import isfinite
from statistics import fmean
from typing import final

import numpy as np

from results.records.row import Direction, Row
from results.stats.hypervolume import hypervolume
from results.stats.tabular_benchmark import TabularBenchmark
from search_spaces.architecture.architecture import Architecture
from search_spaces.support.errors import UserError, unknown_name_error

BEYOND = 0.1
"""Distance of the reference point beyond the worst values, as a share of the range."""


@final
class TrueFront:
    """The front of a table's means on test, which scores fronts found by validation.

    An architecture's value is the mean over its complete Rows: of test values for a metric, of the cost itself for a
    cost. An architecture without such a Row scores 0. The reference point lies a tenth of the range beyond the worst
    test value and the highest cost. So the best architecture in a single objective still scores.

    Attributes:
        values: Architecture -> its values, with signs such that less is better: [m].
        reference: The reference point: [m].

    Args:
        table: The recorded trainings.
        objectives: Column -> "max" or "min".

    Raises:
        UserError: An unknown objective, a metric that was not measured on test, or no architecture that is better than
            the worst in all objectives.
    """

    def __init__(self, table: TabularBenchmark, objectives: Mapping[str, Direction]) -> None:
        signs = np.array([-1.0 if direction == "max" else 1.0 for direction in objectives.values()])
        names = {name: f"test_{name}" if name in table.directions else name for name in objectives}
        by_architecture: dict[Architecture, list[list[float]]] = {}
        for row in table.rows:
            columns = _numbers(row)
            if columns and all(name in columns for name in names.values()):
                by_architecture.setdefault(row.architecture, []).append([columns[name] for name in names.values()])
        if not by_architecture:
            raise _missing_objective(table, names)
        values = np.array([values for readings in by_architecture.values() for values in readings]) * signs
        self.reference = values.max(axis=0) + BEYOND * np.ptp(values, axis=0)
        self.values = {
            architecture: np.array([*map(fmean, zip(*readings, strict=True))]) * signs
            for architecture, readings in by_architecture.items()
        }
        self._whole = self._hypervolume(self.values)
        if not self._whole:
            message = f"no architecture in table {table.name!r} is better than the worst in all of {', '.join(names)}."
            raise UserError("bad-data", message, table=table.name, objectives=tuple(names))

    def relative_hypervolume(self, architectures: Iterable[Architecture]) -> float:
        """Return the hypervolume of some architectures relative to the whole front's: 0 to 1."""
        return self._hypervolume(architectures) / self._whole

    def _hypervolume(self, architectures: Iterable[Architecture]) -> float:
        points = [self.values[architecture] for architecture in architectures if architecture in self.values]
        return hypervolume(np.array(points).reshape(-1, len(self.reference)), self.reference)


def _numbers(row: Row) -> dict[str, float]:
    """Return the columns of a complete Row that hold finite numbers."""
    columns = row.columns() if row.status == "complete" else {}
    numbers = {name: value for name, value in columns.items() if isinstance(value, int | float)}
    return {name: float(value) for name, value in numbers.items() if isfinite(value)}


def _missing_objective(table: TabularBenchmark, names: Mapping[str, str]) -> UserError:
    columns = {column for row in table.rows for column in _numbers(row)}
    for name, column in names.items():
        if column not in columns and name in table.directions and name in columns:
            message = (
                f"table {table.name!r} lacks {column}: {name} selects the architectures, and cannot score them too."
            )
            return UserError("missing-data", message, option=name, table=table.name, needs=column)
        if column not in columns:
            return unknown_name_error("objective", name, columns, of=f"table {table.name!r}")
    message = f"table {table.name!r} has no complete row with all of {', '.join(names)}."
    return UserError("missing-rows", message, table=table.name, objectives=tuple(names))
