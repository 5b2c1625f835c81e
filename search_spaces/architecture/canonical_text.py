"""Canonical texts of topologies: options with their default are left out.

Imports torch only for a topology whose source does not show its defaults.
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
    """Drop options with their default; an integer becomes a float if its default is one.

    A topology that is not installed or cannot be imported is returned unchanged; building it raises the error.
    """
    defaults = _defaults(spec.name) if spec.options else {}
    options = {option: _like(value, defaults.get(option)) for option, value in spec.options.items()}
    return Spec(
        spec.name, {option: value for option, value in options.items() if not _same(value, defaults.get(option))}
    )


def with_defaults(spec: Spec) -> Spec:
    """Return the topology with all its options, except those whose default is None."""
    defaults = {option: value for option, value in _defaults(spec.name).items() if isinstance(value, Scalar)}
    return Spec(spec.name, {**defaults, **without_defaults(spec).options})


def _like(value: Scalar, default: Any) -> Scalar:
    return float(value) if type(value) is int and type(default) is float else value


def _same(value: Scalar, default: Any) -> bool:
    return type(value) is type(default) and value == default  # true is not 1, which would be refused


def _defaults(name: str) -> Mapping[str, Any]:
    module_and_name = TOPOLOGIES.location(name)
    try:
        return _defaults_at(name, *module_and_name) if module_and_name else {}
    except (UserError, AttributeError, TypeError):  # not cached: it may be importable later
        return {}


@lru_cache(maxsize=256)
def _defaults_at(name: str, module: str, attribute: str) -> Mapping[str, Any]:
    in_source = option_defaults(module, attribute)
    return defaults_of(TOPOLOGIES.load(name).Options) if in_source is None else in_source


def defaults_of(options: type) -> Mapping[str, Any]:
    """Return the defaults of a dataclass. Raises TypeError for any other class."""
    return {option.name: option.default for option in fields(options) if option.default is not MISSING}


@lru_cache(maxsize=256)
def check_defaults(name: str, options: type) -> None:
    """Raise UserError if the source of an installed topology shows other defaults than its options have."""
    in_source, in_options = _defaults(name), defaults_of(options)
    if in_source != in_options:
        rule = f"the source code of topology {name!r} must show its options' defaults, {in_options}"
        message = f"{rule}, got {dict(in_source)}. Write Options: type = NAME, and plain values in that class."
        raise UserError("bad-plugin", message, topology=name, defaults=tuple(in_source.items()))
