"""Recipe settings: overridden by command-line text, checked by their types, serialized as plain values.

A recipe is any frozen dataclass. Annotations say what its fields may hold: bool, int, float, str, Literal, tuples and
lists of these, unions such as `float | None`, and `Annotated[float, Between(0, 1)]` for a range. A field of type Any
accepts any value. A field of any other type, such as a dataclass, can only be set in Python.
"""

import math
import types
from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from search_spaces.support.errors import Kind, UserError, unknown_name_error
from search_spaces.support.spec import MAX_INTEGER

Recipe = TypeVar("Recipe")


@dataclass(frozen=True, slots=True)
class Between:
    """A range of numbers, for annotations.

    Attributes:
        low: Lower bound.
        high: Upper bound.
        open_low: Whether `low` is excluded.
        open_high: Whether `high` is excluded.
    """

    low: float
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False

    def allows(self, value: float) -> bool:
        """Return whether a number is in the range."""
        high_enough = self.low < value if self.open_low else self.low <= value
        return high_enough and (value < self.high if self.open_high else value <= self.high)

    @property
    def ends(self) -> dict[str, float]:
        """The bounds as fields of an error: `least` and `most`, or `above` and `below` if they are excluded."""
        low = {"above" if self.open_low else "least": self.low}
        return low if self.high == math.inf else {**low, "below" if self.open_high else "most": self.high}

    def __str__(self) -> str:
        least, most = "more than" if self.open_low else "at least", "less than" if self.open_high else "at most"
        return f"{least} {self.low:g}" + ("" if self.high == math.inf else f" and {most} {self.high:g}")


class _Problem(NamedTuple):
    """A violated rule: what the value must be, and the kind of the error."""

    rule: str
    kind: Kind = "wrong-type"
    fields: Mapping[str, Any] = {}


AtLeastOne = Annotated[int, Between(1)]
NonNegativeInt = Annotated[int, Between(0)]
UnitInterval = Annotated[float, Between(0, 1)]
BelowOne = Annotated[float, Between(0, 1, open_high=True)]
Positive = Annotated[float, Between(0, open_low=True)]
NotNegative = Annotated[float, Between(0)]


def override(recipe: Recipe, settings: Mapping[str, object], owner: str = "the recipe") -> Recipe:
    """Return the recipe with these fields changed. Values may be text ("1e-3") or Python objects.

    Raises:
        UserError: A field does not exist, a value has the wrong type, or the recipe rejects the values. `owner` names
            the recipe in the message.
    """
    if not is_dataclass(recipe) or isinstance(recipe, type):
        message = f"the recipe of {owner} must be a dataclass to change settings, got {recipe!r}."
        raise UserError("bad-plugin", message, option="recipe", value=_plain(recipe), owner=owner)
    hints = _type_hints(recipe)
    values = {}
    for name, value in settings.items():
        if name not in hints:
            raise unknown_name_error("setting", name, hints, of=owner)
        values[name] = _read(value, hints[name])
        problem = _problem(values[name], hints[name])
        if problem:
            raise _refusal(name, problem, value)
    try:
        return replace(recipe, **values)
    except UserError:
        raise
    except (TypeError, ValueError) as error:  # third-party recipes raise these instead of UserError
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        values_text = ", ".join(f"{name}={value}" for name, value in settings.items()) or "no other settings"
        message = f"{owner} does not accept {values_text}: {reason}."
        cause = type(error).__name__
        raise UserError("conflict", message, owner=owner, settings=tuple(settings), cause=cause) from error


def check(recipe: Any) -> None:
    """Check every field against its annotation. Raises UserError with the rule and the value."""
    for name, hint in _type_hints(recipe).items():
        value = getattr(recipe, name)
        problem = _problem(value, hint)
        if problem:
            raise _refusal(name, problem, value)


def _refusal(name: str, problem: _Problem, value: object) -> UserError:
    message = f"{name} must be {problem.rule}, got {value!r}."
    return UserError(problem.kind, message, option=name, value=_plain(value), **problem.fields)


NOT_A_SETTING: Mapping[str, bool] = {"not_a_setting": True}
"""Metadata of a field that changes no result: it is not a setting and is not stored in Rows."""


def plain_values(recipe: Any) -> dict[str, Any]:
    """Return every setting as a JSON value: tuples become lists, dataclasses become mappings."""
    settings = _type_hints(recipe)
    return {name: _plain(value) for name, value in asdict(recipe).items() if name in settings}


def recipe_text(recipe: Any, always: tuple[str, ...]) -> str:
    """Return one line with the settings in `always` and all that differ from their defaults."""
    names = [f.name for f in fields(recipe) if f.name in always or getattr(recipe, f.name) != f.default]
    return ", ".join(f"{name} {getattr(recipe, name)}" for name in names)


def _type_hints(recipe: Any) -> dict[str, Any]:
    kind: Any = type(recipe)
    return _hints(kind)


@lru_cache(maxsize=64)
def _hints(kind: Hashable) -> dict[str, Any]:
    assert isinstance(kind, type)
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in fields(kind) if not field.metadata.get("not_a_setting")}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(member) for name, member in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(member) for member in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _read(value: object, hint: Any) -> object:
    """Convert text or a JSON value to the annotation's type; JSON has no tuples, and 1 for 1.0 or 1e3 for 1000.

    Values that cannot be converted are returned unchanged, for `_problem` to report.
    """
    kind, _ = _kind(hint)
    origin = get_origin(kind)
    if isinstance(value, str):
        value = value.strip() if kind not in (str, Any) else value
    if origin in (Union, types.UnionType):
        return _read_union(value, get_args(kind))
    if origin is Literal:
        return next((choice for choice in get_args(kind) if str(choice) == value or _same(choice, value)), value)
    if origin in (tuple, list):
        return _read_members(value, kind)
    if kind is bool and isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower(), value)
    if kind in (int, float):
        return _read_number(value, kind)
    return value


def _read_union(value: object, kinds: tuple[Any, ...]) -> object:
    """Convert a value to the first type that accepts it."""
    if type(None) in kinds and isinstance(value, str) and value.lower() in ("none", "null"):
        return None
    values = ((_read(value, kind), kind) for kind in kinds)
    return next((read for read, kind in values if not _problem(read, kind)), value)


def _read_members(value: object, kind: Any) -> object:
    """Convert "0.9:0.95" or [0.9, 0.95] to a tuple or list, of as many values as given."""
    if isinstance(value, str):
        value = value.strip("()[] ").replace(":", ",").removesuffix(",").split(",") if value.strip("()[] ") else []
    if not isinstance(value, list | tuple):
        return value
    kinds = _members(kind, len(value))
    return get_origin(kind)(map(_read, value, kinds) if len(kinds) == len(value) else value)


def _read_number(value: object, kind: type) -> object:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    try:
        if kind is int and isinstance(value, str) and value.lstrip("+-").isdecimal():
            return int(value)  # a float would round integers above 2 ** 53
        number = value if kind is int and isinstance(value, int) else float(value)
    except (ValueError, OverflowError):
        return value
    return int(number) if kind is int and isinstance(number, float) and number.is_integer() else number


def _same(a: object, b: object) -> bool:
    """Return whether they are equal; True does not equal 1."""
    return a == b and isinstance(a, bool) == isinstance(b, bool)


def _problem(value: Any, hint: Any) -> _Problem | None:
    """Return the rule that a value violates, or None."""
    kind, ranges = _kind(hint)
    problem = _type_problem(value, kind)
    if problem or isinstance(value, bool) or not isinstance(value, int | float):
        return problem
    return next(
        (_Problem(str(bounds), "out-of-range", bounds.ends) for bounds in ranges if not bounds.allows(value)), None
    )


def _type_problem(value: Any, kind: Any) -> _Problem | None:
    origin = get_origin(kind)
    if kind is Any:
        return None
    if origin in (Union, types.UnionType):
        return _union_problem(value, get_args(kind))
    if origin is Literal:
        choices = get_args(kind)
        rule = f"one of {', '.join(map(str, choices))}"
        valid = any(_same(value, choice) for choice in choices)
        return None if valid else _Problem(rule, "unknown-name", {"choices": choices})
    if origin in (tuple, list):
        kinds = _members(kind, len(value)) if isinstance(value, origin) else get_args(kind)
        if not isinstance(value, origin) or len(kinds) != len(value):
            return _Problem(f"{'' if origin is list or ... in kinds else f'{len(kinds)} '}values like 0.9:0.95")
        return next(filter(None, map(_problem, value, kinds)), None)
    if kind in (int, float):
        return _number_problem(value, kind)
    if kind in (None, type(None)):
        return None if value is None else _Problem("none")
    bare = origin or kind
    if isinstance(bare, type) and (not isinstance(value, bare) or (origin and isinstance(value, str))):
        return _Problem({bool: "true or false", str: "text"}.get(bare, f"a {bare.__name__} created in Python"))
    return None


def _union_problem(value: Any, kinds: tuple[Any, ...]) -> _Problem | None:
    """Return None if a type accepts the value, else the rules of all types.

    The error's kind is that of a type that fits except for its range or choices.
    """
    problems = [_problem(value, kind) for kind in kinds]
    misfits = [problem for problem in problems if problem is not None]
    if len(misfits) < len(problems):
        return None
    nearest = next((problem for problem in misfits if problem.kind != "wrong-type"), misfits[0])
    return nearest._replace(rule=" or ".join(problem.rule for problem in misfits))


def _number_problem(value: object, kind: type) -> _Problem | None:
    if isinstance(value, bool) or not isinstance(value, int if kind is int else int | float):
        return _Problem("a whole number" if kind is int else "a finite number")
    if isinstance(value, int):
        fits = -MAX_INTEGER - 1 <= value <= MAX_INTEGER
        return None if fits else _Problem("a number of at most 64 bits", "out-of-range")
    return None if math.isfinite(value) else _Problem("a finite number", "out-of-range")


def _kind(hint: Any) -> tuple[Any, list[Between]]:
    """Split an annotation into its type and its ranges."""
    if get_origin(hint) is Annotated:
        kind, *metadata = get_args(hint)
        return kind, [bounds for bounds in metadata if isinstance(bounds, Between)]
    return hint, []


def _members(kind: Any, length: int) -> tuple[Any, ...]:
    """Return the type of each element of a tuple or list of that length."""
    kinds = get_args(kind)
    return kinds[:1] * length if get_origin(kind) is list or kinds[-1:] == (...,) else kinds
