"""What a name says of itself is read where it stands, and nothing there is run."""

import inspect
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from nas.samplers import SAMPLERS
from search_spaces.catalog import SPACES
from search_spaces.registry import Registry
from search_spaces.source_text import first_line, option_defaults
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


@pytest.mark.usefixtures("_package")
@pytest.mark.parametrize(
    ("module", "name", "says"),
    [
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
    ],
)
def test_a_first_line_is_read_without_running_anything(module: str, name: str, says: str | None) -> None:
    assert first_line(module, name) == says
    assert not {"described", "described_by_others"} & sys.modules.keys()


@pytest.mark.usefixtures("_package")
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Wired", {"many": 2, "rate": 0.01, "word": None, "on": True}),
        ("Below", {"many": 2, "rate": 0.01, "word": None, "on": True}),
        ("Here", None),
        ("Second", {"far": 1}),
        ("Elsewhere", None),
        ("OfAnother", None),
        ("OfShadow", None),
        ("WithInner", None),
        ("Circle", None),
        ("OfModule", None),
        ("Made", None),
        ("Called", None),
        ("ByModule", None),
        ("OptionsBelowModule", None),
        ("Unannotated", None),
        ("Nested", None),
        ("Perhaps", None),
        ("TwoBases", None),
        ("OfTwo", None),
        ("WithConstants", None),
        ("WithConditional", None),
        ("OfTwice", {"many": 2}),
        ("Silenced", None),
        ("Wired2", None),
        ("Shadowed", None),
        ("Looped", None),
        ("Relative", None),
        ("Plain", None),
        ("function", None),
        ("nothing", None),
    ],
)
def test_defaults_are_read_without_running_anything(name: str, told: dict[str, Any] | None) -> None:
    assert option_defaults("described", name) == told
    assert not {"described", "described_by_others"} & sys.modules.keys()


@pytest.mark.parametrize("name", TOPOLOGIES.names())
def test_all_of_ours_tell_their_defaults(name: str) -> None:
    place = TOPOLOGIES.place(name)
    assert place is not None
    assert option_defaults(*place) == {field.name: field.default for field in fields(TOPOLOGIES.load(name).Options)}


@pytest.mark.parametrize("registry", [TASKS, TASK_FAMILIES, SPACES, TOPOLOGIES, SAMPLERS], ids=lambda one: one.kind)
def test_all_of_ours_are_described_as_they_describe_themselves(registry: Registry) -> None:
    for name in registry.names():
        entry = registry._entries[name]
        assert first_line(entry.module, entry.attr) == (inspect.getdoc(registry.load(name)) or "").partition("\n")[0]
