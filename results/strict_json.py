"""JSON without its traps: numbers are finite and fit 64 bits, a name stands once, nothing nests without end."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from reprlib import Repr
from typing import Any, TypeAlias

import orjson

from search_spaces.spec import MOST_INTEGER

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"

MOST_LEVELS = 32
"""How deep lists and objects may nest."""

MOST_TEXT = 16 * 2**20
"""Characters of a text that is parsed; a Row has a few thousand."""

Kind = tuple[str, Callable[[Any], bool]]
"""What a value must be, in words and as a test."""

_APART = (" :", "\t:", "\n:", "\r:")
"""Where a name may stand apart from its colon, and would not be counted by it."""

_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 60


class BadRow(ValueError):
    """A record that cannot be a Row. The message is the reason: one line, no full stop."""


def plain(value: object, name: str, *, infinite: bool = False, levels: int = MOST_LEVELS) -> Any:
    """The value in JSON's own types: a mapping becomes a dict, a tuple a list. `name` is what a refusal calls it.

    A number that is not finite becomes text ("inf", "nan") where `infinite` says so: settings may be without bound.

    Raises:
        TypeError: Something in it is not of JSON.
        ValueError: A number is not finite or beyond 64 bits, or it nests deeper than `levels`.
    """
    if levels < 0:
        raise ValueError(f"{name} nests deeper than {MOST_LEVELS} levels")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return _bounded(int(value), name)
    if isinstance(value, float):
        if not math.isfinite(value) and not infinite:
            raise ValueError(f"{name} is {float(value)}, which JSON does not have")
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"names in {name} must be text, got {_SHORT.repr(key)}")
        return {
            key: one if levels and _is_plain(one) else plain(one, f"{name}.{key}", infinite=infinite, levels=levels - 1)
            for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [plain(one, f"{name}[{i}]", infinite=infinite, levels=levels - 1) for i, one in enumerate(value)]
    raise TypeError(f"{name} must be of JSON's types, got {type(value).__name__}")


def parse(text: str) -> Any:
    """The value that a text of strict JSON holds. Raises BadRow where it is anything else, or too long."""
    if len(text) > MOST_TEXT:
        raise BadRow(f"it has {len(text)} characters, and may have {MOST_TEXT}")
    if not any(apart in text for apart in _APART):  # twice as fast, and as strict
        with suppress(orjson.JSONDecodeError, OverflowError, RecursionError):
            value = orjson.loads(text)
            if _names(value) == text.count('":'):
                return value
    try:
        return json.loads(
            text, parse_int=_integer, parse_float=_number, parse_constant=_constant, object_pairs_hook=_object
        )
    except RecursionError:
        raise BadRow(f"it nests deeper than {MOST_LEVELS} levels") from None
    except json.JSONDecodeError as error:
        raise BadRow(f"it is not JSON: {error.msg} at character {error.pos + 1}") from None


def shaped(record: object, kinds: Mapping[str, Kind], needed: Sequence[str], what: str) -> dict[str, Any]:
    """The record, whose values are of these kinds. Raises BadRow naming the first that is not, missing or unknown."""
    if not isinstance(record, dict):
        raise BadRow(f"{what} must be an object, got {_SHORT.repr(record)}")
    for name in needed:
        if name not in record:
            raise BadRow(f"{what} has no {name!r}")
    for name, value in record.items():
        if name not in kinds:
            raise BadRow(f"{what} has an unknown field {_SHORT.repr(name)}")
        words, holds = kinds[name]
        if not holds(value):
            raise BadRow(f"{name!r} must be {words}, got {_SHORT.repr(value)}")
    return record


def is_shallow(value: Mapping[str, Any]) -> bool:
    """Whether nothing in the lists and objects of a parsed object is a list or an object again."""
    for one in value.values():
        kind = type(one)
        if (kind is dict or kind is list) and not _NESTED.isdisjoint(map(type, one.values() if kind is dict else one)):
            return False
    return True


def is_integer(value: object) -> bool:
    """Whether it is an integer, which True is not."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Whether it is an integer or a float."""
    return is_integer(value) or isinstance(value, float)


def is_points(value: object) -> bool:
    """Whether it is a curve: a list of objects, each with a step, metrics and perhaps seconds."""
    return isinstance(value, list) and all(
        isinstance(point, dict)
        and {"step", "metrics"} <= set(point) <= {"step", "metrics", "seconds"}
        and is_integer(point["step"])
        and NUMBERS[1](point["metrics"])
        and is_number(point.get("seconds", 0))
        for point in value
    )


_NESTED = frozenset({dict, list})
_NUMBERS = frozenset({int, float})


def objects_of(words: str, holds: Callable[[Any], bool]) -> Kind:
    """The kind of an object whose values are all of one kind."""
    return f"an object of {words}", lambda value: isinstance(value, dict) and all(map(holds, value.values()))


TEXT: Kind = ("text", lambda value: isinstance(value, str))
MAYBE_TEXT: Kind = ("text or null", lambda value: value is None or isinstance(value, str))
INTEGER: Kind = ("an integer", is_integer)
MAYBE_INTEGER: Kind = ("an integer or null", lambda value: value is None or is_integer(value))
MAYBE_NUMBER: Kind = ("a number or null", lambda value: value is None or is_number(value))
OBJECT: Kind = ("an object", lambda value: isinstance(value, dict))
NUMBERS: Kind = (
    "an object of numbers",
    lambda value: (
        isinstance(value, dict)
        and (_NUMBERS.issuperset(map(type, value.values())) or all(map(is_number, value.values())))
    ),
)
TEXTS: Kind = objects_of("texts", TEXT[1])
SCALARS: Kind = objects_of("numbers and texts", lambda value: is_number(value) or isinstance(value, str))
NAMES: Kind = ("a list of texts", lambda value: isinstance(value, list) and all(map(TEXT[1], value)))
POINTS: Kind = ("a list of points, each with an integer step and an object of metrics", is_points)


def _is_plain(value: object) -> bool:
    """Whether it is a scalar as JSON has it; of others, this is not told here."""
    kind = type(value)
    if kind is float:
        return math.isfinite(value)  # type: ignore[arg-type]  # a float
    if kind is int:
        return -MOST_INTEGER - 1 <= value <= MOST_INTEGER  # type: ignore[operator]  # an integer
    return kind is str or kind is bool or value is None


def _names(value: Any) -> int:
    """How many names there are in all objects of a value: fewer than in its text where one stood twice.

    Raises OverflowError where a number may have been an integer beyond 64 bits.
    """
    names = len(value) if type(value) is dict else 0
    for one in value.values() if type(value) is dict else value if type(value) is list else (value,):
        kind = type(one)
        if kind is dict or kind is list:
            names += _names(one)
        elif (kind is float or kind is int) and not -MOST_INTEGER < one < MOST_INTEGER:
            raise OverflowError
    return names


def _bounded(number: int, name: str) -> int:
    if not -MOST_INTEGER - 1 <= number <= MOST_INTEGER:
        raise ValueError(f"{name} is an integer beyond 64 bits")
    return number


def _integer(text: str) -> int:
    if len(text) > 20 or not -MOST_INTEGER - 1 <= int(text) <= MOST_INTEGER:
        raise BadRow(f"it holds an integer beyond 64 bits: {_SHORT.repr(text)}")
    return int(text)


def _number(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise BadRow(f"it holds a number beyond 64 bits: {_SHORT.repr(text)}")
    return number


def _constant(text: str) -> None:
    raise BadRow(f"it holds {text}, which JSON does not have")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        before: set[str] = set()
        for name, _ in pairs:
            if name in before:
                raise BadRow(f"it says {_SHORT.repr(name)} twice")
            before.add(name)
    return record
