"""Descriptions of a topology's options, from the docstrings of its `Options` and their base classes."""

import inspect
import re
from dataclasses import fields

from search_spaces.topologies.base import Topology

_ATTRIBUTE = re.compile(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", re.MULTILINE)


def option_descriptions(kind: type[Topology]) -> dict[str, str]:
    """Return every option -> its description on one line; "" if no docstring has one."""
    by_option: dict[str, str] = {}
    for options in reversed(kind.Options.__mro__):
        attributes = inspect.cleandoc(options.__doc__ or "").partition("Attributes:\n")[2].partition("\n\n")[0]
        by_option |= {name: " ".join(meaning.split()) for name, meaning in _ATTRIBUTE.findall(attributes)}
    return {field.name: by_option.get(field.name, "") for field in fields(kind.Options)}
