"""What networks for text have in common: a limit on the number of tokens, and styles that are chosen by name."""

from collections.abc import Mapping
from typing import TypeVar

from torch import Tensor

from search_spaces.support.errors import UserError, unknown_name_error

Style = TypeVar("Style")


def check_length(ids: Tensor, context: int, network: str) -> None:
    """Raise UserError if ids [..., N] are more than the positions of a network."""
    if (tokens := ids.shape[-1]) > context:
        message = f"the {network} has {context} positions, got {tokens} tokens. Shorten the text."
        raise UserError("too-large", message, option="tokens", value=tokens, most=context)


def get_style(styles: Mapping[str, Style], name: str) -> Style:
    """Return the style of this name. Raises UserError if there is none."""
    if name not in styles:
        raise unknown_name_error("style", name, styles)
    return styles[name]
