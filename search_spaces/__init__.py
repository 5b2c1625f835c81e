"""What is built: the architecture record, search spaces, topologies, layers and models."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from search_spaces.architecture.architecture import Architecture
    from search_spaces.spaces.space import Candidate, SearchSpace
    from search_spaces.support.errors import UserError

__all__ = ["Architecture", "Candidate", "SearchSpace", "UserError"]

_HOMES = {
    "Architecture": "architecture.architecture",
    "Candidate": "spaces.space",
    "SearchSpace": "spaces.space",
    "UserError": "support.errors",
}


def __getattr__(name: str) -> Any:  # whoever asks for results needs no space
    if name not in _HOMES:
        raise AttributeError(f"module 'search_spaces' has no attribute {name!r}")
    return getattr(import_module(f"search_spaces.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
