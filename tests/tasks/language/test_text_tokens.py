import json
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer as HuggingFace
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from search_spaces.errors import UserError
from tasks.language import hub
from tasks.language import tokenizer as module
from tasks.language.tokenizer import Tokenizer, tokenizer_at, tokenizer_named, trained_tokenizer

TEXTS = [
    "plain ASCII text, twice  spaced",
    "Größe, naïve façade",
    "語彙と文脈 😀👍🏽 mixed with words",
    "  spaces around  ",
    "ﬁnely ½ ligatures … and fullwidth \uff21",
    "line\nbreaks\n\n\ttabs",
]


@pytest.fixture(scope="session")
def t5_like() -> Tokenizer:
    """A unigram tokenizer that normalises and has special tokens after its words, as T5's does."""
    inner = HuggingFace(models.Unigram())
    inner.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Strip(left=False, right=True)])
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    inner.decoder = decoders.Metaspace()
    inner.train_from_iterator(
        TEXTS * 20,
        trainers.UnigramTrainer(vocab_size=150, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>"),
    )
    inner.add_special_tokens([f"<extra_id_{number}>" for number in range(100)])
    return Tokenizer(inner.to_str(), "a test")


@pytest.fixture(params=["bytes", "unigram"])
def either(request: pytest.FixtureRequest, tokenizer: Tokenizer, t5_like: Tokenizer) -> Tokenizer:
    return tokenizer if request.param == "bytes" else t5_like


def test_byte_pairs_count_every_byte_of_a_text_once(tokenizer: Tokenizer) -> None:
    for text, (ids, sizes) in zip(TEXTS, tokenizer.encode_measured(TEXTS), strict=True):
        assert len(ids) == len(sizes)
        assert sizes.sum() == len(text.encode())
        assert (sizes >= 0).all()


def test_a_normalising_tokenizer_counts_the_bytes_of_the_original_text(t5_like: Tokenizer) -> None:
    for text, (_, sizes) in zip(TEXTS, t5_like.encode_measured(TEXTS), strict=True):
        assert sizes.sum() == len(text.rstrip().encode())


def test_byte_pairs_of_ascii_have_as_many_bytes_as_characters(tokenizer: Tokenizer) -> None:
    inner = HuggingFace.from_str(tokenizer.text)
    [(ids, sizes)] = tokenizer.encode_measured([TEXTS[0]])
    assert sizes.tolist() == [len(inner.decode([token])) for token in ids]


def test_measured_tokens_are_those_that_are_trained_on(either: Tokenizer) -> None:
    for ids, (measured, _) in zip(either.encode(TEXTS), either.encode_measured(TEXTS), strict=True):
        assert np.array_equal(ids, measured)


def test_a_text_that_spells_a_special_token_does_not_end_there(either: Tokenizer) -> None:
    [ids] = either.encode(["it says </s> and <|endoftext|> and <extra_id_3>"])
    assert either.boundary not in ids
    assert ids.max() < either.size


def test_special_tokens_that_no_text_holds_take_no_room_in_a_vocabulary(t5_like: Tokenizer) -> None:
    assert t5_like.size == len(HuggingFace.from_str(t5_like.text).get_vocab()) - 100


def test_a_tokenizer_too_large_for_a_task_is_a_mistake_that_names_both(tokenizer: Tokenizer) -> None:
    tokenizer.check(300, "c4-lm")
    with pytest.raises(UserError, match=r"tokens up to 299, and task 'c4-lm' is of 299"):
        tokenizer.check(299, "c4-lm")


def test_training_is_the_same_each_time_and_happens_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NAS_CACHE", str(tmp_path))
    first = trained_tokenizer(TEXTS, 280)
    monkeypatch.setattr(module, "_train", lambda documents, vocabulary: pytest.fail("trained twice"))
    assert trained_tokenizer(TEXTS, 280) == first
    monkeypatch.undo()
    monkeypatch.setenv("NAS_CACHE", str(tmp_path / "another"))
    assert trained_tokenizer(TEXTS, 280) == first
    assert trained_tokenizer(TEXTS, 270) != first


def test_a_cache_that_cannot_be_written_costs_a_warning_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("NAS_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="could not be kept"):
        assert trained_tokenizer(TEXTS, 280).size == 280


def test_what_is_no_tokenizer_is_a_mistake_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(UserError, match=r"tokenizer.json is no tokenizer.json"):
        tokenizer_at(tmp_path)
    with pytest.raises(UserError, match="cannot be read"):
        tokenizer_at(tmp_path / "missing.json")


def test_a_tokenizer_without_a_boundary_is_a_mistake(tokenizer: Tokenizer) -> None:
    record = json.loads(tokenizer.text)
    record["added_tokens"] = []
    record["model"]["vocab"] = {token: i for token, i in record["model"]["vocab"].items() if token != "<|endoftext|>"}
    with pytest.raises(UserError, match="has none of"):
        Tokenizer(json.dumps(record), "a test")


def test_a_tokenizer_by_name_without_a_network_says_what_to_do_instead(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(hub, "reachable", lambda: False)
    with pytest.raises(UserError, match=r"'nobody/nothing'.*out of reach.*--data"):
        tokenizer_named("nobody/nothing")
