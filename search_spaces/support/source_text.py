"""Docstrings and option defaults, read from the source without importing it."""

import ast
import os
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from typing import Any

_Definition = ast.ClassDef | ast.FunctionDef


def first_line(module: str, name: str) -> str | None:
    """Return the first line of a docstring; None if it is missing, inherited or computed.

    A name that the module imports is looked up in its own module.
    """
    _, definition = _definition(module, name)
    return ((ast.get_docstring(definition) or "").partition("\n")[0] or None) if definition else None


def option_defaults(module: str, name: str) -> dict[str, Any] | None:
    """Return the defaults of a class's `Options` dataclass, own or inherited; None if the source is not plain.

    Plain source has one `Options: TYPE = NAME` in the class or in its single base. That dataclass has only fields of
    the form `field: type = value`.
    """
    home, definition = _definition(module, name)
    if not isinstance(definition, ast.ClassDef):
        return None
    bindings = [node for node in definition.body if _binds(node, "Options")]
    match bindings, definition.bases:
        case [ast.AnnAssign(value=ast.Name(id=options))], _ if not any(
            _binds(node, options) for node in definition.body
        ):
            return _fields(home, options)
        case [], [ast.Name(id=base)] if base != name:  # a base of the same name would be one that this class shadows
            return option_defaults(home, base)
    return None


def _fields(module: str, name: str) -> dict[str, Any] | None:
    """Return the defaults of a dataclass's fields, with inherited ones; None if a field is not plain."""
    home, definition = _definition(module, name)
    defaults: dict[str, Any] | None = None
    match definition:
        case ast.ClassDef(bases=[]):
            defaults = {}
        case ast.ClassDef(bases=[ast.Name(id=base)]) if base != name:
            defaults = _fields(home, base)
    if defaults is None or not isinstance(definition, ast.ClassDef):
        return None
    for node in definition.body:
        match node:
            case ast.FunctionDef() | ast.Expr(value=ast.Constant()) | ast.AnnAssign(value=None) | ast.Pass():
                continue
            case ast.AnnAssign(target=ast.Name(id=field), annotation=kind, value=ast.expr() as value) if _is_of(kind):
                try:
                    defaults |= {field: ast.literal_eval(value)}
                except ValueError:
                    return None
            case _:
                return None
    return defaults


def _is_of(annotation: ast.expr) -> bool:
    """Return whether an annotation makes a dataclass field."""
    text = ast.unparse(annotation)
    return "ClassVar" not in text and "InitVar" not in text


def _definition(module: str, name: str, importers: tuple[str, ...] = ()) -> tuple[str, _Definition | None]:
    """Return the module and the definition of a name, following imports; the definition is None if there is none.

    `importers` are the modules that were followed to this one.
    """
    for node in reversed(_statements(module)):  # the last one counts
        if not _binds(node, name):
            continue
        if isinstance(node, _Definition):
            return module, node
        if isinstance(node, ast.ImportFrom) and node.module and not node.level and module not in importers:
            (name_there,) = {alias.name for alias in node.names if (alias.asname or alias.name) == name}
            return _definition(node.module, name_there, (*importers, module))
        break
    return module, None


def _binds(statement: ast.stmt, name: str) -> bool:
    """Return whether a statement binds a name in its own scope."""
    match statement:
        case ast.ClassDef(name=target) | ast.FunctionDef(name=target) | ast.AsyncFunctionDef(name=target):
            return target == name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return any((alias.asname or alias.name) == name for alias in names)
    inside = [node for node in ast.walk(statement) if node is not statement]
    assigns = any(isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name for node in inside)
    return assigns or any(isinstance(node, ast.stmt) and _binds(node, name) for node in inside)


def _statements(module: str) -> list[ast.stmt]:
    spec = _find_module(module)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return []
    try:
        return _parse(spec.origin, os.stat(spec.origin).st_mtime_ns)
    except (OSError, SyntaxError, ValueError):  # importing it will raise the error
        return []


@lru_cache(maxsize=64)
def _parse(file: str, mtime_ns: int) -> list[ast.stmt]:
    with open(file, "rb") as source:
        return ast.parse(source.read()).body


def _find_module(module: str) -> ModuleSpec | None:
    """Return the spec of a module without importing its packages, as importlib.util.find_spec would do."""
    first, *inner = module.split(".")
    try:
        spec = find_spec(first)
    except (ImportError, ValueError):
        return None
    for part in inner:
        if spec is None or spec.submodule_search_locations is None:
            return None
        spec = PathFinder.find_spec(f"{spec.name}.{part}", spec.submodule_search_locations)
    return spec
