"""What a name says of itself is read where it stands, and nothing there is run."""

import inspect
import sys
from pathlib import Path

import pytest

from nas.samplers import SAMPLERS
from search_spaces.catalog import SPACES
from search_spaces.docstrings import first_line
from search_spaces.registry import Registry
from search_spaces.topologies.registry import TOPOLOGIES
from tasks.registry import TASK_FAMILIES, TASKS

SOURCE = '''
"""A module that must not be run."""
import os
from described_by_others.deep.home import Elsewhere as Here
raise SystemExit

class Plain:
    """The first line.

    And another.
    """

def function() -> None:
    """What it does."""

class Silent(Plain):
    pass

made = function
'''


@pytest.fixture
def _package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / "described_by_others" / "deep"
    deep.mkdir(parents=True)
    for folder in (deep, deep.parent):
        (folder / "__init__.py").write_text("raise SystemExit")
    (deep / "home.py").write_text('class Elsewhere:\n    """From another module."""\n')
    (tmp_path / "described.py").write_text(SOURCE)
    (deep / "bad.py").write_text("class Plain(:\n")
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("_package")
@pytest.mark.parametrize(
    ("module", "name", "says"),
    [
        ("described", "Plain", "The first line."),
        ("described", "function", "What it does."),
        ("described", "Here", "From another module."),
        ("described_by_others.deep.home", "Elsewhere", "From another module."),
        ("described", "Silent", None),
        ("described", "made", None),
        ("described", "nothing", None),
        ("described_by_others.deep.bad", "Plain", None),
        ("described_by_others.nowhere.home", "Plain", None),
        ("no_such_module.at_all", "Plain", None),
        ("sys", "exit", None),
    ],
)
def test_a_first_line_is_read_without_running_anything(module: str, name: str, says: str | None) -> None:
    assert first_line(module, name) == says
    assert not {"described", "described_by_others"} & sys.modules.keys()


@pytest.mark.parametrize("registry", [TASKS, TASK_FAMILIES, SPACES, TOPOLOGIES, SAMPLERS], ids=lambda one: one.kind)
def test_all_of_ours_are_described_as_they_describe_themselves(registry: Registry) -> None:
    for name in registry.names():
        entry = registry._entries[name]
        assert first_line(entry.module, entry.attr) == (inspect.getdoc(registry.load(name)) or "").partition("\n")[0]
