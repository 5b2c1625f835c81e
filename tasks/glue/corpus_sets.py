"""Two sets in GLUE's format, built from Python's own documentation.

Like CoLA, `word_order` asks whether a sentence is well-formed; like SST-2, `reference` asks for its style. Test
sentences are from documents that neither stage trains on; validation sentences are from documents that the pre-training
has read. Sentence pairs (the next sentence, a shortened copy, two halves) were tried: networks of this size answer them
at chance.
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tasks.data.splits import even_indices
from tasks.glue.sets import GlueSetData, LabelledTexts, Text
from tasks.language.corpus import Corpus
from tasks.language.shards import TextShard, read_texts
from tasks.language.stdlib import stdlib_documents

_PARAGRAPH = re.compile(r"\n\s*\n")
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_SENTENCE = re.compile(r"[A-Z].*[.!?]")
_WORDS = range(6, 31)
_MOST = 4_000, 1_000
"""Maximum examples of train and of dev."""

Shards = tuple[TextShard, ...]


@dataclass(frozen=True, slots=True)
class _Example:
    """A sentence, its class, and the number of its document."""

    text: Text
    answer: int
    document: int


def word_order(corpus: Corpus) -> GlueSetData:
    """Return sentences as written, class 1, or with two neighboring words swapped, class 0."""

    def make_examples(shards: Shards) -> Iterator[_Example]:
        for sentence, (document, _) in _sentences(shards).items():
            draws = _generator(sentence)
            in_order = int(draws.integers(2))
            yield _Example((sentence if in_order else _swap_words(sentence, draws),), in_order, document)

    return _set(corpus, make_examples)


def reference(corpus: Corpus) -> GlueSetData:
    """Return sentences of the language reference, class 1, and as many of docstrings, class 0."""
    topics = {text for name, text in stdlib_documents().items() if name.startswith("topic ")}

    def make_examples(shards: Shards) -> Iterator[_Example]:
        sentences = {sentence: (document, text in topics) for sentence, (document, text) in _sentences(shards).items()}
        other_sentences = [sentence for sentence, (_, in_topic) in sentences.items() if not in_topic]
        most = min(len(other_sentences), len(sentences) - len(other_sentences))
        selection = {other_sentences[number] for number in even_indices(len(other_sentences), most).tolist()}
        for sentence, (document, in_topic) in sentences.items():
            if in_topic or sentence in selection:
                yield _Example((sentence,), int(in_topic), document)

    return _set(corpus, make_examples)


def _set(corpus: Corpus, examples: Callable[[Shards], Iterator[_Example]]) -> GlueSetData:
    """Build train from the training documents and dev from the test documents, without texts that are in train."""
    train = list(examples(corpus.train))
    train_texts = {example.text for example in train}
    dev = [example for example in examples(corpus.test) if example.text not in train_texts]
    return GlueSetData(_spread_sample(train, _MOST[0]), (_spread_sample(dev, _MOST[1]),))


def _spread_sample(examples: list[_Example], most: int) -> LabelledTexts:
    selection = [examples[number] for number in even_indices(len(examples), min(most, len(examples))).tolist()]
    return LabelledTexts(
        [example.text for example in selection],
        [float(example.answer) for example in selection],
        [example.document for example in selection],
    )


def _sentences(shards: Shards) -> dict[str, tuple[int, str]]:
    """Return each sentence once, with number and text of the first document that has it."""
    first_documents: dict[str, tuple[int, str]] = {}
    for number, text in enumerate(read_texts(shards)):
        for sentence in (sentence for part in _paragraphs(text) for sentence in part if _is_sentence(sentence)):
            first_documents.setdefault(sentence, (number, text))
    return first_documents


def _paragraphs(text: str) -> Iterator[list[str]]:
    """Yield the sentences of each paragraph, without line breaks."""
    for paragraph in _PARAGRAPH.split(text):
        yield _END.split(" ".join(paragraph.split()))


def _is_sentence(sentence: str) -> bool:
    return bool(_SENTENCE.fullmatch(sentence)) and len(sentence.split()) in _WORDS


def _generator(text: str) -> np.random.Generator:
    """Return a generator seeded by a text."""
    return np.random.default_rng(list(hashlib.sha256(text.encode()).digest()))


def _swap_words(sentence: str, draws: np.random.Generator) -> str:
    """Swap two neighboring, different words, neither the first nor the last."""
    words = sentence.split()
    places = [place for place in range(1, len(words) - 2) if words[place] != words[place + 1]]
    place = places[draws.integers(len(places))]
    words[place], words[place + 1] = words[place + 1], words[place]
    return " ".join(words)
