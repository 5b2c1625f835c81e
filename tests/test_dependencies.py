"""All imported packages are declared dependencies."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import packages_distributions

from source_trees import ROOT, files, nodes

PACKAGES = ("nas", "tasks", "search_spaces", "results", "benchmarks")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


@cache
def distributions() -> Mapping[str, list[str]]:
    """Importable package -> distributions that contain it."""
    return {"pynvml": ["nvidia-ml-py"], **packages_distributions()}


def names(requirements: list[str]) -> set[str]:
    return {normal(re.split(r"[\[<>=!~; ]", each)[0]) for each in requirements}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def imports(package: str) -> list[tuple[str, str]]:
    """Every imported third-party package, with a file that imports it."""
    return list(imports_in(package))


def imports_in(package: str) -> Iterator[tuple[str, str]]:
    for path in files(package):
        for node in nodes(path):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for name in {each.partition(".")[0] for each in names}:
                if name not in sys.stdlib_module_names and name not in PACKAGES:
                    yield name, str(path.relative_to(ROOT))


def undeclared(package: str, declarations: set[str]) -> set[tuple[str, str]]:
    return {
        (name, path)
        for name, path in imports(package)
        if not {normal(each) for each in distributions().get(name, [name])} & declarations
    }


def test_imported_packages_are_declared() -> None:
    for_users = [each for extra, needs in EXTRAS.items() if extra not in ("test", "dev") for each in needs]
    for package in ("nas", "tasks", "search_spaces", "results"):
        assert undeclared(package, names([*PROJECT["dependencies"], *for_users])) == set()


def test_packages_that_benchmarks_import_are_declared() -> None:
    every = [*PROJECT["dependencies"], *(each for needs in EXTRAS.values() for each in needs)]
    assert undeclared("benchmarks", names(every)) == set()


def test_undeclared_package_is_named() -> None:
    every = names(PROJECT["dependencies"]) - {"tomli-w"}
    assert ("tomli_w", "nas/cli/config_file.py") in undeclared("nas", every)
