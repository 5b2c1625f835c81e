import math
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from stories_lm import StoriesLM

from tasks.language.baselines import bigram, pair_counts, simple_methods, unigram, xz_bits_per_byte
from tasks.language.data import LanguageSplits
from tasks.language.row_layouts import IGNORE_INDEX

ROWS = [([0, 1, 2, 1], [1, 2, 1, 2]), ([2, 2, 0, 0], [2, 0, IGNORE_INDEX, IGNORE_INDEX])]


@pytest.fixture
def counts() -> torch.Tensor:
    return pair_counts(((torch.tensor([a]), torch.tensor([b])) for a, b in ROWS), 4)


def test_counts_pairs_that_are_not_ignored(counts: torch.Tensor) -> None:
    by_hand = torch.zeros(4, 4, dtype=torch.float64)
    for inputs, following in ROWS:
        for before, after in zip(inputs, following, strict=True):
            if after != IGNORE_INDEX:
                by_hand[before, after] += 1
    assert torch.equal(counts, by_hand)


def test_unigram_and_bigram_tables_are_probabilities(counts: torch.Tensor) -> None:
    for table in (unigram(counts), bigram(counts)):
        torch.testing.assert_close((-table).exp().sum(dim=1), torch.ones(4, dtype=torch.float64))


def test_a_bigram_matches_the_formula(counts: torch.Tensor) -> None:
    # Token 1 is followed by 2 twice; by add-one counts of tokens, 2 has 4 of 10.
    assert bigram(counts)[1, 2].item() == pytest.approx(-math.log((2 - 0.75) / 2 + 0.75 / 2 * 0.4))


def test_xz_compresses_known_text_well() -> None:
    text = "".join(chr(97 + (i * i + i // 7) % 26) for i in range(4000))
    assert xz_bits_per_byte(text, text) < 0.2 < xz_bits_per_byte("nothing of the kind", text)
    assert 0.2 < xz_bits_per_byte("", text) < 8


def test_the_bigram_beats_the_unigram() -> None:
    task = StoriesLM()
    assert isinstance(task.splits, LanguageSplits)
    baselines = simple_methods(task.splits, task.presets["smoke"], task.vocabulary)
    assert baselines["bigram"]["loss"] < baselines["unigram"]["loss"] < math.log(task.vocabulary)
    assert baselines["bigram"]["test_bits_per_byte"] < baselines["unigram"]["test_bits_per_byte"]
    assert 0 < baselines["xz"]["bits_per_byte"] < 8
