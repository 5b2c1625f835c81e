"""What classes and functions say of themselves, read from their source: nothing is imported, and nothing run."""

import ast
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec


def first_line(module: str, name: str) -> str | None:
    """The first line of a docstring; None where the source does not tell: it is inherited, made by a call, not there.

    A name that the module has from another one is looked up there.
    """
    for node in _statements(module):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return (ast.get_docstring(node) or "").partition("\n")[0] or None
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                if (alias.asname or alias.name) == name and node.module != module:
                    return first_line(node.module, alias.name)
    return None


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
