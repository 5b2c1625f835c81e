import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer as HuggingFace
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from expect import raises, warns
from tasks.language import hub
from tasks.language import tokenizer as module
from tasks.language.tokenizer import Tokenizer, get_tokenizer, tokenizer_at, train_tokenizer

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
    """A unigram tokenizer that normalizes text and puts special tokens last, like T5's."""
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


def test_byte_pairs_count_every_byte_once(tokenizer: Tokenizer) -> None:
    for text, (ids, sizes) in zip(TEXTS, tokenizer.encode_with_sizes(TEXTS), strict=True):
        assert len(ids) == len(sizes)
        assert sizes.sum() == len(text.encode())
        assert (sizes >= 0).all()


def test_a_normalising_tokenizer_counts_the_bytes_of_the_original_text(t5_like: Tokenizer) -> None:
    for text, (_, sizes) in zip(TEXTS, t5_like.encode_with_sizes(TEXTS), strict=True):
        assert sizes.sum() == len(text.rstrip().encode())


def test_byte_pairs_of_ascii_have_as_many_bytes_as_characters(tokenizer: Tokenizer) -> None:
    inner = HuggingFace.from_str(tokenizer.text)
    [(ids, sizes)] = tokenizer.encode_with_sizes([TEXTS[0]])
    assert sizes.tolist() == [len(inner.decode([token])) for token in ids]


def test_measured_tokens_equal_training_tokens(either: Tokenizer) -> None:
    for ids, (ids_with_sizes, _) in zip(either.encode(TEXTS), either.encode_with_sizes(TEXTS), strict=True):
        assert np.array_equal(ids, ids_with_sizes)


def test_text_that_spells_a_special_token_stays_text(either: Tokenizer) -> None:
    [ids] = either.encode(["it says </s> and <|endoftext|> and <extra_id_3>"])
    assert either.boundary not in ids
    assert ids.max() < either.size


def test_unused_special_tokens_do_not_count_as_vocabulary(t5_like: Tokenizer) -> None:
    assert t5_like.size == len(HuggingFace.from_str(t5_like.text).get_vocab()) - 100


def test_refuses_a_tokenizer_too_large_for_a_task(tokenizer: Tokenizer) -> None:
    tokenizer.check(300, "c4-lm")
    with raises("mismatch", task="c4-lm", value=300, most=299):
        tokenizer.check(299, "c4-lm")


def test_training_is_reproducible_and_cached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NAS_CACHE", str(tmp_path))
    first = train_tokenizer(TEXTS, 280)
    monkeypatch.setattr(module, "_train", lambda documents, vocabulary: pytest.fail("trained twice"))
    assert train_tokenizer(TEXTS, 280) == first
    monkeypatch.undo()
    monkeypatch.setenv("NAS_CACHE", str(tmp_path / "another"))
    assert train_tokenizer(TEXTS, 280) == first
    assert train_tokenizer(TEXTS, 270) != first


def test_a_cache_that_cannot_be_written_is_a_notice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("NAS_CACHE", str(tmp_path / "file"))
    with warns("unwritable") as notices:
        assert train_tokenizer(TEXTS, 280).size == 280
    assert all(notice.fields["path"].startswith(str(tmp_path / "file")) for notice in notices)


def test_refuses_a_file_that_is_no_tokenizer(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with raises("bad-file", path=str(tmp_path / "tokenizer.json")):
        tokenizer_at(tmp_path)
    with raises("missing-file", path=str(tmp_path / "missing.json")):
        tokenizer_at(tmp_path / "missing.json")


def test_refuses_a_tokenizer_without_a_boundary_token(tokenizer: Tokenizer) -> None:
    record = json.loads(tokenizer.text)
    record["added_tokens"] = []
    record["model"]["vocab"] = {token: i for token, i in record["model"]["vocab"].items() if token != "<|endoftext|>"}
    with raises("bad-data", source="a test"):
        Tokenizer(json.dumps(record), "a test")


def test_the_hub_is_reachable_by_a_proxy_or_by_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object) -> None:
        raise OSError("no such host")

    reachable = {}
    for offline, proxies, address in product((True, False), ({}, {"https": "proxy"}), (unknown, lambda *_: None)):
        monkeypatch.setattr(hub.constants, "HF_HUB_OFFLINE", offline)
        monkeypatch.setattr(hub, "getproxies", lambda proxies=proxies: proxies)
        monkeypatch.setattr(hub.socket, "getaddrinfo", address)
        hub.reachable.cache_clear()
        reachable[offline, bool(proxies), address is not unknown] = hub.reachable()
    hub.reachable.cache_clear()
    assert reachable == {case: not case[0] and any(case[1:]) for case in product((True, False), repeat=3)}


def test_a_tokenizer_of_the_hub_needs_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "reachable", lambda: False)
    with raises("unavailable", value="nobody/nothing", file="tokenizer.json"):
        get_tokenizer("nobody/nothing")
