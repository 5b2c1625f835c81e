"""Features of architectures for a Gaussian process, from the columns that describe them.

Shapes: n = architectures.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from results.records.columns import ARCHITECTURE_COLUMNS
from results.stats.gaussian_process import Array, Features
from search_spaces.architecture.canonical_text import with_defaults
from search_spaces.support.errors import UserError
from search_spaces.support.spec import Spec

_SIZES = ("params", "flops")
_WORD = 0.5**0.5  # so that two words have distance 1

Record = Mapping[str, Any]


def features_of(records: Sequence[Record]) -> Features:
    """Return the features of n records: numbers scaled to [0, 1], words one-hot.

    Architecture, parameters, FLOPs and recipe count, where they differ. Options of a topology are features of their
    own. Positive numbers are on a log scale.
    """
    columns: dict[str, list[Any]] = {}
    specs = [_spec(record.get("topology")) for record in records]
    options = {(spec.name, option) for spec in specs if spec for option in spec.options}
    for number, (record, spec) in enumerate(zip(records, specs, strict=True)):
        for name, value in _coordinates(record, spec, options):
            if name not in columns:
                columns[name] = [None] * len(records)
            columns[name][number] = value
    numeric, one_hot = [], []
    for values in columns.values():
        if any(isinstance(value, str) for value in values):
            one_hot += [np.array([_WORD * (value == word) for value in values]) for word in sorted({*map(str, values)})]
        elif len({*values}) > 1:
            numeric.append(_scale(values))
    return Features(*(np.stack(group or [np.zeros(len(records))], axis=1) for group in (numeric, one_hot)))


def _coordinates(record: Record, spec: Spec | None, options: Container[tuple[str, str]]) -> Iterator[tuple[str, Any]]:
    """Yield a record's features as (name, value); of its topology, the options that any record sets."""
    for name, value in record.items():
        if name == "topology" and spec is not None:
            yield name, spec.name
            whole_options = with_defaults(spec).options.items()
            yield from (
                (f"{spec.name}.{option}", setting)
                for option, setting in whole_options
                if (spec.name, option) in options
            )
        elif value is not None and _is_feature(name):
            yield name, value


@lru_cache(maxsize=1024)
def _is_feature(name: str) -> bool:
    """Return whether a column describes the architecture or recipe."""
    return name in ARCHITECTURE_COLUMNS or name in _SIZES or name.startswith("recipe_")


@lru_cache(maxsize=1024)
def _spec(topology: Any) -> Spec | None:
    """Parse a topology; None for other text, such as runs of blocks."""
    try:
        return Spec.parse(topology)
    except (UserError, TypeError):
        return None


def _scale(values: Sequence[float | None]) -> Array:
    """Scale numbers to [0, 1]; missing ones become 0.5."""
    coordinates = np.array([np.nan if value is None else float(value) for value in values])
    if np.nanmin(coordinates) > 0:
        coordinates = np.log(coordinates)
    coordinates -= np.nanmin(coordinates)
    return np.where(np.isnan(coordinates), 0.5, coordinates / max(float(np.nanmax(coordinates)), 1e-12))
