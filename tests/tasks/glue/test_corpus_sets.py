"""The two sets made from the English texts of Python's library."""

import random
import sys
from functools import cache

import numpy as np
import pytest

from tasks.glue.corpus_sets import reference, word_order
from tasks.glue.sets import GlueSetData
from tasks.glue.stdlib_glue import StdlibGlue
from tasks.language.corpus import Corpus, stdlib_corpus
from tasks.language.shards import MemoryShard, read_texts
from tasks.language.stdlib import stdlib_documents

MAKERS = {"word_order": word_order, "reference": reference}
CORPUS = cache(stdlib_corpus)


def texts_of(name: str) -> GlueSetData:
    return StdlibGlue().load_texts(name)


def in_a_line(text: str) -> str:
    return " ".join(text.split())


@cache
def learnt_from() -> str:
    return in_a_line(" ".join(read_texts(CORPUS().train)))


@pytest.mark.parametrize("name", MAKERS)
def test_train_and_dev_share_no_sentence(name: str) -> None:
    sets = texts_of(name)
    test_lines = [in_a_line(text) for text in read_texts(CORPUS().test)]
    learned = {sentence for sets in sets.train.texts for sentence in sets}
    held_out = {sentence for sets in sets.dev[0].texts for sentence in sets}
    assert len(sets.train.texts) > 2000
    least = 700 if sys.version_info < (3, 12) else 200  # of the text inside Python: 1,000 in 3.11.7, 258 in 3.12.1
    assert len(sets.dev[0].texts) > least
    assert not learned & held_out
    assert sum(sentence in learnt_from() for sentence in held_out) <= 0.01 * len(held_out)  # within a longer text
    dev = sets.dev[0]
    for (sentence,), answer, document in zip(dev.texts, dev.answers, dev.documents, strict=True):
        if answer:  # the original, in both sets
            assert sentence in test_lines[document]


def test_classes_are_balanced_and_texts_are_unique() -> None:
    for name in MAKERS:
        for part in (texts_of(name).train, *texts_of(name).dev):
            assert sum(part.answers) / len(part.answers) == pytest.approx(0.5, abs=0.05), name
            assert len(set(part.texts)) == len(part.texts), name


def test_a_swapped_sentence_has_two_neighbouring_words_swapped() -> None:
    def undone(sentence: str) -> list[str]:
        words = sentence.split()
        return [
            " ".join([*words[:place], words[place + 1], words[place], *words[place + 2 :]])
            for place in range(1, len(words) - 2)
        ]

    part = texts_of("word_order").train
    for (sentence,), answer in list(zip(part.texts, part.answers, strict=True))[::20]:
        assert (sentence in learnt_from()) == bool(answer)
        assert answer or any(original in learnt_from() for original in undone(sentence))


def test_reference_sentences_come_from_topics() -> None:
    topics = in_a_line(" ".join(text for name, text in stdlib_documents().items() if name.startswith("topic ")))
    part = texts_of("reference").train
    for (sentence,), answer in list(zip(part.texts, part.answers, strict=True))[::20]:
        assert (sentence in topics) == bool(answer)


def test_sets_depend_on_the_text_alone() -> None:
    texts = [*read_texts(CORPUS().train)]
    shards = [(MemoryShard(tuple(part)),) for part in (texts[::8], texts[1::80], texts[2::80])]
    part = Corpus(*shards, "a part")
    for make in MAKERS.values():
        first = make(part)
        assert len(first.train.texts) > 100
        np.random.seed(1)  # must not be used
        random.seed(1)
        assert make(part) == first
