"""ListOps as the Long Range Arena generates it: nested lists of operators on digits, and their values.

The distribution is that of lra_benchmarks/data/listops.py, with other draws. A list is abandoned as soon as it is too
long, which leaves the distribution of the others unchanged. Each block of lists has a generator of its own, so the
number of processes does not matter. This module does not need torch, so processes start in a tenth of a second.
"""

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from search_spaces.support.errors import UserError
from tasks.lra.blocks import collect_blocks

_DIGIT = 1
"""Id of the digit 0; the other nine follow. Id 0 is padding."""
OPERATORS = ("MIN", "MAX", "MED", "SM")
FIRST_OPERATOR = _DIGIT + 10
_CLOSE = FIRST_OPERATOR + len(OPERATORS)
IDS = {
    **{str(digit): _DIGIT + digit for digit in range(10)},
    **{f"[{name}": FIRST_OPERATOR + number for number, name in enumerate(OPERATORS)},
    "]": _CLOSE,
    "X": _CLOSE,  # written for "]" by the official pipeline
}
"""Word -> id. The official order is the iteration order of a set, so it is arbitrary."""

_OPERATOR_SHARE = 0.25
_BLOCK = 2000
"""Lists per block."""

List = tuple[bytes, int]
"""Ids of a list, one byte each, and its value."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """The bounds of generated lists.

    Attributes:
        longer_than: Exclusive lower bound of a list's tokens, at least 1, without round brackets.
        shorter_than: Exclusive upper bound of a list's tokens.
        levels: Levels of operators and digits, at least 2; the last has only digits.
        arguments: Maximum arguments of an operator; the minimum is 2.

    Raises:
        UserError: A bound is too small.
    """

    longer_than: int
    shorter_than: int
    levels: int
    arguments: int

    def __post_init__(self) -> None:
        if self.longer_than < 1 or self.shorter_than < self.longer_than + 2 or self.levels < 2 or self.arguments < 2:
            raise UserError("infeasible", f"no list satisfies {self}. Use larger numbers.", grammar=str(self))


class _TooLong(Exception):
    """The error raised when a list exceeds its grammar's length."""


def generate(grammar: Grammar, examples: int, seed: int) -> list[List]:
    """Generate `examples` distinct lists; the result depends only on the arguments.

    Raises:
        UserError: The grammar has so few lists that a whole block brought nothing new.
    """
    answers: dict[bytes, int] = {}

    def add(block: list[List]) -> int:
        before = len(answers)
        answers.update(block)
        if len(answers) == before:
            raise UserError(
                "too-large",
                f"{grammar} must have at least {examples} lists, got about {before}. Use larger numbers.",
                value=examples,
                most=before,
            )
        return len(answers)

    collect_blocks(partial(make_block, grammar, seed, _BLOCK), add, examples, _BLOCK, "generating ListOps")
    return list(answers.items())[:examples]


def make_block(grammar: Grammar, seed: int, size: int, number: int) -> list[List]:
    """Generate block `number` of `size` lists; they may repeat lists of other blocks."""
    uniform = random.Random(f"listops/{seed}/{number}").random  # noqa: S311  # data, not secrets
    lists: list[List] = []
    while len(lists) < size:
        if uniform() > _OPERATOR_SHARE:
            continue  # a single digit, which is too short
        ids = bytearray()
        with suppress(_TooLong):
            answer = _grow(uniform, grammar, 1, ids, 0)
            if len(ids) > grammar.longer_than:
                lists.append((bytes(ids), answer))
    return lists


def _grow(uniform: Callable[[], float], grammar: Grammar, depth: int, ids: bytearray, owed: int) -> int:
    """Append an operator and its arguments, and return its value; at least `owed` more tokens must follow."""
    operator = int(len(OPERATORS) * uniform())
    arguments = 2 + int((grammar.arguments - 1) * uniform())
    if len(ids) + 1 + arguments + 1 + owed >= grammar.shorter_than:
        raise _TooLong
    ids.append(FIRST_OPERATOR + operator)
    values = []
    for remaining in range(arguments, 0, -1):  # with the bracket, `remaining` tokens or more must follow
        if depth + 1 < grammar.levels and uniform() <= _OPERATOR_SHARE:
            values.append(_grow(uniform, grammar, depth + 1, ids, owed + remaining))
        else:
            digit = int(10 * uniform())
            ids.append(_DIGIT + digit)
            values.append(digit)
    ids.append(_CLOSE)
    return apply(operator, values)


def apply(operator: int, values: list[int]) -> int:
    """Return the value of an operator, by its index in OPERATORS, on digits."""
    if operator == 0:
        return min(values)
    if operator == 1:
        return max(values)
    if operator == 3:
        return sum(values) % 10
    order, half = sorted(values), len(values) // 2
    return order[half] if len(values) % 2 else (order[half - 1] + order[half]) // 2  # rounded down


def tokenize(source: str) -> bytes | None:
    """Return the ids of a list in the release's format, or None for unknown words.

    Round brackets carry no information and are skipped.
    """
    words = source.replace("(", " ").replace(")", " ").split()
    return bytes(IDS[word] for word in words) if words and set(words) <= set(IDS) else None
