"""Syntax trees of our source files, parsed once per session."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]


def files(package: str) -> list[Path]:
    """A package's files, in alphabetical order."""
    return sorted((ROOT / package).rglob("*.py"))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """The statements of a file, including nested ones."""
    return tuple(statements(ast.parse(path.read_text())))


def statements(node: ast.AST) -> Iterator[ast.AST]:
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        inside = getattr(node, part, ())
        for inner in inside if isinstance(inside, list) else ():
            yield inner
            yield from statements(inner)
