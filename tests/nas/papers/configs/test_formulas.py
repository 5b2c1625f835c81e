"""Closed forms in tables: their values, and that only arithmetic is read."""

from expect import raises
from grouped import grouped
from nas.papers.configs.formulas import value_of

SIZES = {"depth": 6, "width": 512}


def test_formula_is_evaluated_as_arithmetic() -> None:
    assert value_of("depth * 2 * width * 16 + depth * (depth + 1) // 2", SIZES) == 98_325
    assert value_of("-(depth + 1) * width", SIZES) == -3_584
    assert value_of("2 + 3 * depth - 7 // 2", SIZES) == 17


def test_anything_but_arithmetic_is_an_error() -> None:
    formulas = ["", "depth *", "heads", "depth ** 9", "1.5", "'a'", "print(1)", "depth.real", "[1][0]", "1 if 2 else 3"]
    with grouped() as case:
        for formula in formulas:
            with case(formula), raises("bad-syntax", option="formula", value=formula, choices=("depth", "width")):
                value_of(formula, SIZES)
