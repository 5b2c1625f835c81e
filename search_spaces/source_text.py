"""What classes and functions say of themselves, read from their source: nothing is imported, and nothing run."""

import ast
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from typing import Any

_Definition = ast.ClassDef | ast.FunctionDef


def first_line(module: str, name: str) -> str | None:
    """The first line of a docstring; None where the source does not tell: it is inherited, made by a call, not there.

    A name that the module has from another one is looked up there.
    """
    _, found = _definition(module, name)
    return ((ast.get_docstring(found) or "").partition("\n")[0] or None) if found else None


def option_defaults(module: str, name: str) -> dict[str, Any] | None:
    """The defaults of a class's `Options`, a dataclass that it names or inherits; None where the source does not tell.

    It tells plain values alone, and nothing of classes that it has through a module: `base.Options`.
    """
    home, found = _definition(module, name)
    if not isinstance(found, ast.ClassDef):
        return None
    options = _assigned(found).get("Options")
    if options is None:
        inherited = [option_defaults(home, base.id) if isinstance(base, ast.Name) else None for base in found.bases]
        return inherited[0] if len(inherited) == 1 else None
    return _fields(home, options.id) if isinstance(options, ast.Name) else None


def _fields(module: str, name: str) -> dict[str, Any] | None:
    """The fields of a dataclass that have a default, with those that it inherits; None where one is not plain."""
    home, found = _definition(module, name)
    if not isinstance(found, ast.ClassDef):
        return None
    known: dict[str, Any] = {}
    for base in found.bases:
        inherited = _fields(home, base.id) if isinstance(base, ast.Name) else None
        if inherited is None:
            return None
        known |= inherited
    try:
        return known | {field: ast.literal_eval(value) for field, value in _assigned(found).items()}
    except ValueError:
        return None


def _assigned(found: ast.ClassDef) -> dict[str, ast.expr]:
    """What stands in a class as NAME: TYPE = VALUE."""
    return {
        node.target.id: node.value
        for node in found.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None
    }


def _definition(module: str, name: str) -> tuple[str, _Definition | None]:
    """Where a name is defined, in the module or in one that it is imported from, and its definition if it is one."""
    for node in _statements(module):
        if isinstance(node, _Definition) and node.name == name:
            return module, node
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                if (alias.asname or alias.name) == name and node.module != module:
                    return _definition(node.module, alias.name)
    return module, None


def _statements(module: str) -> list[ast.stmt]:
    """A module's statements; none where there is no source that can be read."""
    spec = _found(module)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return []
    try:
        with open(spec.origin, "rb") as file:
            return ast.parse(file.read()).body
    except (OSError, SyntaxError, ValueError):  # whoever imports it will be told
        return []


def _found(module: str) -> ModuleSpec | None:
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
