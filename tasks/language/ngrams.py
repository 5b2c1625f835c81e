"""N-grams with interpolated Kneser-Ney smoothing.

Counts are sparse: an n-gram is one integer, whose digits in base V are its tokens, the last one lowest. An n-gram lies
in one row, as a network's context does.

Shapes: R = rows, N = context, V = vocabulary, G = distinct n-grams, C = distinct contexts.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]

_NONE = -1
"""The number of an n-gram that would begin before its row, or whose last token is no target."""

_DISCOUNT = 0.75
"""The discount if no n-gram occurs once."""


@dataclass(frozen=True, eq=False)
class NgramModel:
    """Interpolated Kneser-Ney (Kneser and Ney, 1995; Chen and Goodman, 1998).

    The first tokens of a row have short contexts, and are predicted by n-grams of lower order.

    Attributes:
        vocabulary: Number of tokens, V.
        frequencies: For each order, from unigrams on, how often each n-gram occurs.
        continuations: For each order but the highest, after how many different tokens each n-gram occurs.
    """

    vocabulary: int
    frequencies: "tuple[DiscountedCounts, ...]"
    continuations: "tuple[DiscountedCounts, ...]"

    @classmethod
    def fit(cls, tokens: Integers, vocabulary: int, order: int) -> "NgramModel":
        """Count the n-grams of rows [R, N + 1] up to an order; negative tokens are padding.

        Raises:
            ValueError: An n-gram does not fit into 63 bits.
        """
        if vocabulary**order >= 2**63:
            raise ValueError(f"{order}-grams need a vocabulary below {2 ** (63 / order):.0f}, got {vocabulary}.")
        numbers = [_ngrams(tokens, vocabulary, n) for n in range(1, order + 1)]
        distinct = [np.unique(ngrams[ngrams != _NONE], return_counts=True) for ngrams in numbers]
        # Without its first token, each distinct n-gram counts once.
        suffixes = [
            np.unique(ngrams % vocabulary**n, return_counts=True) for n, (ngrams, _) in enumerate(distinct[1:], 1)
        ]
        frequencies, continuations = (
            tuple(DiscountedCounts.of(ngrams, counts, vocabulary) for ngrams, counts in table)
            for table in (distinct, suffixes)
        )
        return cls(vocabulary, frequencies, continuations)

    def nats(self, tokens: Integers) -> Floats:
        """Return -log p of the tokens of rows [R, N + 1] after the first, [R, N]."""
        shorter = np.full((len(tokens), tokens.shape[1] - 1), 1 / self.vocabulary)  # [R, N]
        probabilities = shorter
        for n, frequencies in enumerate(self.frequencies, 1):
            ngrams = _ngrams(tokens, self.vocabulary, n)
            probabilities = np.where(ngrams == _NONE, probabilities, frequencies.interpolate(ngrams, shorter))
            if n <= len(self.continuations):
                shorter = self.continuations[n - 1].interpolate(ngrams, shorter)
        return -np.log(probabilities)


@dataclass(frozen=True, eq=False)
class DiscountedCounts:
    """Counts of the n-grams of one order, less the discount.

    Attributes:
        vocabulary: Number of tokens, V.
        ngrams: Distinct n-grams, ascending, [G].
        counts: Their counts less the discount, [G].
        contexts: Distinct n-grams without their last token, ascending, [C].
        totals: Counts of each context, before the discount, [C].
        discounts: Sum of the discounts of each context, [C].
    """

    vocabulary: int
    ngrams: Integers
    counts: Floats
    contexts: Integers
    totals: Floats
    discounts: Floats

    @classmethod
    def of(cls, ngrams: Integers, counts: Integers, vocabulary: int) -> "DiscountedCounts":
        """Discount by n1 / (n1 + 2 n2), of the n-grams that occur once and twice (Ney, Essen and Kneser, 1994)."""
        once, twice = np.count_nonzero(counts == 1), np.count_nonzero(counts == 2)
        discount = once / (once + 2 * twice) if once else _DISCOUNT
        contexts, context_of = np.unique(ngrams // vocabulary, return_inverse=True)
        totals = np.bincount(context_of, weights=counts).astype(np.float64)
        return cls(vocabulary, ngrams, counts - discount, contexts, totals, discount * np.bincount(context_of))

    def interpolate(self, ngrams: Integers, shorter: Floats) -> Floats:
        """Return p of the last token of each n-gram, given p by the shorter context; both of any shape.

        After an unknown context, p is that of the shorter one.
        """
        place, is_known = _find(self.ngrams, ngrams)
        context, is_context = _find(self.contexts, ngrams // self.vocabulary)
        counts = np.where(is_known, self.counts[place], 0.0)
        return np.where(is_context, (counts + self.discounts[context] * shorter) / self.totals[context], shorter)


def _ngrams(tokens: Integers, vocabulary: int, n: int) -> Integers:
    """Return the n-gram that ends at each token of rows [R, N + 1] after the first, [R, N]."""
    length = tokens.shape[1]
    ngrams = np.full((len(tokens), length - 1), _NONE, dtype=np.int64)
    first = max(n, 2) - 2  # the place of the first target that has n - 1 tokens before it
    last_tokens = tokens[:, first + 1 :]
    numbers = sum(tokens[:, first + 1 - i : length - i].clip(min=0) * vocabulary**i for i in range(n))
    ngrams[:, first:] = np.where(last_tokens < 0, _NONE, numbers)
    return ngrams


def _find(ascending: Integers, values: Integers) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return a place of each value in an ascending array, and whether the value stands there."""
    places = np.searchsorted(ascending, values).clip(max=len(ascending) - 1)
    return places, ascending[places] == values
