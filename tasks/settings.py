"""The settings of a recipe: changed by what somebody typed, checked by their types, shown as plain values.

A recipe is any frozen dataclass. What its fields may hold is in their annotations: bool, int, float, str, Literal,
tuples of these, `| None`, and `Annotated[float, Between(0, 1)]` for a range.
"""

import math
import types
from collections.abc import Hashable, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from search_spaces.errors import UserError, unknown

Recipe = TypeVar("Recipe")


@dataclass(frozen=True, slots=True)
class Between:
    """A range, for annotations.

    Attributes:
        low: The least value.
        high: The largest.
        open: Whether neither of the two is in it.
    """

    low: float
    high: float = math.inf
    open: bool = False

    def allows(self, value: Any) -> bool:
        """Whether a number is in it."""
        return bool(self.low < value < self.high if self.open else self.low <= value <= self.high)

    def __str__(self) -> str:
        least, most = ("more than", "less than") if self.open else ("at least", "at most")
        return f"{least} {self.low:g}" + ("" if self.high == math.inf else f" and {most} {self.high:g}")


Count = Annotated[int, Between(1)]
Whole = Annotated[int, Between(0)]
Fraction = Annotated[float, Between(0, 1)]
Positive = Annotated[float, Between(0, open=True)]
NotNegative = Annotated[float, Between(0)]


def changed(recipe: Recipe, settings: Mapping[str, object], owner: str = "the recipe") -> Recipe:
    """The recipe with other values of these fields, given as text ("1e-3") or as what they are.

    Raises:
        UserError: No such field, a value that is not of its type, or values that the recipe refuses. `owner` says
            whose recipe it is.
    """
    if not is_dataclass(recipe) or isinstance(recipe, type):
        raise UserError(f"the settings of {owner} cannot be changed: its recipe is no dataclass, but {recipe!r}.")
    hints = _hints_of(recipe)
    values = {}
    for name, value in settings.items():
        if name not in hints:
            raise unknown(f"setting of {owner}", name, hints)
        values[name] = _read(name, value, hints[name])
    found: Recipe = replace(recipe, **values)
    return found


def check(recipe: Any) -> None:
    """See that every field holds what its annotation allows. Raises UserError with the rule and the value."""
    for name, hint in _hints_of(recipe).items():
        value = getattr(recipe, name)
        problem = _problem(value, hint)
        if problem:
            raise UserError(f"{name} must be {problem}, got {value!r}.")


NOTE: Mapping[str, bool] = {"note": True}
"""Metadata of a field that moves no number: it is no setting, and in no Row."""


def values_of(recipe: Any) -> dict[str, Any]:
    """Every setting as a value that JSON has: tuples become lists, and dataclasses mappings."""
    settings = _hints_of(recipe)
    return {name: _plain(value) for name, value in asdict(recipe).items() if name in settings}


def shown(recipe: Any, always: tuple[str, ...]) -> str:
    """One line: these settings, and all others that are not as they are by default."""
    told = [f for f in fields(recipe) if f.name in always or getattr(recipe, f.name) != f.default]
    return ", ".join(f"{f.name} {getattr(recipe, f.name)}" for f in told)


def _hints_of(recipe: Any) -> dict[str, Any]:
    kind: Any = type(recipe)
    return _hints(kind)


@lru_cache(maxsize=64)
def _hints(kind: Hashable) -> dict[str, Any]:
    assert isinstance(kind, type)
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in fields(kind) if not field.metadata.get("note")}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _read(name: str, value: object, hint: Any) -> Any:
    """A value of the annotation's type from a text, or from what is one already."""
    found = _parsed(value.strip(), hint) if isinstance(value, str) else _typed(value, hint)
    problem = _problem(found, hint)
    if problem:
        raise UserError(f"{name} must be {problem}, got {value!r}.")
    return found


def _typed(value: object, hint: Any) -> object:
    """JSON knows no tuples and no dataclasses, and people write 1 where they mean 1.0."""
    kind, _ = _kind(hint)
    if is_dataclass(kind) and isinstance(kind, type) and isinstance(value, Mapping):
        hints = _hints(kind)
        return kind(**{name: _read(name, each, hints[name]) for name, each in value.items() if name in hints})
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if get_origin(kind) is tuple and isinstance(value, list | tuple):
        kinds = _members(kind, len(value))
        return tuple(map(_typed, value, kinds)) if len(kinds) == len(value) else tuple(value)
    return value


def _parsed(text: str, hint: Any) -> object:
    """What a text says, or the text itself where it says nothing of that type: then `_problem` names it."""
    kind, _ = _kind(hint)
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        if type(None) in get_args(kind) and text.lower() in ("none", "null"):
            return None
        found = [_parsed(text, each) for each in get_args(kind)]
        return next((one for one, each in zip(found, get_args(kind), strict=True) if not _problem(one, each)), text)
    if origin is Literal:
        return next((each for each in get_args(kind) if str(each) == text), text)
    if origin is tuple:
        parts = text.strip("()[] ").replace(":", ",").split(",")
        kinds = _members(kind, len(parts))
        return tuple(map(_parsed, map(str.strip, parts), kinds)) if len(kinds) == len(parts) else tuple(parts)
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    if kind in (int, float):
        try:
            number = float(text)
            return int(text) if kind is int and text.lstrip("+-").isdecimal() else _whole(number, kind)
        except ValueError:
            return text
    return text


def _whole(number: float, kind: Any) -> float | int:
    """1e3 is an integer where one is wanted."""
    return int(number) if kind is int and number.is_integer() else number


def _problem(value: Any, hint: Any) -> str:
    """What a value must be, where it is not; else ""."""
    kind, ranges = _kind(hint)
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        problems = [_problem(value, each) for each in get_args(kind)]
        return " or ".join(problems) if all(problems) else ""
    if origin is Literal:
        allowed = get_args(kind)
        return "" if any(value == each for each in allowed) else f"one of {', '.join(map(str, allowed))}"
    if origin is tuple:
        kinds = _members(kind, len(value) if isinstance(value, tuple) else 0)
        if not isinstance(value, tuple) or len(kinds) != len(value):
            return f"{len(kinds)} values like 0.9:0.95" if kinds else "values like 0.9:0.95"
        return next(filter(None, map(_problem, value, kinds)), "")
    if kind is float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return "a finite number"
    elif kind is int:
        if isinstance(value, bool) or not isinstance(value, int):
            return "a whole number"
    elif kind is type(None):
        return "" if value is None else "none"
    elif isinstance(kind, type) and not isinstance(value, kind):
        return "true or false" if kind is bool else "a text" if kind is str else f"a {kind.__name__}, made in Python"
    return next((str(each) for each in ranges if not each.allows(value)), "")


def _kind(hint: Any) -> tuple[Any, list[Between]]:
    """An annotation without its ranges, and these."""
    if get_origin(hint) is Annotated:
        kind, *rest = get_args(hint)
        return kind, [each for each in rest if isinstance(each, Between)]
    return hint, []


def _members(kind: Any, length: int) -> tuple[Any, ...]:
    kinds = get_args(kind)
    return kinds[:1] * length if len(kinds) == 2 and kinds[1] is ... else kinds
