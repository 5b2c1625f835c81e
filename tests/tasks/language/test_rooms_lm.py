import re
from dataclasses import replace

import pytest

from search_spaces import Architecture
from tasks.language.data import LanguageSplits
from tasks.language.rooms_lm import RoomsLM
from tasks.language.shards import read_texts
from tasks.run import Run


@pytest.fixture(scope="module")
def task() -> RoomsLM:
    return RoomsLM()


def test_tokens_are_words_and_rows_are_stories(task: RoomsLM) -> None:
    corpus, tokenizer = task.cached_text
    assert tokenizer.size == task.vocabulary
    texts = list(read_texts(corpus.train))
    lengths = [len(tokens) for tokens in tokenizer.encode(texts)]
    assert lengths == [len(re.findall(r"\w+|[.?]", text)) for text in texts]
    assert max(lengths) + 1 <= task.context  # with the end of the document
    assert task.splits.num_examples == len(texts) == 10_000


def test_splits_share_no_story(task: RoomsLM) -> None:
    corpus, _ = task.cached_text
    train, validation, test = (set(read_texts(part)) for part in (corpus.train, corpus.validation, corpus.test))
    assert len(validation) == len(test) == 1000
    assert len(train | validation | test) == len(train) + len(validation) + len(test)


def test_five_words_of_context_leave_more_to_predict(task: RoomsLM) -> None:
    assert isinstance(task.splits, LanguageSplits)
    methods = task.baselines(task.presets["proxy"])
    losses = [methods[name]["bits_per_byte"] for name in ("unigram", "bigram", "5-gram")]
    assert losses == sorted(losses, reverse=True)
    assert 0.2 < losses[-1] < 0.35
    assert methods["5-gram"]["bits_per_byte_se"] < 0.002


def test_learns_in_a_few_steps(task: RoomsLM) -> None:
    architecture = Architecture(depth=1, width=32, heads=2, head_dim=16, hidden=32)
    result = task.fit(Run(architecture=architecture, recipe=replace(task.presets["smoke"], steps=30), seed=0))
    assert result.metrics["bits_per_byte"] < task.baselines(task.presets["proxy"])["unigram"]["bits_per_byte"]
