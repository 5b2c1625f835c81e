"""What classes and functions say of themselves, read from their source: nothing is imported, and nothing run."""

import ast
import os
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from typing import Any

_Definition = ast.ClassDef | ast.FunctionDef


def first_line(module: str, name: str) -> str | None:
    """The first line of a docstring; None where the source does not tell: it is inherited, made by a call, not there.

    A name that the module has from another one is looked up there.
    """
    _, definition = _definition(module, name)
    return ((ast.get_docstring(definition) or "").partition("\n")[0] or None) if definition else None


def option_defaults(module: str, name: str) -> dict[str, Any] | None:
    """The defaults of a class's `Options`, a dataclass that it names or inherits; None where the source does not tell.

    It tells what is written plainly: one `Options: TYPE = NAME` in the class or in the one class that it is below, and
    in that dataclass `field: type = value` alone.
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
        case [], [ast.Name(id=base)] if base != name:  # which would be one that it shadows
            return option_defaults(home, base)
    return None


def _fields(module: str, name: str) -> dict[str, Any] | None:
    """The fields of a dataclass that have a default, with those that it inherits; None where one is not plain."""
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
    """Whether what is so annotated is a dataclass's field."""
    text = ast.unparse(annotation)
    return "ClassVar" not in text and "InitVar" not in text


def _definition(module: str, name: str, importers: tuple[str, ...] = ()) -> tuple[str, _Definition | None]:
    """Where a name is defined, in the module or in one that it is imported from, and its definition if it is one.

    `importers` are the modules that have it from this one.
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
    """Whether after a statement the name stands for something of its making; what is inside a definition does not."""
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
    except (OSError, SyntaxError, ValueError):  # whoever imports it will be told
        return []


@lru_cache(maxsize=64)
def _parse(file: str, mtime_ns: int) -> list[ast.stmt]:
    with open(file, "rb") as source:
        return ast.parse(source.read()).body


def _find_module(module: str) -> ModuleSpec | None:
    """Where a module is. The packages that it is in are not imported, as importlib.util.find_spec would do."""
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
