"""Base classes of language tasks: decoder, loss, metrics and `--data`.

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
from tasks.input_formats import InputFormat, TextInputs
from tasks.language.corpus import Corpus, TextSource, folder_corpus, hub_corpus
from tasks.language.data import LanguageSplits
from tasks.language.language_presets import LanguageRecipe
from tasks.language.measure import METRICS, summary, sums_from_logits
from tasks.language.row_layouts import IGNORE_INDEX, Layout
from tasks.language.shards import read_texts
from tasks.language.tokenizer import Tokenizer, get_tokenizer, tokenizer_at, train_tokenizer
from tasks.training.supervised import SupervisedTask

_HUB = re.compile(r"[\w-][\w.-]*/[\w.-]+(:[\w.-]+)?")
_TOKENIZER_CHARACTERS = 10_000_000
"""Number of characters to train a tokenizer on, as in Flax's LM1B example."""


class TextTask(SupervisedTask):
    """A task that learns from rows of text.

    Attributes:
        vocabulary: Number of token ids of the network, V.
        context: Tokens of a row, N, and positions of the network.
        layout: How documents fill rows.
    """

    vocabulary: ClassVar[int]
    context: ClassVar[int]
    layout: ClassVar[Layout]

    @property
    def max_tokens(self) -> int:
        """Maximum number of tokens of the tokenizer."""
        return self.vocabulary

    @abstractmethod
    def load_text(self) -> tuple[Corpus, Tokenizer]:
        """Return the text and its tokenizer. Raises UserError if they are missing."""

    @cached_property
    def cached_text(self) -> tuple[Corpus, Tokenizer]:
        """The text and its tokenizer, read once. Raises as `load_text`."""
        return self.load_text()

    def encoding(self) -> str:
        return self.cached_text[1].fingerprint

    def row_splits(self) -> LanguageSplits:
        """Return the text as rows of tokens. Raises UserError if it is missing or its tokenizer has too many tokens."""
        corpus, tokenizer = self.cached_text
        tokenizer.check(self.max_tokens, self.name)
        return LanguageSplits(corpus, tokenizer, self.layout, self.context)

    def example(self) -> tuple[Tensor, ...]:
        """Return one row of tokens, [1, N]."""
        return (torch.zeros(1, self.context, dtype=torch.long),)


class LanguageTask(TextTask):
    """A task that predicts the next token.

    Attributes:
        style: Style of the decoder, fixed by the task and not searched.
        tied: Whether the head shares the embedding's weights.
    """

    style: ClassVar[str]
    tied: ClassVar[bool]
    metrics = METRICS

    def load(self) -> LanguageSplits:
        """Read what is in memory; other text is read during training."""
        return self.row_splits()

    def build(self, architecture: Architecture) -> nn.Module:
        """Build a decoder of the task's style."""
        return build_decoder(architecture, self.style, self.vocabulary, self.context, tied=self.tied)

    def build_for_training(self, architecture: Architecture, recipe: LanguageRecipe) -> nn.Module:
        """Build the decoder with the recipe's initialization and recomputation of layers."""
        sizes = self.vocabulary, self.context
        model = build_decoder(architecture, self.style, *sizes, tied=self.tied, initial=recipe.initial)
        model.stack.recompute = recipe.recompute
        return model

    def input_format(self) -> InputFormat:
        return TextInputs(tokenizer=self.cached_text[1].text, context=self.context)

    def closed_form(self, architecture: Architecture) -> Count:
        return count_decoder(architecture, self.style, self.vocabulary, self.context, tied=self.tied)

    def loss(self, outputs: Tensor, targets: Tensor, recipe: LanguageRecipe) -> Tensor:
        """Return the mean of -log p over the targets [B, N], plus the recipe's z-loss; logits are [B, N, V]."""
        logits, following = outputs.flatten(0, 1), targets.flatten()  # [B * N, V], [B * N]
        nats = F.cross_entropy(logits, following, ignore_index=IGNORE_INDEX)
        if not recipe.z_loss:
            return nats
        squares = logits.float().logsumexp(dim=-1).square()
        is_target = following != IGNORE_INDEX
        return nats + recipe.z_loss * (squares * is_target).sum() / is_target.sum()

    def measure(self, outputs: Tensor, targets: Tensor) -> Mapping[str, Tensor]:
        """Return nats, tokens, bytes and document of each row, [B]."""
        return sums_from_logits(outputs, targets)

    def summary(self, measures: Mapping[str, Tensor]) -> Mapping[str, float]:
        """Return loss, perplexity and bits per byte, with standard errors over documents."""
        return summary(measures)


@dataclass(frozen=True, slots=True)
class DataReference:
    """The parts of `--data`: a folder or OWNER/NAME[:SUBSET] on the Hub, and a tokenizer.

    Attributes:
        location: Folder or name; None for the task's default.
        tokenizer: A name on the Hub, a file, or "trained"; None for the default.
    """

    location: str | None
    tokenizer: str | None

    @classmethod
    def parse(cls, data: Path | None) -> "DataReference":
        """Parse "PLACE", "PLACE,tokenizer=TOKENIZER" or "tokenizer=TOKENIZER"."""
        text, separator, tokenizer = f",{data or ''}".rpartition(",tokenizer=")
        if not separator:
            text, tokenizer = tokenizer, ""
        return cls(text.removeprefix(",") or None, tokenizer or None)


class CorpusTextTask(TextTask):
    """A text task with text from files or the Hub.

    Attributes:
        source: The default data set.
        tokenizer: The default tokenizer: its name on the Hub, or "trained".
    """

    source: ClassVar[TextSource]
    tokenizer: ClassVar[str]

    def load_text(self) -> tuple[Corpus, Tokenizer]:
        """Return the text and tokenizer that `--data` names: PLACE, PLACE,tokenizer=TOKENIZER or tokenizer=TOKENIZER.

        PLACE is a folder or OWNER/NAME[:SUBSET] of a data set on the Hub. TOKENIZER is a tokenizer.json, the name of a
        model on the Hub, or "trained": byte-pair encoding with the task's vocabulary size, trained on the corpus. A
        tokenizer.json in the folder takes precedence over the task's default.
        """
        data_reference = DataReference.parse(self.data)
        location = data_reference.location
        folder = Path(location) if location and Path(location).exists() else None
        if folder is not None and not folder.is_dir():
            raise UserError(
                "missing-data",
                f"--data must be a folder of files, got the file {location!r}. Give its folder.",
                option="--data",
                path=location,
            )
        corpus = folder_corpus(folder, self.source.column) if folder else hub_corpus(self._source(location))
        if data_reference.tokenizer is None and folder is not None and (folder / "tokenizer.json").exists():
            return corpus, tokenizer_at(folder)
        reference = data_reference.tokenizer or self.tokenizer
        if reference == "trained":
            return corpus, train_tokenizer(_beginning(corpus, _TOKENIZER_CHARACTERS), self.max_tokens)
        return corpus, tokenizer_at(Path(reference)) if Path(reference).exists() else get_tokenizer(reference)

    def _source(self, text: str | None) -> TextSource:
        if text is None or text == self.source.hub:
            return self.source
        if not _HUB.fullmatch(text):
            raise UserError(
                "missing-data",
                f"--data must be a folder or OWNER/NAME on the hub, got {text!r}.",
                option="--data",
                path=text,
            )
        hub, _, subset = text.partition(":")
        return TextSource(hub=hub, subset=subset or None, column=self.source.column)


class CorpusTask(CorpusTextTask, LanguageTask):
    """A task that predicts the next token of text from files or the Hub."""


def _beginning(corpus: Corpus, characters: int) -> Iterator[str]:
    """Yield the first training documents, up to so many characters in total."""
    for text in read_texts(corpus.train):
        if characters <= 0:
            return
        yield text
        characters -= len(text)
