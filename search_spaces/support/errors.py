"""What users are told in one line, without a traceback: mistakes that they can mend, and notices."""

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
"""What everybody builds on: an error that comes up there was made by whoever called it."""


_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Controls of terminals (C0 but for tab and line feed, DEL, C1), what turns the direction of text, half characters."""


Kind = Literal[
    "unknown-name",  # a name that does not exist among those that do
    "bad-syntax",  # a text that cannot be read as what it should be
    "wrong-type",  # a value of another type or shape than the rule says
    "out-of-range",  # a number below or above what is possible
    "conflict",  # two values that exclude each other
    "duplicate",  # one thing given twice
    "missing-value",  # something required that was not given
    "missing-file",  # a path with nothing there
    "missing-data",  # a data set that is not there or lacks a part
    "missing-rows",  # a study, table or query without the rows that a command needs
    "bad-file",  # a file that cannot be read, is damaged, or is of another format
    "bad-data",  # data that reads well and holds what it must not
    "unwritable",  # a file or folder that cannot be written
    "exists",  # something is there already and is not overwritten
    "mismatch",  # two things that do not belong together, such as a checkpoint and another task
    "unsupported",  # a task, model, space or file's ending that cannot do what an option asks for
    "infeasible",  # no architecture, size or rate satisfies the conditions
    "too-large",  # beyond a limit of time, memory or number
    "in-use",  # another process holds it
    "unavailable",  # a database, cluster or service that does not answer or broke off
    "needs-extra",  # a package that is not installed
    "needs-system",  # a device, operating system or library that this machine does not have
    "bad-plugin",  # code of a plug-in that breaks its contract or cannot be loaded
    "failed",  # a training or measurement that went wrong on its way
    "skipped",  # (notices) something was left out or done otherwise, and the work goes on
]
"""What went wrong, for programs: one word for each class of mistakes, whatever the sentence says."""

KINDS: tuple[Kind, ...] = get_args(Kind)


class _WithKind(Exception):
    """A message with its kind and fields, which a pickle keeps."""

    def __init__(self, kind: Kind, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.kind, self.fields = kind, fields

    def __reduce__(self) -> tuple[Any, ...]:
        return _load, (type(self), self.kind, str(self), self.fields)


class UserError(_WithKind, ValueError):
    """What was asked for cannot be done. The message is the rule, the value and the remedy, in one line.

    Args:
        kind: The class of the mistake, for programs and tests.
        message: The sentence for people.
        fields: What the message is made of, each part by a name that is the same everywhere, and others by their own:
            `option` (the option, setting, field or column that is wrong), `value` (what it was; or `type`, of a value
            that is no scalar), `choices` (what it can be) and `nearest` (the likeliest of these), `least` and `most`
            (the range, ends included) or `above` and `below` (ends excluded), `path` and `size` (of a file), `expected`
            (what should be there), `needs` (what is missing) or `needed_by` (what asks for it), `extra` (the package
            extra to install), `cause` (the class or kind of the error behind it), `where` (that one's file and line)
            and `problem` (one of several mistakes of one kind).
    """


class Notice(_WithKind, UserWarning):
    """A warning for users: something was left out or done otherwise, and the work goes on. As UserError."""


class ContractError(AssertionError):
    """Code of a plug-in breaks a rule of its contract, as `check_topology` and `check_task` find out.

    Args:
        check: The rule, for programs and tests: "options-are-frozen".
        message: The sentence for people.
        fields: What the message is made of, as in UserError.
    """

    def __init__(self, check: str, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.check, self.fields = check, fields

    def __reduce__(self) -> tuple[Any, ...]:
        return _load, (type(self), self.check, str(self), self.fields)


def _load(cls: type[Any], name: str, message: str, fields: dict[str, Any]) -> Any:
    return cls(name, message, **fields)


def show_notices() -> None:
    """From now on, this process prints notices as one line each; other warnings as before."""
    show = warnings.showwarning

    def line(message: Warning | str, category: type[Warning], *place: Any, **rest: Any) -> None:
        if issubclass(category, Notice):
            print(printable(f"nas: {message}"), file=sys.stderr)
        else:
            show(message, category, *place, **rest)

    warnings.showwarning = line


def printable(text: str) -> str:
    """The text as a terminal may have it: what would move its cursor, colour it or turn words round stands as \\u001b.

    Whatever is printed goes through here: rows, errors and names may come from anywhere.
    """
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def unknown(
    noun: str, name: str, available: Iterable[str], of: str = "", option: str | None = None, **fields: Any
) -> UserError:
    """A name that does not exist, with the nearest one that does; `of` says what has names of that kind.

    The field `option` of the error is `noun` where no other is given.
    """
    names = sorted(available)
    near = nearest(name, names)
    remedy = f"Choose from: {', '.join(names)}." if near is None else f"Did you mean {near!r}?"
    message = f"unknown {noun} {name!r}{f' of {of}' if of else ''}. {remedy}"
    choices = tuple(names)
    return UserError(
        "unknown-name", message, option=option or noun, value=name, choices=choices, nearest=near, **fields
    )


def check_at_least(name: str, value: float | None, least: float, remedy: str = "") -> None:
    """Raise UserError where a number is below the least that it may be; None, which is no number, may be."""
    if value is not None and value < least:
        message = f"{name} must be at least {least}, got {value}. {remedy}".rstrip()
        raise UserError("out-of-range", message, option=name, value=value, least=least)


def kind_of_number(value: object, *, whole: bool = False) -> Kind:
    """The kind of mistake of what should be a number (a whole one) within limits: its type, or else its size."""
    is_number = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    return "out-of-range" if is_number else "wrong-type"


def check_rule(holds: object, check: str, message: str, **fields: Any) -> None:
    """Raise a ContractError of this rule unless something holds, also where Python runs without assertions."""
    if not holds:
        raise ContractError(check, message, **fields)


def value_of(value: object) -> dict[str, Any]:
    """Fields of an error that say what a value was: a scalar as it is, of what may nest without end its type's name."""
    is_scalar = value is None or isinstance(value, bool | int | float | str)
    return {"value": value} if is_scalar else {"type": type(value).__name__}


def fields_of(error: BaseException) -> dict[str, Any]:
    """Fields of an error that was caused by this one: its class as `cause`, and as `where` its place if it has one.

    Of a UserError they are its own, and `cause` is its kind.
    """
    if isinstance(error, UserError):
        return {**error.fields, "cause": error.kind}
    place = place_of(error)
    return {"cause": type(error).__name__} | ({"where": place} if place else {})


def nearest(name: str, names: Sequence[str]) -> str | None:
    """Of sorted names the one that begins so, or else the one that is most like it, in any case; None where none is."""
    matches = [candidate for candidate in names if len(name) > 1 and candidate.casefold().startswith(name.casefold())]
    if matches:
        return next((candidate for candidate in matches if candidate.startswith(name)), matches[0])
    by_casefold = {candidate.casefold(): candidate for candidate in names}
    return next((by_casefold[key] for key in get_close_matches(name.casefold(), by_casefold, n=1, cutoff=0.5)), None)


def place_of(error: BaseException) -> str | None:
    """Where somebody else's code went wrong: "/home/me/task.py, line 12"; None where no such code was running.

    It is the innermost frame outside this project, the standard library and the libraries that everybody builds on;
    of a SyntaxError, the line that cannot be read. A file below the working directory is named from there.
    """
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return _place(error.filename, error.lineno)
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    foreign = [(file, line) for file, line in frames if _is_foreign(file)]
    return _place(*foreign[-1]) if foreign else None


def reason_of(error: BaseException) -> str:
    """An error's class, first line and place, in one line: "KeyError: 'x' (task.py, line 12)"; a UserError's line."""
    lines = (str(error) if not isinstance(error, SyntaxError) else error.msg or "").strip().splitlines()
    kind = [] if isinstance(error, UserError) and lines else [type(error).__name__]
    text = ": ".join([*kind, *lines[:1]])
    place = place_of(error)
    return f"{text} ({place})" if place else text


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


def _place(file: str, line: int) -> str:
    path = Path(file)
    here = Path.cwd()
    return f"{path.relative_to(here) if path.is_relative_to(here) else path}, line {line}"
