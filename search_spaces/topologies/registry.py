"""The installed topologies, and whether they can be used with an architecture. Imports torch only on demand."""

import inspect
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from search_spaces.architecture.architecture import Architecture
from search_spaces.architecture.canonical_text import TOPOLOGIES as TOPOLOGIES
from search_spaces.architecture.canonical_text import check_defaults
from search_spaces.support.errors import (
    Kind,
    Notice,
    UserError,
    cause_fields,
    reason_of,
    unknown_name_error,
    value_fields,
)
from search_spaces.support.spec import Axes, Scalar, Spec, format_scalar

if TYPE_CHECKING:
    from search_spaces.topologies.base import Topology


def resolve_topology(text: str) -> "tuple[type[Topology], Any]":
    """Return the class and the options of a topology's text.

    Raises:
        UserError: An unknown topology or option, an invalid value, or an entry that is no Topology.
    """
    spec = Spec.parse(text)
    topology = _class(spec.name)
    return topology, options_of(topology, spec)


def incompatibility_reason(architecture: Architecture) -> str | None:
    """Return why an architecture's topology cannot be used with it, or None. Raises what `resolve_topology` raises."""
    reasons = map(_segment_incompatibility_reason, architecture.segments)
    return next((reason for reason in reasons if reason is not None), None)


def compatible_topologies(architecture: Architecture) -> dict[str, list[str]]:
    """Return all topologies usable with an architecture -> their texts: the defaults, and values of their axes."""
    texts_by_name = {}
    for name in TOPOLOGIES.names():
        with suppress(UserError):  # skip what cannot be loaded or has invalid axes
            topology = resolve_topology(name)[0]
            check_axes(topology, name)
            axes = topology.axes
            texts = [name, *(str(Spec(name, {axis: value})) for axis, values in axes.items() for value in values)]
            texts_by_name[name] = [
                text for text in texts if incompatibility_reason(replace(architecture, topology=text)) is None
            ]
    return {name: texts for name, texts in texts_by_name.items() if texts}


def _segment_incompatibility_reason(segment: Architecture) -> str | None:
    """Return why one topology cannot connect these blocks, or None; each distinct block is checked."""
    topology, options = resolve_topology(segment.topology)
    name = Spec.parse(segment.topology).name
    different = (
        {block: None for b in range(segment.depth) if (block := segment.at_block(b))}
        if segment.blocks
        else {segment: None}
    )
    if topology.input_mode_of(options) == "heads" and len({block.head_dim for block in different}) > 1:
        lengths = "/".join(map(str, segment.by_block("head_dim")))
        return f"{name} works in head space: its blocks must have the same head_dim, got head_dim={lengths}."
    try:
        reasons = [topology.incompatibility_reason(block, options) for block in different]
    except UserError:
        raise
    except Exception as error:  # plug-ins may fail in any way
        message = f"incompatibility_reason of topology {name!r} failed: {reason_of(error)}"
        raise UserError("bad-plugin", message, **{**cause_fields(error), "topology": name}) from error
    return next((reason for reason in reasons if reason is not None), None)


def axes_of_topologies(base: Architecture) -> dict[str, Axes]:
    """Return every installed topology -> its axes: "resnet" first, the others in alphabetical order.

    A topology is skipped with a Notice if it cannot be imported, has invalid `axes`, or fails for `base`.
    """
    axes_by_name: dict[str, Axes] = {}
    for name in sorted(TOPOLOGIES.names(), key=lambda name: (name != "resnet", name)):
        try:
            topology = _class(name)
            check_axes(topology, name)
            if not base.model:
                incompatibility_reason(replace(base, topology=name))
        except UserError as error:
            inner = {**cause_fields(error), "topology": name}
            warnings.warn(Notice("skipped", f"skipped: {error}", **inner), stacklevel=2)
        else:
            axes_by_name[name] = topology.axes
    return axes_by_name


def check_axes(topology: "type[Topology]", name: str) -> None:
    """Raise UserError if a topology's `axes` are not existing options with valid values."""
    if name == "recipe" and topology.axes:
        message = "topology 'recipe' has axes that look like the recipe's. Rename it."
        raise UserError("bad-plugin", message, topology=name)
    for option, values in topology.axes.items():
        if not isinstance(values, tuple) or not values or len(set(values)) < len(values):
            message = f"axis {option!r} of topology {name!r} must be a tuple of distinct values, got {values!r}."
            raise UserError("bad-plugin", message, topology=name, option=option, **value_fields(values))
        for value in values:
            options_of(topology, Spec(name, {option: value}))


def _class(name: str) -> "type[Topology]":
    from search_spaces.topologies.base import Topology  # loads torch

    topology = TOPOLOGIES.load(name)
    if not (inspect.isclass(topology) and issubclass(topology, Topology)):
        message = f"topology {name!r} must be a subclass of search_spaces.topologies.base.Topology."
        raise UserError("bad-plugin", message, topology=name)
    if topology.__abstractmethods__:
        lacking = tuple(sorted(topology.__abstractmethods__))
        raise UserError("bad-plugin", f"topology {name!r} lacks {', '.join(lacking)}.", topology=name, needs=lacking)
    if is_dataclass(topology.Options):
        check_defaults(name, topology.Options)
    return topology


def options_of(topology: "type[Topology]", spec: Spec) -> Any:
    """Build a topology's options from its parsed text. Raises UserError for unknown options and invalid values."""
    try:
        return _options(topology.Options, spec)
    except UserError as error:
        if error.fields.get("topology") == spec.name:
            raise
        inner = {**error.fields, "topology": spec.name}
        raise UserError(error.kind, f"topology {spec.name!r}: {error}", **inner) from error
    except Exception as error:  # a plug-in's options may fail in any way
        message = f"options of topology {spec.name!r} cannot be read: {reason_of(error)}"
        raise UserError("bad-plugin", message, **{**cause_fields(error), "topology": spec.name}) from error


def _options(record: type, spec: Spec) -> Any:
    names = [field.name for field in fields(record)]
    hints = _types(record)
    for name, value in spec.options.items():
        if not names:
            message = f"topology {spec.name!r} takes no options, got {name}={format_scalar(value)}."
            raise UserError("unknown-name", message, option="option", value=name, choices=(), topology=spec.name)
        if name not in names:
            raise unknown_name_error("option", name, names, of=f"topology {spec.name!r}", topology=spec.name)
        if not _fits(value, hints[name]):
            choices = tuple(_names(hints[name]))
            rule = f"must be {' or '.join(choices)}, got {format_scalar(value)}"
            message = f"option {name} of topology {spec.name!r} {rule}."
            kind: Kind = "unknown-name" if get_origin(hints[name]) is Literal else "wrong-type"
            raise UserError(kind, message, option=name, value=value, choices=choices, topology=spec.name)
    return record(**spec.options)


@lru_cache(maxsize=256)
def _types(record: type) -> Mapping[str, Any]:
    """Return the types of a dataclass's fields. Cached: they are needed for every network that is counted."""
    return get_type_hints(record)


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
