"""The registry of installed samplers by name. Loads none of them."""

from search_spaces.support.registry import Registry

DEFAULT = "surrogate"

SAMPLERS = Registry("nas.samplers", "sampler", "One of your own is MODULE:CLASS.")
"""Each entry is a Proposer class, an Optuna sampler class, or a function without arguments that returns a Proposer.

`nas list samplers` shows the first line of its docstring.
"""


def check_sampler(text: str) -> None:
    """Raise UserError for a name that is not installed; accept any "package.module:Class"."""
    if text and ":" not in text:
        SAMPLERS.check(text)
