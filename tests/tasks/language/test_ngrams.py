import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from tasks.language.ngrams import NgramModel

V, ORDER = 5, 4


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    """Rows [R, N + 1] in which some n-grams are frequent; two end in padding."""
    draw = np.random.default_rng(0)
    tokens = (draw.integers(0, V, (30, 9)) * draw.integers(0, 2, (30, 9))).astype(np.int64)
    tokens[3, 5:] = tokens[7, 2:] = -100
    return tokens


def grams(rows: np.ndarray, n: int) -> list[tuple[int, ...]]:
    """The n-grams of each row that end after its first token."""
    lines = [[token for token in row if token >= 0] for row in rows.tolist()]
    return [tuple(line[end - n : end]) for line in lines for end in range(max(n, 2), len(line) + 1)]


def kneser_ney(rows: np.ndarray, context: Sequence[int], token: int, highest: bool = True) -> float:
    """The definition, by recursion over contexts (Chen and Goodman, 1998, section 2.7)."""
    n = len(context) + 1
    counts = Counter(grams(rows, n) if highest else [gram[1:] for gram in set(grams(rows, n + 1))])
    n1, n2 = (sum(count == times for count in counts.values()) for times in (1, 2))
    discount = n1 / (n1 + 2 * n2) if n1 else 0.75
    shorter = kneser_ney(rows, context[1:], token, highest=False) if context else 1 / V
    after = [count for gram, count in counts.items() if gram[:-1] == tuple(context)]
    if not after:
        return shorter
    count = counts[*context, token]
    return (max(count - discount, 0) + discount * len(after) * shorter) / sum(after)


def test_probabilities_are_those_of_the_definition(rows: np.ndarray) -> None:
    held_out = np.random.default_rng(1).integers(0, V, (4, 7))
    nats = NgramModel.fit(rows, V, ORDER).nats(held_out)
    for row, of_row in zip(held_out.tolist(), nats, strict=True):
        for end, value in enumerate(of_row, 1):
            context = row[max(0, end - ORDER + 1) : end]
            assert value == pytest.approx(-math.log(kneser_ney(rows, context, row[end])))


def test_probabilities_sum_to_one_after_known_and_unknown_contexts(rows: np.ndarray) -> None:
    model = NgramModel.fit(rows, V + 1, ORDER)  # the last token never occurs
    contexts = np.random.default_rng(2).integers(0, V + 1, (40, ORDER))
    every = np.array([[*context, token] for context in contexts.tolist() for token in range(V + 1)])
    sums = np.exp(-model.nats(every)).reshape(40, V + 1, ORDER)[..., -1].sum(axis=1)
    np.testing.assert_allclose(sums, 1)


def test_probabilities_are_positive_if_no_ngram_occurs_once() -> None:
    row = np.arange(12).reshape(1, 12)
    model = NgramModel.fit(np.tile(row, (3, 1)), 12, 2)
    assert np.isfinite(model.nats(row[:, ::-1])).all()


def test_refuses_ngrams_of_more_than_63_bits() -> None:
    with pytest.raises(ValueError, match="6208"):
        NgramModel.fit(np.zeros((1, 6), dtype=np.int64), 6209, 5)
