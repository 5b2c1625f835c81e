"""The installed ways of searching by name. Loads none of them."""

from search_spaces.support.registry import Registry

DEFAULT = "surrogate"

SAMPLERS = Registry("nas.samplers", "sampler")
"""Each entry is a Proposer's class, an Optuna sampler's class, or a function without arguments that gives a Proposer.

The first line of its docstring is what `nas list samplers` shows.
"""


def check_sampler(text: str) -> None:
    """Raise UserError where a sampler is no "package.module:Class" and has no installed name."""
    if text and ":" not in text:
        SAMPLERS.check(text)
