"""What text gives away to simple methods: a decoder that does not beat these has learnt little of it.

Shapes: V = vocabulary, B = rows, N = context.
"""

import lzma
from collections.abc import Iterable

import torch
from torch import Tensor

from tasks.data.batches import Batch
from tasks.data.splits import Part
from tasks.language.data import LanguageSplits
from tasks.language.measure import summary, sums_of
from tasks.language.rows import IGNORED
from tasks.language.shards import texts_of
from tasks.recipes.recipe import Recipe

_DISCOUNT = 0.75


def simple_methods(splits: LanguageSplits, recipe: Recipe, vocabulary: int) -> dict[str, dict[str, float]]:
    """Columns of three methods: tokens by how often they occur, tokens by the one before them, and xz.

    All training text is read and held in memory: this is for small corpora.
    """
    counts = pair_counts(splits.once(recipe.batch), vocabulary)
    tables = {"unigram": unigram(counts), "bigram": bigram(counts)}
    found: dict[str, dict[str, float]] = {name: {} for name in (*tables, "xz")}
    known = "\n".join(texts_of(splits.corpus.train))
    parts: tuple[Part, Part] = ("validation", "test")
    for part, prefix in zip(parts, ("", "test_"), strict=True):
        for name, table in tables.items():
            metrics = measured(table, splits.measured(part, recipe, torch.device("cpu")))
            found[name] |= {prefix + metric: value for metric, value in metrics.items()}
        held_out = "\n".join(texts_of(splits.corpus.validation if part == "validation" else splits.corpus.test))
        found["xz"][f"{prefix}bits_per_byte"] = compressed(known, held_out)
    return found


def pair_counts(batches: Iterable[Batch], vocabulary: int) -> Tensor:
    """How often each token follows each other, [V, V], in what is read [B, N] and what follows it [B, N]."""
    counts = torch.zeros(vocabulary * vocabulary, dtype=torch.int64)
    for inputs, following in batches:
        counted = following != IGNORED
        pairs = inputs[counted] * vocabulary + following[counted]
        counts.index_add_(0, pairs, torch.ones_like(pairs))
    return counts.view(vocabulary, vocabulary).double()


def unigram(counts: Tensor) -> Tensor:
    """-log p of each token by how often it occurs, one added to each, whatever comes before it: [V, V]."""
    seen = counts.sum(dim=0) + 1
    return -(seen / seen.sum()).log().expand_as(counts)


def bigram(counts: Tensor) -> Tensor:
    """-log p of each token by the one before it, with absolute discounting (Ney, Essen and Kneser, 1994): [V, V]."""
    before = counts.sum(dim=1, keepdim=True).clamp(min=1)
    kept = (counts - _DISCOUNT).clamp(min=0) / before
    return -(kept + (1 - kept.sum(dim=1, keepdim=True)) * (-unigram(counts)).exp()).log()


def measured(table: Tensor, batches: Iterable[Batch]) -> dict[str, float]:
    """The metrics of -log p [V, V] on documents that are held out (see LanguageSplits.measured)."""
    sums = [sums_of(table[inputs, answers[..., 0].clamp(min=0)], answers) for inputs, answers in batches]
    return summary({name: torch.cat([each[name] for each in sums]) for name in sums[0]})


def compressed(known: str, text: str) -> float:
    """Bits a byte that a text costs xz behind one that is known, of up to 8 MiB."""
    alone, both = (len(lzma.compress(each.encode())) for each in (known, known + text))
    return 8 * (both - alone) / len(text.encode())
