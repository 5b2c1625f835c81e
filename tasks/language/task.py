"""What all language tasks share: a decoder, its loss, how it is measured, and where `--data` leads.

Shapes: B = rows, N = context, V = vocabulary.
"""

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.models.decoder import build_decoder, count_decoder
from search_spaces.support.count import Count
from search_spaces.support.errors import UserError
from tasks.language.corpus import Corpus, TextSource, folder_corpus, hub_corpus
from tasks.language.data import LanguageSplits
from tasks.language.language_presets import LanguageRecipe
from tasks.language.measure import METRICS, row_sums, summary
from tasks.language.row_layouts import IGNORE_INDEX, Layout
from tasks.language.shards import read_texts
from tasks.language.tokenizer import Tokenizer, get_tokenizer, tokenizer_at, train_tokenizer
from tasks.training.supervised import SupervisedTask

_HUB = re.compile(r"[\w-][\w.-]*/[\w.-]+(:[\w.-]+)?")
_TOKENIZER_CHARACTERS = 10_000_000
"""Characters that a tokenizer of the task's own is trained on, as in Flax's LM1B example."""


class TextTask(SupervisedTask):
    """Learn from text, row by row.

    Attributes:
        vocabulary: Ids of the network, V.
        context: Tokens of a row, N, and positions of the network.
        layout: How documents fill rows.
    """

    vocabulary: ClassVar[int]
    context: ClassVar[int]
    layout: ClassVar[Layout]

    @property
    def words(self) -> int:
        """The most tokens that a tokenizer may have."""
        return self.vocabulary

    @abstractmethod
    def text(self) -> tuple[Corpus, Tokenizer]:
        """The text and its tokenizer. Raises UserError where they are not there."""

    @cached_property
    def read_text(self) -> tuple[Corpus, Tokenizer]:
        """The text and its tokenizer, read once. Raises as `text`."""
        return self.text()

    def encoding(self) -> str:
        """The tokenizer's fingerprint."""
        return self.read_text[1].fingerprint

    def rows(self) -> LanguageSplits:
        """The text as rows of tokens. Raises UserError where it is not there, or its tokenizer has too many tokens."""
        corpus, tokenizer = self.read_text
        tokenizer.check(self.words, self.name)
        return LanguageSplits(corpus, tokenizer, self.layout, self.context)

    def example(self) -> tuple[Tensor, ...]:
        """One row of tokens, [1, N]."""
        return (torch.zeros(1, self.context, dtype=torch.long),)


class LanguageTask(TextTask):
    """Predict the next token.

    Attributes:
        style: Of the decoder, which the task fixes and nobody searches.
        tied: Whether words are scored by their own embeddings.
    """

    style: ClassVar[str]
    tied: ClassVar[bool]
    metrics = METRICS

    def load(self) -> LanguageSplits:
        """Read what is small, and find the rest."""
        return self.rows()

    def build(self, architecture: Architecture) -> nn.Module:
        """The decoder of the task's style."""
        return build_decoder(architecture, self.style, self.vocabulary, self.context, tied=self.tied)

    def build_for_training(self, architecture: Architecture, recipe: LanguageRecipe) -> nn.Module:
        """The same decoder, drawn as the recipe says, its layers computed twice where it wants memory saved."""
        sizes = self.vocabulary, self.context
        model = build_decoder(architecture, self.style, *sizes, tied=self.tied, initial=recipe.initial)
        model.stack.recompute = recipe.recompute
        return model

    def closed_form(self, architecture: Architecture) -> Count:
        """Of the decoder, for one row."""
        return count_decoder(architecture, self.style, self.vocabulary, self.context, tied=self.tied)

    def loss(self, outputs: Tensor, targets: Tensor, recipe: LanguageRecipe) -> Tensor:
        """The mean of -log p over the tokens that follow, and the recipe's z-loss: logits [B, N, V], targets [B, N]."""
        logits, following = outputs.flatten(0, 1), targets.flatten()  # [B * N, V], [B * N]
        nats = F.cross_entropy(logits, following, ignore_index=IGNORE_INDEX)
        if not recipe.z_loss:
            return nats
        squares = logits.float().logsumexp(dim=-1).square()
        is_target = following != IGNORE_INDEX
        return nats + recipe.z_loss * (squares * is_target).sum() / is_target.sum()

    def measure(self, outputs: Tensor, targets: Tensor) -> Mapping[str, Tensor]:
        """Nats, tokens and bytes of each row, [B]."""
        return row_sums(outputs, targets)

    def summary(self, measures: Mapping[str, Tensor]) -> Mapping[str, float]:
        """Loss, perplexity and bits per byte, with standard errors over documents."""
        return summary(measures)


@dataclass(frozen=True, slots=True)
class DataReference:
    """What `--data` says: a folder, or OWNER/NAME[:SUBSET] on the hub, and which tokenizer.

    Attributes:
        text: Folder or name; None where the task's own is meant.
        tokenizer: A name on the hub, a file, or "trained"; None where it follows from the rest.
    """

    text: str | None
    tokenizer: str | None

    @classmethod
    def parse(cls, data: Path | None) -> "DataReference":
        """Read "PLACE", "PLACE,tokenizer=TOKENIZER" or "tokenizer=TOKENIZER"."""
        text, separator, tokenizer = f",{data or ''}".rpartition(",tokenizer=")
        if not separator:
            text, tokenizer = tokenizer, ""
        return cls(text.removeprefix(",") or None, tokenizer or None)


class CorpusText(TextTask):
    """Text from files or the hub.

    Attributes:
        source: The data set that is meant where `--data` names none.
        tokenizer: The one that is meant where there is no other: its name on the hub, or "trained".
    """

    source: ClassVar[TextSource]
    tokenizer: ClassVar[str]

    def text(self) -> tuple[Corpus, Tokenizer]:
        """Follow `--data`: PLACE, PLACE,tokenizer=TOKENIZER or tokenizer=TOKENIZER.

        PLACE is a folder or OWNER/NAME[:SUBSET] of a data set on the hub. TOKENIZER is a tokenizer.json, the name of a
        model on the hub, or "trained": byte-pair encoding of the task's words, trained on the corpus. A folder's
        own tokenizer.json comes before the task's default.
        """
        place = DataReference.parse(self.data)
        folder = Path(place.text) if place.text and Path(place.text).exists() else None
        if folder is not None and not folder.is_dir():
            raise UserError(
                "missing-data",
                f"--data must be a folder of files, got the file {place.text!r}. Give the folder it is in.",
                option="--data",
                path=place.text,
            )
        corpus = folder_corpus(folder, self.source.column) if folder else hub_corpus(self._source(place.text))
        if place.tokenizer is None and folder is not None and (folder / "tokenizer.json").exists():
            return corpus, tokenizer_at(folder)
        reference = place.tokenizer or self.tokenizer
        if reference == "trained":
            return corpus, train_tokenizer(_beginning(corpus, _TOKENIZER_CHARACTERS), self.words)
        return corpus, tokenizer_at(Path(reference)) if Path(reference).exists() else get_tokenizer(reference)

    def _source(self, text: str | None) -> TextSource:
        if text is None or text == self.source.hub:
            return self.source
        if not _HUB.fullmatch(text):
            raise UserError(
                "missing-data",
                f"{text!r} is neither a folder nor OWNER/NAME of the hub's data sets. Give --data FOLDER.",
                option="--data",
                path=text,
            )
        hub, _, subset = text.partition(":")
        return TextSource(hub=hub, subset=subset or None, column=self.source.column)


class CorpusTask(CorpusText, LanguageTask):
    """Predict the next token of text from files or the hub."""


def _beginning(corpus: Corpus, characters: int) -> Iterator[str]:
    """The first documents to train on, of so many characters in all."""
    for text in read_texts(corpus.train):
        if characters <= 0:
            return
        yield text
        characters -= len(text)
