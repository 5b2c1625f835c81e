"""Baselines of language modeling: a decoder should beat them.

Shapes: V = vocabulary, B = rows, N = context.
"""

import hashlib
import json
import lzma
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from search_spaces.support.cache import cache_bytes
from search_spaces.support.progress import status_if_slow
from tasks.data.batches import Batch
from tasks.data.splits import Part
from tasks.language.data import LanguageSplits
from tasks.language.measure import summary, sums_from_nats
from tasks.language.ngrams import NgramModel
from tasks.language.row_layouts import IGNORE_INDEX
from tasks.language.shards import read_texts
from tasks.recipes.recipe import Recipe

_DISCOUNT = 0.75
_ORDER = 5
_BATCH = 1024
"""Rows to count or evaluate at once."""

TokenNats = Callable[[Tensor, Tensor], Tensor]
"""A method: -log p of the next tokens [B, N] after inputs [B, N], each from the inputs up to it."""


def simple_methods(splits: LanguageSplits, recipe: Recipe, vocabulary: int) -> dict[str, dict[str, float]]:
    """Return the metrics of four methods: unigrams, bigrams, 5-grams and xz; they are cached.

    Reads all training text into memory, so it is for small corpora, and for vocabularies of at most 6,208 tokens.
    """
    parts = f"{splits.fingerprint} {recipe.measured} {vocabulary} 1"
    name = f"baselines/{hashlib.sha256(parts.encode()).hexdigest()}.json"
    metrics: dict[str, dict[str, float]] = json.loads(
        cache_bytes(name, lambda: json.dumps(_fit_methods(splits, recipe, vocabulary)).encode())
    )
    return metrics


def _fit_methods(splits: LanguageSplits, recipe: Recipe, vocabulary: int) -> dict[str, dict[str, float]]:
    with status_if_slow("fitting the baselines ..."):
        recipe = replace(recipe, batch=_BATCH * recipe.accumulate)
        batches = list(splits.training_pass(_BATCH))
        counts = pair_counts(batches, vocabulary)
        methods = {
            "unigram": from_table(unigram(counts)),
            "bigram": from_table(bigram(counts)),
            f"{_ORDER}-gram": ngram(batches, vocabulary, _ORDER),
        }
        columns: dict[str, dict[str, float]] = {name: {} for name in (*methods, "xz")}
        training_text = "\n".join(read_texts(splits.corpus.train))
        parts: tuple[Part, Part] = ("validation", "test")
        for part, prefix in zip(parts, ("", "test_"), strict=True):
            for name, method in methods.items():
                metrics = method_metrics(method, splits.evaluation_batches(part, recipe, torch.device("cpu")))
                columns[name] |= {prefix + metric: value for metric, value in metrics.items()}
            held_out = "\n".join(read_texts(splits.corpus.validation if part == "validation" else splits.corpus.test))
            columns["xz"][f"{prefix}bits_per_byte"] = xz_bits_per_byte(training_text, held_out)
        return columns


def pair_counts(batches: Iterable[Batch], vocabulary: int) -> Tensor:
    """Count token pairs, [V, V], in inputs [B, N] and the next tokens [B, N]."""
    counts = torch.zeros(vocabulary * vocabulary, dtype=torch.int64)
    for inputs, following in batches:
        is_target = following != IGNORE_INDEX
        pairs = inputs[is_target] * vocabulary + following[is_target]
        counts.index_add_(0, pairs, torch.ones_like(pairs))
    return counts.view(vocabulary, vocabulary).double()


def unigram(counts: Tensor) -> Tensor:
    """Return -log p of each token by its frequency, with add-one smoothing; equal for all previous tokens: [V, V]."""
    counts_plus_one = counts.sum(dim=0) + 1
    return -(counts_plus_one / counts_plus_one.sum()).log().expand_as(counts)


def bigram(counts: Tensor) -> Tensor:
    """Return -log p of each token after another, with absolute discounting (Ney, Essen and Kneser, 1994): [V, V]."""
    before = counts.sum(dim=1, keepdim=True).clamp(min=1)
    smoothed_counts = (counts - _DISCOUNT).clamp(min=0) / before
    return -(smoothed_counts + (1 - smoothed_counts.sum(dim=1, keepdim=True)) * (-unigram(counts)).exp()).log()


def from_table(table: Tensor) -> TokenNats:
    """Return the method of a table of -log p [V, V]."""
    return lambda inputs, following: table[inputs, following.clamp(min=0)]


def ngram(batches: Iterable[Batch], vocabulary: int, order: int) -> TokenNats:
    """Return the method of n-grams of the training rows; each row is the whole context."""
    model = NgramModel.fit(np.concatenate([_rows(*batch) for batch in batches]), vocabulary, order)
    return lambda inputs, following: torch.from_numpy(model.nats(_rows(inputs, following)))


def _rows(inputs: Tensor, following: Tensor) -> NDArray[np.int64]:
    """Return the rows [B, N + 1] of inputs [B, N] and the next tokens [B, N]."""
    return torch.cat((inputs[:, :1], following), dim=1).numpy()


def method_metrics(method: TokenNats, batches: Iterable[Batch]) -> dict[str, float]:
    """Return the metrics of a method on held-out batches (see LanguageSplits.evaluation_batches)."""
    sums = [sums_from_nats(method(inputs, answers[..., 0]), answers) for inputs, answers in batches]
    return summary({name: torch.cat([batch_sums[name] for batch_sums in sums]) for name in sums[0]})


def xz_bits_per_byte(before: str, text: str) -> float:
    """Return the bits per byte that xz needs for a text after a known text of up to 8 MiB."""
    alone, joint = (len(lzma.compress(text_before.encode())) for text_before in (before, before + text))
    return 8 * (joint - alone) / len(text.encode())
