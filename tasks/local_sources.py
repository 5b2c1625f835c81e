"""The source files of a task in a file: the file, and the modules beside it that it imports."""

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path

_INSTALLED = ("nas", "results", "search_spaces", "tasks")
"""Packages whose versions, and not whose files, identify them."""


def local_sources(file: Path) -> tuple[Path, ...]:
    """Return a Python file, and the files under its folder that it imports, directly or through each other.

    Imports are read from the text, also those inside functions. Modules that are imported by a computed name are not
    found. The file is first, the others are sorted.
    """
    file = file.resolve()
    sources, queue = {file}, [file]
    while queue:
        new = {source for name in _imports(queue.pop(), file.parent) for source in _sources(name, file.parent)}
        queue += new - sources
        sources |= new
    return file, *sorted(sources - {file})


def source_digest(file: Path) -> str:
    """Return twelve hex digits of the contents of a file's local sources, equal in every folder."""
    first, *others = local_sources(file)
    lines = [_digest(first), *(f"{path.relative_to(first.parent).as_posix()} {_digest(path)}" for path in others)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _imports(source: Path, folder: Path) -> Iterator[tuple[str, ...]]:
    """Yield the parts of each name that a file imports; a relative name begins at `folder`."""
    try:
        tree = ast.parse(source.read_bytes())
    except (OSError, SyntaxError, ValueError):  # its import has its own error
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package: tuple[str, ...] = tuple(node.module.split(".")) if node.module else ()
            if node.level:
                if node.level > len(source.relative_to(folder).parts):  # above the folder
                    continue
                above = source.parents[node.level - 1]
                package = (*above.relative_to(folder).parts, *package)
            yield from ((*package, alias.name) for alias in node.names)


def _sources(name: tuple[str, ...], folder: Path) -> Iterator[Path]:
    """Yield the files under a folder that the import of a name may run: packages, modules and submodules."""
    if name[0] in _INSTALLED:
        return
    for root in (folder, *folder.parents):  # the folder may be a package, whose modules are named from above it
        for length in range(1, len(name) + 1):
            place = root.joinpath(*name[:length])
            for path in (place / "__init__.py", place.with_name(f"{place.name}.py")):
                if path.is_relative_to(folder) and path.is_file():
                    yield path
