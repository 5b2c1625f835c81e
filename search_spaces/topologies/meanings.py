"""What the options of a topology mean, by the docstrings of its `Options` and of what they inherit."""

import inspect
import re
from dataclasses import fields

from search_spaces.topologies.base import Topology

_ATTRIBUTE = re.compile(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", re.MULTILINE)


def meanings(kind: type[Topology]) -> dict[str, str]:
    """Every option -> what it means, on one line; "" where no docstring says it."""
    by_option: dict[str, str] = {}
    for options in reversed(kind.Options.__mro__):
        attributes = inspect.cleandoc(options.__doc__ or "").partition("Attributes:\n")[2].partition("\n\n")[0]
        by_option |= {name: " ".join(meaning.split()) for name, meaning in _ATTRIBUTE.findall(attributes)}
    return {field.name: by_option.get(field.name, "") for field in fields(kind.Options)}
