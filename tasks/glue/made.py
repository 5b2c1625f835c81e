"""Two sets of GLUE's form, made of the English inside this Python.

As CoLA does, `word_order` asks whether a sentence is as somebody wrote it; as RTE and QNLI do, `next_sentence` asks of
a pair: whether the second came after the first. What they test on is of documents that nothing is trained on.
"""

import hashlib
import re
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from tasks.glue.sets import Labelled, SetTexts, Text
from tasks.language.corpus import Corpus
from tasks.language.shards import TextShard, texts_of
from tasks.splits import spread

_PARAGRAPH = re.compile(r"\n\s*\n")
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_WHOLE = re.compile(r"[A-Z].*[.!?]")
_SENTENCE, _OF_A_PAIR = range(6, 31), range(4, 31)
"""Words of a sentence."""
_MOST = 4_000, 1_000
"""Examples of train and of dev."""

Shards = tuple[TextShard, ...]


def word_order(corpus: Corpus) -> SetTexts:
    """Sentences as they were written, class 1, or, class 0, with two words swapped that were neighbours."""

    def made(shards: Shards) -> Iterator[tuple[Text, int]]:
        for sentence in dict.fromkeys(one for part in _paragraphs(shards) for one in part if _is_whole(one, _SENTENCE)):
            draws = _draws_of(sentence)
            written = bool(draws.integers(2))
            yield (sentence if written else _swapped(sentence, draws),), written

    return _set(corpus, made)


def next_sentence(corpus: Corpus) -> SetTexts:
    """Sentences with the one that came after, class 1, or, class 0, with one that came after another."""

    def made(shards: Shards) -> Iterator[tuple[Text, int]]:
        every = [pair for part in _paragraphs(shards) for pair in pairwise(part)]
        pairs = list(dict.fromkeys(pair for pair in every if all(_is_whole(one, _OF_A_PAIR) for one in pair)))
        follows = [bool(_draws_of(first + second).integers(2)) for first, second in pairs]
        apart = [pair for pair, true in zip(pairs, follows, strict=True) if not true]
        away = iter([second for _, second in apart[len(apart) // 2 :] + apart[: len(apart) // 2]])
        for (first, second), true in zip(pairs, follows, strict=True):
            yield (first, second if true else next(away)), true

    return _set(corpus, made)


def _set(corpus: Corpus, made: Callable[[Shards], Iterator[tuple[Text, int]]]) -> SetTexts:
    """What is made of the documents that are trained on, and of all others but for what is the same."""
    train = list(made(corpus.train))
    known = {sentence for texts, _ in train for sentence in texts}
    dev = [example for example in made(corpus.validation + corpus.test) if known.isdisjoint(example[0])]
    return SetTexts(_labelled(train, _MOST[0]), (_labelled(dev, _MOST[1]),))


def _labelled(examples: list[tuple[Text, int]], most: int) -> Labelled:
    chosen = [examples[number] for number in spread(len(examples), min(most, len(examples))).tolist()]
    return Labelled([texts for texts, _ in chosen], [float(answer) for _, answer in chosen])


def _paragraphs(shards: Shards) -> Iterator[list[str]]:
    """The sentences of each paragraph, in one line each."""
    for text in texts_of(shards):
        for paragraph in _PARAGRAPH.split(text):
            yield _END.split(" ".join(paragraph.split()))


def _is_whole(sentence: str, words: range) -> bool:
    return bool(_WHOLE.fullmatch(sentence)) and len(sentence.split()) in words


def _draws_of(text: str) -> np.random.Generator:
    """What a text draws: the same in any order of texts."""
    return np.random.default_rng(list(hashlib.sha256(text.encode()).digest()))


def _swapped(sentence: str, draws: np.random.Generator) -> str:
    """With two words swapped that differ, neither the first nor the last."""
    words = sentence.split()
    places = [place for place in range(1, len(words) - 2) if words[place] != words[place + 1]]
    place = places[draws.integers(len(places))]
    words[place], words[place + 1] = words[place + 1], words[place]
    return " ".join(words)
