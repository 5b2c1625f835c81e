"""Closed forms: what they come to, and that nothing but arithmetic is read."""

import pytest

from nas.readings.formulas import value_of
from search_spaces.errors import UserError

SIZES = {"depth": 6, "width": 512}


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("depth * 2 * width * 16 + depth * (depth + 1) // 2", 98_325),
        ("-(depth + 1) * width", -3_584),
        ("2 + 3 * depth - 7 // 2", 17),
    ],
)
def test_a_formula_is_worth_what_it_says(formula: str, value: int) -> None:
    assert value_of(formula, SIZES) == value


@pytest.mark.parametrize(
    "formula", ["", "depth *", "heads", "depth ** 9", "1.5", "'a'", "print(1)", "depth.real", "[1][0]", "1 if 2 else 3"]
)
def test_whatever_else_a_formula_holds_is_a_mistake(formula: str) -> None:
    with pytest.raises(UserError, match=r"a formula has integers, depth, width"):
        value_of(formula, SIZES)
