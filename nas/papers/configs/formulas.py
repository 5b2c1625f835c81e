"""Formulas in readings: sums, products and floor quotients of integers and names."""

import ast
import operator
from collections.abc import Callable, Mapping

from search_spaces.support.errors import UserError

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def value_of(formula: str, names: Mapping[str, int]) -> int:
    """Evaluate a formula such as "depth * 2 * width".

    Raises:
        UserError: It contains anything but integers, these names, brackets and + - * //.
    """
    try:
        return _value(ast.parse(formula, mode="eval").body, names)
    except (SyntaxError, TypeError):
        message = f"a formula has integers, {', '.join(names)} and + - * //, got {formula!r}."
        raise UserError("bad-syntax", message, option="formula", value=formula, choices=tuple(names)) from None


def _value(node: ast.expr, names: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, names), _value(right, names))
    raise TypeError(ast.dump(node))
