"""Docstrings and defaults are read from source text without running it."""

import inspect
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from grouped import grouped
from nas.samplers.registry import SAMPLERS
from search_spaces.spaces.catalog import SPACES
from search_spaces.support.registry import Registry
from search_spaces.support.source_text import first_line, option_defaults
from search_spaces.topologies.registry import TOPOLOGIES
from tasks.registry import TASK_FAMILIES, TASKS

SOURCE = '''
"""A module that must not be run."""
import os
from described_by_others.deep.home import Elsewhere as Here
from .home import Relative
raise SystemExit

class Plain:
    """The first line.

    And another.
    """

def function() -> None:
    """What it does."""

class Silent(Plain):
    pass

class Options:
    """Of numbers and words."""
    kept: ClassVar[int]
    many: int = -4
    rate: float = 1e-2
    word: str | None = None

class MoreOptions(Options):
    many: int = 2
    on: bool = True

class MadeOptions(MoreOptions):
    made: int = field(default=3)

class Wired:
    Options: ClassVar[type] = MoreOptions

class Below(Wired):
    pass

class OfAnother(Here):
    pass

class OfModule(os.Wired):
    pass

class Made(Wired):
    Options: ClassVar[type] = MadeOptions

class Called(Wired):
    Options: ClassVar[type] = made()

class ByModule:
    Options: ClassVar[type] = os.Options

class BelowModule(os.Options):
    many: int = 2

class OptionsBelowModule:
    Options: ClassVar[type] = BelowModule

class Unannotated(Wired):
    Options = MoreOptions

class Nested(Wired):
    class Options:
        many: int = 3

class Perhaps(Wired):
    if os.name:
        Options: ClassVar[type] = MoreOptions

class TwoBases(Wired, Here):
    pass

class TwoOptionBases(Options, MoreOptions):
    pass

class OfTwo:
    Options: ClassVar[type] = TwoOptionBases

class Constants:
    MOST: ClassVar[int] = 8
    many: int = 2

class WithConstants:
    Options: ClassVar[type] = Constants

class Conditional:
    if os.name:
        many: int = 3

class WithConditional:
    Options: ClassVar[type] = Conditional

class Twice:
    many: int = 1

class Twice:
    """The second."""
    many: int = 2

    def __post_init__(self) -> None:
        pass

class OfTwice:
    Options: ClassVar[type] = Twice

class Here(Here):
    pass

from described_by_others.deep.home import O
class O(O):
    near: int = 2

class OfShadow:
    Options: ClassVar[type] = O

class WithInner:
    Options: ClassVar[type] = Inner
    class Inner:
        many: int = 7

class Inner:
    many: int = 6

from described_round import Circle
from described_by_others.deep.home import Missing as Elsewhere, Elsewhere as Second

class Shadowed(Wired):
    pass

if os.name:
    class Shadowed(Wired):
        pass

Silenced = Wired
if os.name:
    class Wired2(Wired):
        """One of two."""
for Looped in (Wired,):
    pass

made = function
'''


@pytest.fixture
def _package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / "described_by_others" / "deep"
    deep.mkdir(parents=True)
    for folder in (deep, deep.parent):
        (folder / "__init__.py").write_text("raise SystemExit")
    (deep / "home.py").write_text(
        'class Elsewhere:\n    """From another module."""\n    Options: type = O\nclass O:\n    far: int = 1\n'
    )
    (tmp_path / "described.py").write_text(SOURCE)
    (tmp_path / "described_round.py").write_text("from described import Circle\n")
    (tmp_path / "home.py").write_text("class Relative:\n    Options: type = O\nclass O:\n    near: int = 1\n")
    (deep / "bad.py").write_text("class Plain(:\n")
    monkeypatch.syspath_prepend(str(tmp_path))


FIRST_LINES = [
    ("described", "Plain", "The first line."),
    ("described", "function", "What it does."),
    ("described", "Second", "From another module."),
    ("described", "Circle", None),
    ("described_by_others.deep.home", "Elsewhere", "From another module."),
    ("described", "Silent", None),
    ("described", "Twice", "The second."),
    ("described", "Wired2", None),
    ("described", "made", None),
    ("described", "nothing", None),
    ("described_by_others.deep.bad", "Plain", None),
    ("described_by_others.nowhere.home", "Plain", None),
    ("no_such_module.at_all", "Plain", None),
    ("sys", "exit", None),
]


@pytest.mark.usefixtures("_package")
def test_a_first_line_is_read_without_running_anything() -> None:
    with grouped() as case:
        for module, name, says in FIRST_LINES:
            with case(f"{module}.{name}"):
                assert first_line(module, name) == says
    assert not {"described", "described_by_others"} & sys.modules.keys()


PLAIN = {"many": 2, "rate": 0.01, "word": None, "on": True}
DEFAULTS = {"Wired": PLAIN, "Below": PLAIN, "Second": {"far": 1}, "OfTwice": {"many": 2}}
UNTOLD = """
    Here Elsewhere OfAnother OfShadow WithInner Circle OfModule Made Called ByModule OptionsBelowModule Unannotated
    Nested Perhaps TwoBases OfTwo WithConstants WithConditional Silenced Wired2 Shadowed Looped Relative Plain function
    nothing
""".split()


@pytest.mark.usefixtures("_package")
def test_defaults_are_read_without_running_anything() -> None:
    with grouped() as case:
        for name in (*DEFAULTS, *UNTOLD):
            with case(name):
                assert option_defaults("described", name) == DEFAULTS.get(name)
    assert not {"described", "described_by_others"} & sys.modules.keys()


def test_defaults_read_from_the_source_of_each_topology_are_those_of_its_options() -> None:
    with grouped() as case:
        for name in TOPOLOGIES.names():
            with case(name):
                place = TOPOLOGIES.location(name)
                assert place is not None
                defaults = fields(TOPOLOGIES.load(name).Options)
                assert option_defaults(*place) == {field.name: field.default for field in defaults}


@pytest.mark.parametrize("registry", [TASKS, TASK_FAMILIES, SPACES, TOPOLOGIES, SAMPLERS], ids=lambda each: each.kind)
def test_first_lines_read_from_the_source_are_those_of_the_docstrings(registry: Registry) -> None:
    with grouped() as case:
        for name in registry.names():
            with case(name):
                place = registry.location(name)
                assert place is not None
                assert first_line(*place) == (inspect.getdoc(registry.load(name)) or "").partition("\n")[0]
