"""Meanings of options come from docstrings, own or inherited."""

from dataclasses import dataclass

from grouped import grouped
from search_spaces.topologies.option_docs import option_descriptions
from search_spaces.topologies.registry import TOPOLOGIES, resolve_topology
from search_spaces.topologies.single_stream import SingleStreamTopology


def test_every_option_of_every_topology_has_a_meaning() -> None:
    with grouped() as case:
        for name in TOPOLOGIES.names():
            with case(name):
                kind, _ = resolve_topology(name)
                assert all(option_descriptions(kind).values()), option_descriptions(kind)
                assert set(kind.axes) <= option_descriptions(kind).keys()


def test_a_meaning_is_one_line_of_the_nearest_docstring() -> None:
    @dataclass(frozen=True)
    class Options:
        """Some.

        Attributes:
            near: How near, in steps: as
                many as there are.
            far: How far.

        Raises:
            near: Nothing of this.
        """

        near: int = 1
        far: int = 2
        untold: int = 3

    @dataclass(frozen=True)
    class Subclass(Options):
        """More.

        Attributes:
            far: How far it may be.
        """

    class Kind(SingleStreamTopology):
        """One."""

    Kind.Options = Subclass
    near, far = "How near, in steps: as many as there are.", "How far it may be."
    assert option_descriptions(Kind) == {"near": near, "far": far, "untold": ""}
