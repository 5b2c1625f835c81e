"""One text for one wiring: what it says of a topology are the options that differ from their defaults.

Imports torch only for a topology whose source does not tell its defaults.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from functools import lru_cache
from typing import Any

from search_spaces.support.errors import UserError
from search_spaces.support.registry import Registry
from search_spaces.support.source_text import option_defaults
from search_spaces.support.spec import Scalar, Spec

TOPOLOGIES = Registry("nas.topologies", "topology")


def shortest(spec: Spec) -> Spec:
    """The topology without options that have their defaults; an integer is a float where its default is one.

    One that is not installed, or cannot be imported, stays as it is: whoever wires it will be told.
    """
    usual = _defaults(spec.name) if spec.options else {}
    said = {option: _like(value, usual.get(option)) for option, value in spec.options.items()}
    return Spec(spec.name, {option: value for option, value in said.items() if not _same(value, usual.get(option))})


def whole(spec: Spec) -> Spec:
    """The topology with all its options, but for those that are nothing where they are not given."""
    usual = {option: value for option, value in _defaults(spec.name).items() if isinstance(value, Scalar)}
    return Spec(spec.name, {**usual, **shortest(spec).options})


def _like(value: Scalar, default: Any) -> Scalar:
    return float(value) if type(value) is int and type(default) is float else value


def _same(value: Scalar, default: Any) -> bool:
    return type(value) is type(default) and value == default  # true is no 1, which would be refused


def _defaults(name: str) -> Mapping[str, Any]:
    place = TOPOLOGIES.place(name)
    try:
        return _defaults_at(name, *place) if place else {}
    except (UserError, AttributeError, TypeError):  # not kept here: it may be about to be imported
        return {}


@lru_cache(maxsize=256)
def _defaults_at(name: str, module: str, attribute: str) -> Mapping[str, Any]:
    told = option_defaults(module, attribute)
    return defaults_of(TOPOLOGIES.load(name).Options) if told is None else told


def defaults_of(options: type) -> Mapping[str, Any]:
    """The defaults of a dataclass. Raises TypeError where it is none."""
    return {option.name: option.default for option in fields(options) if option.default is not MISSING}


@lru_cache(maxsize=256)
def check_told(name: str, options: type) -> None:
    """Raise UserError where an installed topology's source tells other defaults than its options have."""
    told, known = _defaults(name), defaults_of(options)
    if told != known:
        rule = f"the source of topology {name!r} must tell the defaults that its options have, {known}"
        message = f"{rule}, and tells {dict(told)}. Write Options: type = NAME, and plain values in that class."
        raise UserError("bad-plugin", message, topology=name, defaults=tuple(told.items()))
