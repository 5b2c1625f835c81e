import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from stories_lm import StoriesLM

from tasks.language.baselines import bigram, ngram, pair_counts, simple_methods, unigram, xz_bits_per_byte
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


@pytest.fixture
def baselines() -> dict[str, dict[str, float]]:
    task = StoriesLM()
    assert isinstance(task.splits, LanguageSplits)
    return simple_methods(task.splits, task.presets["smoke"], task.vocabulary)


def test_the_bigram_beats_the_unigram(baselines: dict[str, dict[str, float]]) -> None:
    task = StoriesLM()
    assert baselines["bigram"]["loss"] < baselines["unigram"]["loss"] < math.log(task.vocabulary)
    assert baselines["bigram"]["test_bits_per_byte"] < baselines["unigram"]["test_bits_per_byte"]
    assert 0 < baselines["xz"]["bits_per_byte"] < 8


def test_ngrams_beat_the_bigram_with_the_same_tokens_and_metrics(baselines: dict[str, dict[str, float]]) -> None:
    assert baselines["5-gram"].keys() == baselines["bigram"].keys()
    assert baselines["5-gram"]["loss"] < baselines["bigram"]["loss"]
    ratios = {name: baselines[name]["bits_per_byte"] / baselines[name]["loss"] for name in ("unigram", "5-gram")}
    assert ratios["5-gram"] == pytest.approx(ratios["unigram"])  # tokens and bytes are the same


def test_bigrams_as_ngrams_see_the_pairs_of_the_table() -> None:
    batches = [(torch.tensor([a]), torch.tensor([b])) for a, b in ROWS]
    method = ngram(batches, 4, 2)
    inputs, following = batches[1]
    assert method(inputs, following)[0, 0] < method(inputs, torch.full_like(following, 3))[0, 0]


def test_baselines_do_not_depend_on_the_batches(baselines: dict[str, dict[str, float]]) -> None:
    task = StoriesLM()
    assert isinstance(task.splits, LanguageSplits)
    growing = replace(task.presets["smoke"], batch=12, batch_ramp=0.5, measured=1000)  # all, as with 0
    assert simple_methods(task.splits, growing, task.vocabulary) == baselines


def test_baselines_are_cached(baselines: dict[str, dict[str, float]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.language.baselines.pair_counts", lambda *arguments: pytest.fail("counted again"))
    task = StoriesLM()
    assert isinstance(task.splits, LanguageSplits)
    assert simple_methods(task.splits, task.presets["smoke"], task.vocabulary) == baselines
