"""Where the architectures of a table stand: coordinates for a Gaussian process, from the columns that tell them apart.

Shapes: n = architectures.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from results.records.columns import SHAPE
from results.stats.gaussian_process import Array, Features
from search_spaces.architecture.canonical_text import with_defaults
from search_spaces.support.errors import UserError
from search_spaces.support.spec import Spec

_SIZES = ("params", "flops")
_WORD = 0.5**0.5  # two words are 1 apart

Record = Mapping[str, Any]


def features_of(records: Sequence[Record]) -> Features:
    """Places of n records: what is more or less on lines from 0 to 1, every word apart from any other.

    Architecture, parameters, FLOPs and recipe are looked at, where they differ. A topology's options are lines of their
    own. Positive numbers are told apart by factors.
    """
    columns: dict[str, list[Any]] = {}
    specs = [_spec(record.get("topology")) for record in records]
    options = {(spec.name, option) for spec in specs if spec for option in spec.options}
    for number, (record, spec) in enumerate(zip(records, specs, strict=True)):
        for name, value in _coordinates(record, spec, options):
            if name not in columns:
                columns[name] = [None] * len(records)
            columns[name][number] = value
    sizes, words = [], []
    for values in columns.values():
        if any(isinstance(value, str) for value in values):
            words += [np.array([_WORD * (value == word) for value in values]) for word in sorted({*map(str, values)})]
        elif len({*values}) > 1:
            sizes.append(_scale(values))
    return Features(*(np.stack(group or [np.zeros(len(records))], axis=1) for group in (sizes, words)))


def _coordinates(record: Record, spec: Spec | None, options: Container[tuple[str, str]]) -> Iterator[tuple[str, Any]]:
    """What tells a record from others, as (name, value): of its topology those options that some other says."""
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
    """Whether a column tells architectures apart."""
    return name in SHAPE or name in _SIZES or name.startswith("recipe_")


@lru_cache(maxsize=1024)
def _spec(topology: Any) -> Spec | None:
    """A name with its options; None where it is another word, as of blocks that differ."""
    try:
        return Spec.parse(topology)
    except (UserError, TypeError):
        return None


def _scale(values: Sequence[float | None]) -> Array:
    """Numbers on a line from 0 to 1, and in the middle of it what has none."""
    coordinates = np.array([np.nan if value is None else float(value) for value in values])
    if np.nanmin(coordinates) > 0:
        coordinates = np.log(coordinates)
    coordinates -= np.nanmin(coordinates)
    return np.where(np.isnan(coordinates), 0.5, coordinates / max(float(np.nanmax(coordinates)), 1e-12))
