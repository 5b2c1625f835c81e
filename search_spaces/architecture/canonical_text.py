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


def without_defaults(spec: Spec) -> Spec:
    """The topology without options that have their defaults; an integer is a float where its default is one.

    One that is not installed, or cannot be imported, stays as it is: whoever wires it will be told.
    """
    defaults = _defaults(spec.name) if spec.options else {}
    options = {option: _like(value, defaults.get(option)) for option, value in spec.options.items()}
    return Spec(
        spec.name, {option: value for option, value in options.items() if not _same(value, defaults.get(option))}
    )


def with_defaults(spec: Spec) -> Spec:
    """The topology with all its options, but for those that are nothing where they are not given."""
    defaults = {option: value for option, value in _defaults(spec.name).items() if isinstance(value, Scalar)}
    return Spec(spec.name, {**defaults, **without_defaults(spec).options})


def _like(value: Scalar, default: Any) -> Scalar:
    return float(value) if type(value) is int and type(default) is float else value


def _same(value: Scalar, default: Any) -> bool:
    return type(value) is type(default) and value == default  # true is no 1, which would be refused


def _defaults(name: str) -> Mapping[str, Any]:
    module_and_name = TOPOLOGIES.place(name)
    try:
        return _defaults_at(name, *module_and_name) if module_and_name else {}
    except (UserError, AttributeError, TypeError):  # not kept here: it may be about to be imported
        return {}


@lru_cache(maxsize=256)
def _defaults_at(name: str, module: str, attribute: str) -> Mapping[str, Any]:
    in_source = option_defaults(module, attribute)
    return defaults_of(TOPOLOGIES.load(name).Options) if in_source is None else in_source


def defaults_of(options: type) -> Mapping[str, Any]:
    """The defaults of a dataclass. Raises TypeError where it is none."""
    return {option.name: option.default for option in fields(options) if option.default is not MISSING}


@lru_cache(maxsize=256)
def check_defaults(name: str, options: type) -> None:
    """Raise UserError where an installed topology's source tells other defaults than its options have."""
    in_source, in_options = _defaults(name), defaults_of(options)
    if in_source != in_options:
        rule = f"the source of topology {name!r} must tell the defaults that its options have, {in_options}"
        message = f"{rule}, and tells {dict(in_source)}. Write Options: type = NAME, and plain values in that class."
        raise UserError("bad-plugin", message, topology=name, defaults=tuple(in_source.items()))
