"""A table of recorded Rows as a tabular benchmark: architecture and seed -> Row.

Searches, samplers and other algorithms run on recorded trainings in microseconds each (C. Ying et al., "NAS-Bench-101:
Towards Reproducible Neural Architecture Search", ICML 2019). Loads no torch.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, final

from results.records import jsonl
from results.records.columns import MUST_MATCH_COLUMNS
from results.records.duplicates import deduplicate
from results.records.row import Costs, Direction, Row
from results.records.sources import table_paths
from results.records.strict_json import JSON
from search_spaces.architecture.architecture import Architecture
from search_spaces.support.errors import UserError, unknown_name_error

ENDINGS = (".jsonl", ".jsonl.gz")
"""Suffixes of files of Rows."""


@final
class TabularBenchmark:
    """Recorded trainings of architectures on one task with one recipe, each with some seeds.

    Architectures whose costs were never counted are left out: their Rows only say that they failed. If a training is
    recorded twice, its last complete Row counts, or else its last.

    Attributes:
        name: Name of the table.
        rows: One Row per architecture and seed, in the table's order, including failed trainings.

    Raises:
        UserError: There are no such Rows, or they differ in task, version, data, preset, recipe, starting weights or
            code.
    """

    def __init__(self, name: str, rows: Sequence[Row]) -> None:
        _check_alike(name, rows)
        costs = {row.architecture: row.costs for row in rows if _is_counted(row)}
        with_costs = (row for row in rows if row.architecture in costs)
        self.rows = tuple(deduplicate(with_costs, lambda row: (row.architecture, row.seed)))
        by_architecture: dict[Architecture, dict[int, Row]] = {}
        for row in self.rows:
            by_architecture.setdefault(row.architecture, {})[row.seed] = row
        if not by_architecture:
            message = f"table {name!r} has no architecture with counted parameters and MACs."
            raise UserError("missing-rows", message, table=name)
        self.name = name
        self._rows, self._costs = by_architecture, costs

    @property
    def architectures(self) -> tuple[Architecture, ...]:
        """All recorded architectures, in the table's order."""
        return tuple(self._rows)

    @cached_property
    def directions(self) -> Mapping[str, Direction]:
        """Metric -> "max" or "min"."""
        return {name: direction for row in self.rows for name, direction in row.directions.items()}

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of all Rows: 16 hex digits."""
        digest = hashlib.sha256()
        for row in self.rows:
            digest.update(row.to_json().encode())
        return digest.hexdigest()[:16]

    def seeds(self, architecture: Architecture) -> tuple[int, ...]:
        """Return the seeds of an architecture in increasing order. Raises UserError as `evaluate` does."""
        return tuple(sorted(self._of(architecture)))

    def costs(self, architecture: Architecture) -> Costs:
        """Return the costs of an architecture. Raises UserError as `evaluate` does."""
        self._of(architecture)
        return self._costs[architecture]

    def evaluate(self, architecture: Architecture, seed: int) -> Row:
        """Return the recorded Row of a training: complete, pruned or failed.

        Raises:
            UserError: There is no such architecture or seed.
        """
        by_seed = self._of(architecture)
        if seed not in by_seed:
            seeds = tuple(sorted(by_seed))
            remedy = f"Choose from: {', '.join(map(str, seeds))}."
            message = f"table {self.name!r} has no seed {seed!r} of {architecture}. {remedy}"
            raise UserError("unknown-name", message, option="seed", value=seed, choices=seeds, table=self.name)
        return by_seed[seed]

    def subset(self, architectures: Collection[Architecture]) -> "TabularBenchmark":
        """Return the table of some architectures. Raises UserError if it has none of them."""
        members = set(architectures)
        return TabularBenchmark(self.name, [row for row in self.rows if row.architecture in members])

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"TabularBenchmark({self.name!r}, {len(self._rows)} architectures, {len(self.rows)} rows)"

    def _of(self, architecture: Architecture) -> Mapping[int, Row]:
        by_seed = self._rows.get(architecture)
        if by_seed is None:
            has = f"It has {len(self._rows)} architectures, for example {next(iter(self._rows))}."
            message = f"table {self.name!r} has no architecture {architecture}. {has}"
            raise UserError("unknown-name", message, option="architecture", value=str(architecture), table=self.name)
        return by_seed


def read_table(text: str | Path) -> TabularBenchmark:
    """Read a table by its name or file: FILE.jsonl or FILE.jsonl.gz.

    Raises:
        UserError: There is no such table or file, a line is no Row, or the Rows are no table.
    """
    path = Path(text)
    if not path.name.endswith(ENDINGS):
        tables = table_paths()
        if str(text) not in tables:
            raise unknown_name_error("table", str(text), [*tables, "FILE.jsonl"])
        path = tables[str(text)]
    rows, bad = jsonl.read(path)
    if bad:
        message = f"every line of table {str(path)!r} must be a row, got {bad[0]}. Remove that line."
        raise UserError("bad-file", message, **bad[0].fields, path=str(path))
    return TabularBenchmark(_stem(path.name), rows)


def _stem(name: str) -> str:
    return name.removesuffix(".gz").removesuffix(".jsonl")


def _is_counted(row: Row) -> bool:
    return None not in (row.costs.params, row.costs.macs, row.costs.flops)


def _check_alike(name: str, rows: Sequence[Row]) -> None:
    first = _circumstances(rows[0]) if rows else {}
    for row in rows:
        circumstances = _circumstances(row)
        for column in (*first, *circumstances):
            first_value, value = first.get(column), circumstances.get(column)
            if first_value != value:
                remedy = 'Select rows with `nas results --from FILE --where "..." --format jsonl --output ONE.jsonl`'
                message = f"rows of table {name!r} must agree in {column}, got {first_value!r} and {value!r}. {remedy}."
                raise UserError("mismatch", message, option=column, value=value, table=name, expected=first_value)


def _circumstances(row: Row) -> dict[str, JSON]:
    """Return everything that must be equal in all Rows: all but architecture and seed."""
    circumstances: dict[str, Any] = {column: getattr(row, column) for column in MUST_MATCH_COLUMNS}
    circumstances["code"] = row.provenance.get("code")
    return circumstances | {f"recipe_{field}": value for field, value in row.recipe.items()}
