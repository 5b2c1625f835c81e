"""Names with options: "resnet", "dca(k=2)", "ancre(temperature=0.01,direction=outgoing)"."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from search_spaces.support.errors import UserError

MAX_INTEGER = 2**63 - 1
"""The largest integer in a Row, a table or a database; the smallest is -MAX_INTEGER - 1."""

Scalar = bool | int | float | str

Axes = Mapping[str, tuple[Scalar, ...]]
"""Axis -> its values without repetition; numbers in increasing order."""

_SPEC = re.compile(r"\s*([A-Za-z][\w.-]*)\s*(?:\((.*)\))?\s*")
_WORD = re.compile(r"[A-Za-z][\w.-]*")


@dataclass(frozen=True, slots=True)
class Spec:
    """A name and its options. Its text is canonical: options in alphabetical order, no spaces."""

    name: str
    options: Mapping[str, Scalar] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> "Spec":
        """Parse "name" or "name(option=value,...)". Raises UserError if the text is neither."""
        match = _SPEC.fullmatch(text)
        if match is None:
            remedy = " Install a class from a file to give it a name." if ".py" in text else ""
            message = f"expected NAME or NAME(option=value,...), got {text!r}.{remedy}"
            raise UserError("bad-syntax", message, value=text)
        name, inside = match.groups()
        options: dict[str, Scalar] = {}
        for part in split_top_level(inside or ""):
            option, equals, value = (piece.strip() for piece in part.partition("="))
            if not equals or not _WORD.fullmatch(option) or not value:
                message = f"expected option=value inside {text!r}, got {part!r}."
                raise UserError("bad-syntax", message, option="option", value=part, text=text)
            if option in options:
                message = f"option {option!r} is given twice in {text!r}."
                raise UserError("duplicate", message, option="option", value=option, text=text)
            options[option] = parse_scalar(value)
        return cls(name, options)

    def __str__(self) -> str:
        inside = ",".join(f"{option}={format_scalar(self.options[option])}" for option in sorted(self.options))
        return f"{self.name}({inside})" if inside else self.name


def split_top_level(text: str) -> list[str]:
    """Split a text at commas outside parentheses; drop empty parts."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts if part.strip()]


def parse_scalar(text: str) -> Scalar:
    """Parse true, false, an integer, a finite number or a word. Raises UserError for anything else."""
    if text in ("true", "false"):
        return text == "true"
    for read in (int, float):
        try:
            number = read(text)
        except ValueError:
            continue
        if number - number != 0:
            raise UserError("out-of-range", f"expected a finite number, got {text!r}.", value=text)
        if isinstance(number, int) and abs(number) > MAX_INTEGER:
            message = f"expected a number of at most 64 bits, got {text!r:.60}."
            raise UserError("out-of-range", message, value=text, most=MAX_INTEGER)
        return number
    if not _WORD.fullmatch(text):
        raise UserError("bad-syntax", f"expected a number, true, false or a word, got {text!r}.", value=text)
    return text


def format_scalar(value: Scalar) -> str:
    """Format a scalar so that `parse_scalar` reads it back."""
    return str(value).lower() if isinstance(value, bool) else str(value)
