"""Labeled texts as rows of tokens: one or two sentences, each followed by the end-of-document token.

Shapes: E = examples, B = batch, N = tokens of the longest row.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from search_spaces.support.errors import UserError
from search_spaces.support.progress import Progress
from tasks.data.batches import Batch, select
from tasks.data.splits import TensorSplits, even_indices
from tasks.glue.sets import GlueSetData, LabelledTexts, Text
from tasks.language.tokenizer import Tokenizer, Tokens

_MAX_VALIDATION, _VALIDATION_PART = 1_000, 10
"""GLUE's test labels are not public: development sets are test; a tenth of train, up to a maximum, is validation."""
_BLOCK = 10_000


def splits_of(name: str, texts: GlueSetData, tokenizer: Tokenizer, context: int) -> TensorSplits:
    """Return a set as ids [E, N] with lengths [E], and answers [E] with groups and documents, [E] each.

    Raises:
        UserError: There are fewer than two training examples, or no test examples.
    """
    for purpose, least, parts in (("train", 2, (texts.train,)), ("test", 1, texts.dev)):
        for part in parts:
            if len(part.texts) < least:
                raise UserError(
                    "missing-data",
                    f"set {name!r} must have at least {least} {purpose} examples, got {len(part.texts)}.",
                    set=name,
                    part=purpose,
                    examples=len(part.texts),
                    least=least,
                )
    learned = _batch(name, [texts.train], tokenizer, context)
    examples = len(texts.train.texts)
    held_out = even_indices(examples, max(1, min(_MAX_VALIDATION, examples // _VALIDATION_PART)))
    in_train = torch.ones(examples, dtype=torch.bool)
    in_train[held_out] = False
    return TensorSplits(
        train=select(learned, in_train.nonzero().flatten()),
        validation=select(learned, held_out),
        test=_batch(name, texts.dev, tokenizer, context),
        encode=_read,
    )


def _batch(name: str, parts: Sequence[LabelledTexts], tokenizer: Tokenizer, context: int) -> Batch:
    rows = [row for part in parts for row in _rows(name, part.texts, tokenizer, context)]
    ids = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.int32)
    for place, row in zip(ids.numpy(), rows, strict=True):
        place[: len(row)] = row
    answers = {
        "answer": torch.tensor([answer for part in parts for answer in part.answers], dtype=torch.float64),
        "group": torch.tensor([number for number, part in enumerate(parts) for _ in part.texts]),
        "document": torch.tensor(_documents(parts)),
    }
    return (ids, torch.tensor([len(row) for row in rows])), answers


def _documents(parts: Sequence[LabelledTexts]) -> list[int]:
    """Return the document number of each example, different in each part."""
    numbers: list[int] = []
    for part in parts:
        numbers_of_part, first = part.documents or range(len(part.texts)), max(numbers, default=-1) + 1
        numbers += [first + number for number in numbers_of_part]
    return numbers


def _rows(name: str, texts: Sequence[Text], tokenizer: Tokenizer, context: int) -> list[Tokens]:
    rows = []
    with Progress(f"texts of {name} tokenized", len(texts)) as progress:
        for first in range(0, len(texts), _BLOCK):
            block = texts[first : first + _BLOCK]
            columns = [tokenizer.encode(column) for column in zip(*block, strict=True)]
            rows += [pack_row(sentences, tokenizer.boundary, context) for sentences in zip(*columns, strict=True)]
            progress.set_done(len(rows))
    return rows


def pack_row(sentences: Sequence[Tokens], boundary: int, context: int) -> Tokens:
    """Join sentences, each followed by `boundary`, to at most `context` tokens; the longest are truncated first."""
    room = context - len(sentences)
    longest = room
    while sum(min(len(sentence), longest) for sentence in sentences) > room:
        longest -= 1
    pieces = [np.append(sentence[:longest], boundary).astype(np.int32) for sentence in sentences]
    return np.concatenate(pieces)


def _read(inputs: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Return ids [B, N], trimmed to the batch's longest row, and which of them are not padding [B, N]."""
    ids, lengths = inputs
    longest = int(lengths.max())
    real = torch.arange(longest, device=ids.device) < lengths[:, None]
    return ids[:, :longest].long(), real
