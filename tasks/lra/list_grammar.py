"""ListOps as the Long Range Arena generates it: lists of operators on digits, and what they come to.

The same as lra_benchmarks/data/listops.py in distribution, not draw by draw: a list is given up as soon as it is too
long, which changes nothing about those that are kept, and each block of lists has draws of its own, so that how many
processes share the work changes nothing either. Torch is not needed here: processes start in a tenth of a second.
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
    "X": _CLOSE,  # what the official pipeline makes of "]"
}
"""Word -> its id. The official order is whatever a set of words iterates in, and means nothing."""

_OPERATOR_SHARE = 0.25
_BLOCK = 2000
"""Lists of one block."""

List = tuple[bytes, int]
"""Ids of a list, one byte each, and the digit that it comes to."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """What lists are kept.

    Attributes:
        longer_than: Tokens that a list must exceed, at least 1; round brackets are none.
        shorter_than: Tokens that it must stay below.
        levels: Of operators and digits, at least 2; there are only digits on the last.
        arguments: The most that an operator has; the fewest are 2.

    Raises:
        UserError: A number is too small.
    """

    longer_than: int
    shorter_than: int
    levels: int
    arguments: int

    def __post_init__(self) -> None:
        if self.longer_than < 1 or self.shorter_than < self.longer_than + 2 or self.levels < 2 or self.arguments < 2:
            raise UserError(
                "infeasible", f"lists of {self} cannot be: there are none. Take larger numbers.", grammar=str(self)
            )


class _TooLong(Exception):
    """A list that has outgrown its grammar."""


def generate(grammar: Grammar, examples: int, seed: int) -> list[List]:
    """So many lists, no two of which are the same; a function of its arguments alone.

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
                f"{grammar} has hardly more than {before} lists, got {examples} wanted.",
                value=examples,
                most=before,
            )
        return len(answers)

    collect_blocks(partial(make_block, grammar, seed, _BLOCK), add, examples, _BLOCK, "generating ListOps")
    return list(answers.items())[:examples]


def make_block(grammar: Grammar, seed: int, size: int, number: int) -> list[List]:
    """So many lists, the block of that number; they may repeat those of another block."""
    uniform = random.Random(f"listops/{seed}/{number}").random  # noqa: S311  # data, not secrets
    lists: list[List] = []
    while len(lists) < size:
        if uniform() > _OPERATOR_SHARE:
            continue  # a digit alone, which is too short
        ids = bytearray()
        with suppress(_TooLong):
            answer = _grow(uniform, grammar, 1, ids, 0)
            if len(ids) > grammar.longer_than:
                lists.append((bytes(ids), answer))
    return lists


def _grow(uniform: Callable[[], float], grammar: Grammar, depth: int, ids: bytearray, owed: int) -> int:
    """Append an operator and all below it, give what it comes to; at least `owed` tokens have to follow it."""
    operator = int(len(OPERATORS) * uniform())
    arguments = 2 + int((grammar.arguments - 1) * uniform())
    if len(ids) + 1 + arguments + 1 + owed >= grammar.shorter_than:
        raise _TooLong
    ids.append(FIRST_OPERATOR + operator)
    values = []
    for remaining in range(arguments, 0, -1):  # with the closing bracket, as many tokens follow as arguments are left
        if depth + 1 < grammar.levels and uniform() <= _OPERATOR_SHARE:
            values.append(_grow(uniform, grammar, depth + 1, ids, owed + remaining))
        else:
            digit = int(10 * uniform())
            ids.append(_DIGIT + digit)
            values.append(digit)
    ids.append(_CLOSE)
    return apply(operator, values)


def apply(operator: int, values: list[int]) -> int:
    """What an operator, by its place in OPERATORS, makes of digits."""
    if operator == 0:
        return min(values)
    if operator == 1:
        return max(values)
    if operator == 3:
        return sum(values) % 10
    order, half = sorted(values), len(values) // 2
    return order[half] if len(values) % 2 else (order[half - 1] + order[half]) // 2  # a half is cut off


def tokenize(source: str) -> bytes | None:
    """Ids of a list as the release writes it, or None where it has other words.

    Round brackets, which say nothing, are left out.
    """
    words = source.replace("(", " ").replace(")", " ").split()
    return bytes(IDS[word] for word in words) if words and set(words) <= set(IDS) else None
