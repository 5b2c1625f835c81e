"""Errors and notices for users: one line each, without a traceback."""

import re
import sys
import sysconfig
import traceback
import warnings
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

_ROOT = Path(__file__).resolve().parents[2]
_OURS = tuple(_ROOT / package for package in ("nas", "results", "search_spaces", "tasks"))
_STANDARD = tuple({Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")})
_SITE_FOLDERS = ("site-packages", "dist-packages")
_LIBRARIES = frozenset(
    "click datasets duckdb fvcore lightning lightning_fabric lightning_utilities numpy optuna pandas psycopg pyarrow "
    "safetensors scipy sklearn sqlalchemy tenacity tensorboard timm tokenizers torch torchvision transformers "
    "typer".split()
)
"""Common libraries: an error raised inside one is attributed to its caller."""


_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Terminal controls (C0 except tab and line feed, DEL, C1), bidirectional controls and lone surrogates."""


Kind = Literal[
    "unknown-name",  # a name that does not exist
    "bad-syntax",  # a text that cannot be parsed
    "wrong-type",  # a value of the wrong type or shape
    "out-of-range",  # a number outside its range
    "conflict",  # two values that exclude each other
    "duplicate",  # one thing given twice
    "missing-value",  # a required value that was not given
    "missing-file",  # a path with nothing there
    "missing-data",  # a data set that is missing or incomplete
    "missing-rows",  # a study, table or query without the rows that a command needs
    "bad-file",  # an unreadable or damaged file, or one of another format
    "bad-data",  # readable data with invalid contents
    "unwritable",  # a file or folder that cannot be written
    "exists",  # something exists and is not overwritten
    "mismatch",  # two things that do not belong together, such as a checkpoint and another task
    "unsupported",  # a task, model, space or file type that does not support an option
    "infeasible",  # no architecture, size or rate satisfies the conditions
    "too-large",  # beyond a limit of time, memory or number
    "in-use",  # another process holds it
    "unavailable",  # a database, cluster or service that does not answer or disconnected
    "needs-extra",  # a package that is not installed
    "needs-system",  # a device, operating system or library that this machine does not have
    "bad-plugin",  # a plug-in that breaks its contract or cannot be loaded
    "failed",  # a training or measurement that failed
    "skipped",  # (notices) something was left out or done differently
]
"""Classes of mistakes, for programs; independent of the wording of messages."""

KINDS: tuple[Kind, ...] = get_args(Kind)


class _WithKind(Exception):
    """A message with a kind and fields that survive pickling."""

    def __init__(self, kind: Kind, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.kind, self.fields = kind, fields

    def __reduce__(self) -> tuple[Any, ...]:
        return _load, (type(self), self.kind, str(self), self.fields)


class UserError(_WithKind, ValueError):
    """A user's mistake. The message is the rule, the value and the remedy, in one line.

    Args:
        kind: The class of the mistake, for programs and tests.
        message: The sentence for people.
        fields: The parts of the message, by names that are the same everywhere. `option`: the wrong option, setting,
            field or column. `value`: the wrong value, or `type` if it is no scalar. `choices`: the allowed values;
            `nearest`: the most similar one. `least`, `most`: the range, ends included; `above`, `below`: ends excluded.
            `path`, `size`: of a file. `expected`: the required value. `needs`: what is missing; `needed_by`: what needs
            it. `extra`: the package extra to install. `cause`: class or kind of the underlying error; `where`: its file
            and line. `problem`: one of several mistakes of a kind.
    """


class Notice(_WithKind, UserWarning):
    """A warning for users: something was left out or done differently, and the work goes on. Arguments as UserError."""


class ContractError(AssertionError):
    """A violation of the contract of a plug-in, raised by `check_topology` and `check_task`.

    Args:
        check: The rule, for programs and tests: "options-are-frozen".
        message: The sentence for people.
        fields: The parts of the message, as in UserError.
    """

    def __init__(self, check: str, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.check, self.fields = check, fields

    def __reduce__(self) -> tuple[Any, ...]:
        return _load, (type(self), self.check, str(self), self.fields)


def _load(cls: type[Any], name: str, message: str, fields: dict[str, Any]) -> Any:
    return cls(name, message, **fields)


def show_notices() -> None:
    """Print notices as one line each from now on; other warnings are unchanged."""
    show = warnings.showwarning

    def line(message: Warning | str, category: type[Warning], *place: Any, **rest: Any) -> None:
        if issubclass(category, Notice):
            print(printable(f"nas: {message}"), file=sys.stderr)
        else:
            show(message, category, *place, **rest)

    warnings.showwarning = line


def printable(text: str) -> str:
    """Escape terminal control and bidirectional characters in a text as \\u001b.

    All printed text goes through here, since rows, errors and names may come from untrusted sources.
    """
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def unknown_name_error(
    noun: str,
    name: str,
    available: Iterable[str],
    of: str = "",
    option: str | None = None,
    remedy: str = "",
    **fields: Any,
) -> UserError:
    """Return the error of an unknown name, with the most similar known one.

    `of` is the owner of such names, and `remedy` another one than a known name. The error's field `option` defaults to
    `noun`.
    """
    names = sorted(available)
    near = nearest(name, names)
    hint = f"Choose from: {', '.join(names)}." if near is None else f"Did you mean {near!r}?"
    message = f"unknown {noun} {name!r}{f' of {of}' if of else ''}. {hint} {remedy}".rstrip()
    choices = tuple(names)
    return UserError(
        "unknown-name", message, option=option or noun, value=name, choices=choices, nearest=near, **fields
    )


def check_at_least(name: str, value: float | None, least: float, remedy: str = "") -> None:
    """Raise UserError if a number is below its minimum; None is allowed."""
    if value is not None and value < least:
        message = f"{name} must be at least {least}, got {value}. {remedy}".rstrip()
        raise UserError("out-of-range", message, option=name, value=value, least=least)


def number_error_kind(value: object, *, whole: bool = False) -> Kind:
    """Return the kind of error for an invalid number: "wrong-type" if it is no (whole) number, else "out-of-range"."""
    is_number = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    return "out-of-range" if is_number else "wrong-type"


def check_rule(holds: object, check: str, message: str, **fields: Any) -> None:
    """Raise a ContractError of this rule unless `holds` is true; also with Python's assertions disabled."""
    if not holds:
        raise ContractError(check, message, **fields)


def value_fields(value: object) -> dict[str, Any]:
    """Return error fields that describe a value: the value of a scalar, else the name of its type."""
    is_scalar = value is None or isinstance(value, bool | int | float | str)
    return {"value": value} if is_scalar else {"type": type(value).__name__}


def cause_fields(error: BaseException) -> dict[str, Any]:
    """Return fields for an error caused by this one: its class as `cause`, and its location as `where` if known.

    For a UserError, they are its own fields, and `cause` is its kind.
    """
    if isinstance(error, UserError):
        return {**error.fields, "cause": error.kind}
    where = foreign_location(error)
    return {"cause": type(error).__name__} | ({"where": where} if where else {})


def nearest(name: str, names: Sequence[str]) -> str | None:
    """Return the sorted name with this prefix, else the most similar one, ignoring case; None if none is similar."""
    matches = [candidate for candidate in names if len(name) > 1 and candidate.casefold().startswith(name.casefold())]
    if matches:
        return next((candidate for candidate in matches if candidate.startswith(name)), matches[0])
    by_casefold = {candidate.casefold(): candidate for candidate in names}
    return next((by_casefold[key] for key in get_close_matches(name.casefold(), by_casefold, n=1, cutoff=0.5)), None)


def foreign_location(error: BaseException) -> str | None:
    """Return the location in foreign code where an error was raised: "/home/me/task.py, line 12", or None.

    It is the innermost frame outside this project, the standard library and common libraries; for a SyntaxError, the
    invalid line. Files below the working directory are given relative to it.
    """
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return _location(error.filename, error.lineno)
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    foreign = [(file, line) for file, line in frames if _is_foreign(file)]
    return _location(*foreign[-1]) if foreign else None


def reason_of(error: BaseException) -> str:
    """Return an error's first line and location: "KeyError: 'x' (task.py, line 12)"; a UserError has no class."""
    lines = (str(error) if not isinstance(error, SyntaxError) else error.msg or "").strip().splitlines()
    kind = [] if isinstance(error, UserError) and lines else [type(error).__name__]
    text = ": ".join([*kind, *lines[:1]])
    where = foreign_location(error)
    return f"{text} ({where})" if where else text


@cache
def _is_foreign(file: str) -> bool:
    if file.startswith("<"):  # "<frozen importlib._bootstrap>", "<string>"
        return False
    path = Path(file).resolve()
    if any(path.is_relative_to(folder) for folder in _OURS):
        return False
    indices = [index for index, part in enumerate(path.parts) if part in _SITE_FOLDERS]
    if indices:
        return path.parts[indices[-1] + 1].removesuffix(".py") not in _LIBRARIES
    return not any(path.is_relative_to(folder) for folder in _STANDARD)


def _location(file: str, line: int) -> str:
    path = Path(file)
    here = Path.cwd()
    return f"{path.relative_to(here) if path.is_relative_to(here) else path}, line {line}"
