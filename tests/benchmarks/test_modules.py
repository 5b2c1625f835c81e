"""No benchmark is left behind when what it measures moves elsewhere: each can still be imported."""

import importlib
from pathlib import Path

import pytest

MODULES = sorted(path.stem for path in Path(__file__).parents[2].joinpath("benchmarks").glob("[!_]*.py"))


@pytest.mark.parametrize("name", MODULES)
def test_a_benchmark_can_be_imported(name: str) -> None:
    assert importlib.import_module(f"benchmarks.{name}").__doc__
