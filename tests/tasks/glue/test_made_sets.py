"""The two sets that are made of the English inside this Python."""

import sys
from functools import cache

import pytest

from tasks.glue.made import reference, word_order
from tasks.glue.sets import SetTexts
from tasks.language.corpus import stdlib_corpus
from tasks.language.shards import texts_of
from tasks.language.stdlib import stdlib_documents

MADE = {"word_order": word_order, "reference": reference}
CORPUS = cache(stdlib_corpus)


@cache
def made_of_it(name: str) -> SetTexts:
    return MADE[name](CORPUS())


def in_a_line(text: str) -> str:
    return " ".join(text.split())


@cache
def learnt_from() -> str:
    return in_a_line(" ".join(texts_of(CORPUS().train)))


@pytest.mark.parametrize("name", MADE)
def test_train_and_dev_share_no_sentence_and_are_of_other_documents(name: str) -> None:
    made = made_of_it(name)
    tested = [in_a_line(text) for text in texts_of(CORPUS().test)]
    learnt = {sentence for texts in made.train.texts for sentence in texts}
    held_out = {sentence for texts in made.dev[0].texts for sentence in texts}
    assert len(made.train.texts) > 2000
    least = 700 if sys.version_info < (3, 12) else 200  # of the text inside Python: 1,000 in 3.11.7, 258 in 3.12.1
    assert len(made.dev[0].texts) > least
    assert not learnt & held_out
    assert sum(sentence in learnt_from() for sentence in held_out) <= 0.01 * len(held_out)  # as a part of a longer one
    dev = made.dev[0]
    for (sentence,), answer, document in zip(dev.texts, dev.answers, dev.documents, strict=True):
        if answer:  # as it was written, in both sets
            assert sentence in tested[document]


@pytest.mark.parametrize("name", MADE)
def test_classes_are_equally_frequent_and_each_text_stands_once(name: str) -> None:
    for part in (made_of_it(name).train, *made_of_it(name).dev):
        assert sum(part.answers) / len(part.answers) == pytest.approx(0.5, abs=0.05)
        assert len(set(part.texts)) == len(part.texts)


def test_in_a_sentence_out_of_order_two_neighbours_have_swapped() -> None:
    def undone(sentence: str) -> list[str]:
        words = sentence.split()
        return [
            " ".join([*words[:place], words[place + 1], words[place], *words[place + 2 :]])
            for place in range(1, len(words) - 2)
        ]

    part = made_of_it("word_order").train
    for (sentence,), answer in list(zip(part.texts, part.answers, strict=True))[::20]:
        assert (sentence in learnt_from()) == bool(answer)
        assert answer or any(one in learnt_from() for one in undone(sentence))


def test_sentences_of_the_reference_are_those_of_topics() -> None:
    topics = in_a_line(" ".join(text for name, text in stdlib_documents().items() if name.startswith("topic ")))
    part = made_of_it("reference").train
    for (sentence,), answer in list(zip(part.texts, part.answers, strict=True))[::20]:
        assert (sentence in topics) == bool(answer)


def test_what_is_made_is_a_function_of_the_text_alone() -> None:
    assert isinstance(made_of_it("word_order"), SetTexts)
    assert word_order(CORPUS()) == made_of_it("word_order")
    assert reference(CORPUS()) == made_of_it("reference")
