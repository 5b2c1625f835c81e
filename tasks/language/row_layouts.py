"""Layouts of documents in rows of tokens.

A document is its tokens followed by the end-of-document token. A grid's rows are one longer than the context, so that
the token at n + 1 is the target of the token at n; IGNORE_INDEX pads the rest. Values per token, such as bytes and
documents, use the same layouts.

Shapes: R = rows, N = context, n = tokens of one document.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.language.tokenizer import Tokens

IGNORE_INDEX = -100
"""The target that torch's cross-entropy ignores."""


class Layout(ABC):
    """A rule by which documents fill rows."""

    @abstractmethod
    def grid(self, documents: Sequence[Tokens], context: int) -> Tokens:
        """Lay out documents [n], with their end-of-document tokens, as a grid [R, N + 1]."""


@dataclass(frozen=True, slots=True)
class PaddedLayout(Layout):
    """One document per row: truncated to the context, with the end-of-document token last, then padded.

    The first token is not predicted, as it has no context. Padding is neither predicted nor attended to, as it comes
    last. The code of GaLore (Zhao et al., 2024) and ANCRe pre-trains in this way.
    """

    def grid(self, documents: Sequence[Tokens], context: int) -> Tokens:
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
    """Concatenated documents, cut into rows of the context's length; only the last row is padded.

    A document's first token is predicted from the end-of-document token before it. Attention crosses documents, as in
    GPT-2 and nanoGPT, and as fused kernels with a plain causal mask require. The code of the residual matrix
    transformer masks it.
    """

    def grid(self, documents: Sequence[Tokens], context: int) -> Tokens:
        """Lay out rows that overlap by one token, the last of one being the first of the next."""
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
