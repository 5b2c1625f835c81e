"""Baselines of language modeling: a decoder should beat them.

Shapes: V = vocabulary, B = rows, N = context.
"""

import lzma
from collections.abc import Iterable

import torch
from torch import Tensor

from tasks.data.batches import Batch
from tasks.data.splits import Part
from tasks.language.data import LanguageSplits
from tasks.language.measure import summary, sums_from_nats
from tasks.language.row_layouts import IGNORE_INDEX
from tasks.language.shards import read_texts
from tasks.recipes.recipe import Recipe

_DISCOUNT = 0.75


def simple_methods(splits: LanguageSplits, recipe: Recipe, vocabulary: int) -> dict[str, dict[str, float]]:
    """Return the metrics of three methods: unigrams, bigrams and xz.

    Reads all training text into memory, so it is for small corpora.
    """
    counts = pair_counts(splits.training_pass(recipe.batch), vocabulary)
    tables = {"unigram": unigram(counts), "bigram": bigram(counts)}
    columns: dict[str, dict[str, float]] = {name: {} for name in (*tables, "xz")}
    training_text = "\n".join(read_texts(splits.corpus.train))
    parts: tuple[Part, Part] = ("validation", "test")
    for part, prefix in zip(parts, ("", "test_"), strict=True):
        for name, table in tables.items():
            metrics = table_metrics(table, splits.evaluation_batches(part, recipe, torch.device("cpu")))
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


def table_metrics(table: Tensor, batches: Iterable[Batch]) -> dict[str, float]:
    """Return the metrics of a table of -log p [V, V] on held-out batches (see LanguageSplits.evaluation_batches)."""
    sums = [sums_from_nats(table[inputs, answers[..., 0].clamp(min=0)], answers) for inputs, answers in batches]
    return summary({name: torch.cat([batch_sums[name] for batch_sums in sums]) for name in sums[0]})


def xz_bits_per_byte(before: str, text: str) -> float:
    """Return the bits per byte that xz needs for a text after a known text of up to 8 MiB."""
    alone, joint = (len(lzma.compress(text_before.encode())) for text_before in (before, before + text))
    return 8 * (joint - alone) / len(text.encode())
