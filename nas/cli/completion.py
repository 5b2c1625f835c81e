"""Shell completion of installed names. Loads no torch."""

from nas.samplers.registry import SAMPLERS
from search_spaces.spaces.catalog import SPACES
from search_spaces.topologies.registry import TOPOLOGIES
from tasks.registry import TASKS


def tasks(beginning: str) -> list[str]:
    """Return the names of tasks with this prefix."""
    return _beginning(TASKS.names(), beginning)


def spaces(beginning: str) -> list[str]:
    """Return the names of search spaces with this prefix."""
    return _beginning(SPACES.names(), beginning)


def samplers(beginning: str) -> list[str]:
    """Return the names of samplers with this prefix; of "A,B" the last is completed."""
    return _last_of(SAMPLERS.names(), beginning)


def topologies(beginning: str) -> list[str]:
    """Return the names of topologies with this prefix; of "A,B" the last is completed."""
    return _last_of(TOPOLOGIES.names(), beginning)


def _beginning(names: list[str], beginning: str) -> list[str]:
    return [name for name in names if name.startswith(beginning)]


def _last_of(names: list[str], beginning: str) -> list[str]:
    before, comma, last = beginning.rpartition(",")
    return [f"{before}{comma}{name}" for name in _beginning(names, last)]
