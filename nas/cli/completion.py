"""What a shell completes beyond commands and options: names of what is installed. Loads no torch."""

from nas.samplers.registry import SAMPLERS
from search_spaces.spaces.catalog import SPACES
from search_spaces.topologies.registry import TOPOLOGIES
from tasks.registry import TASKS


def tasks(beginning: str) -> list[str]:
    """The names of tasks that begin so."""
    return _beginning(TASKS.names(), beginning)


def spaces(beginning: str) -> list[str]:
    """The names of search spaces that begin so."""
    return _beginning(SPACES.names(), beginning)


def samplers(beginning: str) -> list[str]:
    """The names of samplers that begin so; of "A,B" the last is completed."""
    return _last_of(SAMPLERS.names(), beginning)


def topologies(beginning: str) -> list[str]:
    """The names of topologies that begin so; of "A,B" the last is completed."""
    return _last_of(TOPOLOGIES.names(), beginning)


def _beginning(names: list[str], beginning: str) -> list[str]:
    return [name for name in names if name.startswith(beginning)]


def _last_of(names: list[str], beginning: str) -> list[str]:
    before, comma, last = beginning.rpartition(",")
    return [f"{before}{comma}{name}" for name in _beginning(names, last)]
