"""Baselines of masked language modeling: an encoder should beat them.

Shapes: V = vocabulary, B = rows, N = context.
"""

from collections.abc import Callable, Iterable, Mapping

import torch
from torch import Tensor

from tasks.data.batches import Batch
from tasks.data.splits import Part
from tasks.language.baselines import bigram, pair_counts, unigram
from tasks.language.masked import MaskedSplits
from tasks.language.row_layouts import IGNORE_INDEX
from tasks.recipes.recipe import Recipe

Summary = Callable[[Mapping[str, Tensor]], Mapping[str, float]]


def masked_methods(
    splits: MaskedSplits, recipe: Recipe, vocabulary: int, summary: Summary
) -> dict[str, dict[str, float]]:
    """Return the metrics of unigrams, and of bigrams on the previous token if it is visible.

    Reads all training text into memory, so it is for small corpora. `summary` is the task's.
    """
    counts = pair_counts(splits.rows.training_pass(recipe.batch), vocabulary)
    tables = {"unigram": unigram(counts), "bigram": bigram(counts)}
    columns: dict[str, dict[str, float]] = {name: {} for name in tables}
    parts: tuple[Part, Part] = ("validation", "test")
    for part, prefix in zip(parts, ("", "test_"), strict=True):
        for name, table in tables.items():
            sums = table_row_sums(table, splits.mask, splits.evaluation_batches(part, recipe, torch.device("cpu")))
            columns[name] |= {prefix + metric: value for metric, value in summary(sums).items()}
    return columns


def table_row_sums(table: Tensor, mask: int, batches: Iterable[Batch]) -> dict[str, Tensor]:
    """Return the row sums [B] that the task's summary needs, from a table [V, V] of -log p by the previous token.

    No counted token follows the mask, so after a mask and at the start of a row the bigram falls back to the unigram.
    """
    likeliest = table.argmin(dim=1)  # [V]
    sums: dict[str, list[Tensor]] = {"nats": [], "right": [], "tokens": [], "document": []}
    for (ids, _), targets in batches:
        labels = targets["asked"]
        before = torch.cat((torch.full_like(ids[:, :1], mask), ids[:, :-1]), dim=1)
        is_target = labels != IGNORE_INDEX
        sums["nats"].append((table[before, labels.clamp(min=0)] * is_target).sum(dim=1))
        sums["right"].append(((likeliest[before] == labels) & is_target).sum(dim=1))
        sums["tokens"].append(is_target.sum(dim=1))
        sums["document"].append(targets["document"])
    return {name: torch.cat(rows) for name, rows in sums.items()}
