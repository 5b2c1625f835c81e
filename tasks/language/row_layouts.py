"""From documents to rows of tokens: how documents lie in the context of a network.

A document is its tokens with the boundary behind them. A grid holds rows one longer than the context, so that what
stands at n + 1 is what follows the token at n; IGNORE_INDEX fills what is left over. Whatever belongs to tokens (their
bytes, their document) is laid out by the same functions.

Shapes: R = rows, N = context, n = tokens of one document.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.language.tokenizer import Tokens

IGNORE_INDEX = -100
"""What torch's cross-entropy passes over."""


class Layout(ABC):
    """How documents fill rows."""

    @abstractmethod
    def grid(self, documents: Sequence[Tokens], context: int) -> Tokens:
        """Lay out documents [n], with their boundaries, as a grid [R, N + 1]."""


@dataclass(frozen=True, slots=True)
class PaddedLayout(Layout):
    """One document a row: cut to the context, the boundary as its last token, the rest padded.

    The first token is not predicted, since nothing comes before it, and padding is neither predicted nor attended to,
    since it comes last. Pre-training in GaLore's (Zhao et al., 2024) and ANCRe's code is of this kind.
    """

    def grid(self, documents: Sequence[Tokens], context: int) -> Tokens:
        """A row for each document."""
        rows = np.full((len(documents), context + 1), IGNORE_INDEX, dtype=np.int32)  # [R, N + 1]
        for row, document in zip(rows, documents, strict=True):
            tokens = document[:context]
            row[: len(tokens)] = tokens
            row[len(tokens) - 1] = document[-1]
        return rows

    def __str__(self) -> str:
        return "padded"


@dataclass(frozen=True, slots=True)
class PackedLayout(Layout):
    """Documents one after another, cut into rows wherever the context ends: no padding but in the last row.

    Each document's first token is predicted from the boundary before it. Attention reaches over boundaries, as in
    GPT-2 and nanoGPT, and as it must where it is a fused kernel with a plain causal mask; the code of the residual
    matrix transformer keeps it inside documents.
    """

    def grid(self, documents: Sequence[Tokens], context: int) -> Tokens:
        """Rows that overlap by one token, the last of one being the first of the next."""
        if not documents:
            return np.empty((0, context + 1), dtype=np.int32)
        line = np.concatenate((documents[0][-1:], *documents))
        rows = -(-(len(line) - 1) // context)
        tokens = np.full(rows * context + 1, IGNORE_INDEX, dtype=np.int32)
        tokens[: len(line)] = line
        starts = context * np.arange(rows)[:, None]
        grid: Tokens = tokens[starts + np.arange(context + 1)]  # [R, N + 1]
        return grid

    def __str__(self) -> str:
        return "packed"
