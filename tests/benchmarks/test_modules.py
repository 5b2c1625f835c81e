"""Every benchmark can be imported."""

import importlib
from pathlib import Path

from grouped import grouped

MODULES = sorted(path.stem for path in Path(__file__).parents[2].joinpath("benchmarks").glob("[!_]*.py"))


def test_benchmarks_can_be_imported() -> None:
    assert MODULES
    with grouped() as case:
        for name in MODULES:
            with case(name):
                assert importlib.import_module(f"benchmarks.{name}").__doc__
