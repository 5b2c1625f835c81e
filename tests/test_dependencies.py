"""What is imported is declared: a package that happens to be there is missing in the next environment."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import packages_distributions

from source_trees import ROOT, files, nodes

OURS = ("nas", "tasks", "search_spaces", "results", "benchmarks")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


@cache
def distributions() -> Mapping[str, list[str]]:
    """Of each package that can be imported here, the distributions that bring it."""
    return {"pynvml": ["nvidia-ml-py"], **packages_distributions()}


def names(requirements: list[str]) -> set[str]:
    return {normal(re.split(r"[\[<>=!~; ]", each)[0]) for each in requirements}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def imported(package: str) -> list[tuple[str, str]]:
    """Every package from elsewhere that is imported, with a file that does."""
    return list(imports_in(package))


def imports_in(package: str) -> Iterator[tuple[str, str]]:
    for path in files(package):
        for node in nodes(path):
            found = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found = [node.module]
            for name in {each.partition(".")[0] for each in found}:
                if name not in sys.stdlib_module_names and name not in OURS:
                    yield name, str(path.relative_to(ROOT))


def undeclared(package: str, declared: set[str]) -> set[tuple[str, str]]:
    return {
        (name, path)
        for name, path in imported(package)
        if not {normal(each) for each in distributions().get(name, [name])} & declared
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
