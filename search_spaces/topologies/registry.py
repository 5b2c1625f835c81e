"""The installed topologies, and whether one of them can wire an architecture. Imports torch only when asked."""

from dataclasses import fields
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from search_spaces.architecture import Architecture
from search_spaces.errors import UserError, unknown
from search_spaces.registry import Registry
from search_spaces.spec import Scalar, Spec, format_scalar

if TYPE_CHECKING:
    from search_spaces.topologies.base import Topology

TOPOLOGIES = Registry("nas.topologies", "topology")


def load(text: str) -> "tuple[type[Topology], Any]":
    """The class that a topology's text names, and its options.

    Raises:
        UserError: An unknown topology or option, or a value that the option cannot have.
    """
    spec = Spec.parse(text)
    topology = TOPOLOGIES.load(spec.name)
    return topology, _options(topology.Options, spec)


def refusal(architecture: Architecture) -> str | None:
    """Why this architecture's topology cannot wire it, or None where it can. Raises UserError as `load` does."""
    topology, options = load(architecture.topology)
    return topology.refusal(architecture, options)


def _options(record: type, spec: Spec) -> Any:
    known = [field.name for field in fields(record)]
    hints = get_type_hints(record)
    for name, value in spec.options.items():
        if not known:
            raise UserError(f"topology {spec.name!r} takes no options, got {name}={format_scalar(value)}.")
        if name not in known:
            raise unknown(f"option of topology {spec.name!r}", name, known)
        if not _fits(value, hints[name]):
            wanted = " or ".join(_names(hints[name]))
            raise UserError(f"option {name} of topology {spec.name!r} must be {wanted}, got {format_scalar(value)}.")
    return record(**spec.options)


def _fits(value: Scalar, hint: Any) -> bool:
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_args(hint):
        return any(_fits(value, member) for member in get_args(hint))
    return type(value) is hint or (hint is float and type(value) is int)


def _names(hint: Any) -> list[str]:
    if get_origin(hint) is Literal:
        return [str(word) for word in get_args(hint)]
    members = get_args(hint) or (hint,)
    return [member.__name__ for member in members if member is not NoneType]
