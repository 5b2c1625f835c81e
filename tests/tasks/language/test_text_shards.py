import gzip
import itertools
import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from search_spaces.errors import UserError
from tasks.language.shards import HashShare, HubShard, JsonShard, MemoryShard, ParquetShard, TextShard, read

TEXTS = [f"document {number}, naïve" for number in range(10)]


def json_shard(path: Path, lines: list[bytes]) -> JsonShard:
    path.write_bytes(gzip.compress(b"\n".join(lines) + b"\n"))
    return JsonShard(path, "text", path.name)


def records(texts: list[str]) -> list[bytes]:
    return [json.dumps({"text": text, "timestamp": "2019-04-25T12:57:54Z", "url": "u"}).encode() for text in texts]


@pytest.fixture(params=["gzip", "plain", "parquet", "memory", "hub"])
def shard(request: pytest.FixtureRequest, tmp_path: Path) -> TextShard:
    match request.param:
        case "gzip":
            return json_shard(tmp_path / "c4-train.json.gz", records(TEXTS))
        case "plain":
            (tmp_path / "train.jsonl").write_bytes(b"\n".join(records(TEXTS)))
            return JsonShard(tmp_path / "train.jsonl", "text", "train.jsonl")
        case "parquet":
            table = pyarrow.table({"text": TEXTS, "url": ["u"] * len(TEXTS)})
            pyarrow.parquet.write_table(table, tmp_path / "train.parquet", row_group_size=3)
            return ParquetShard(tmp_path / "train.parquet", "text", "train.parquet")
        case "memory":
            return MemoryShard(tuple(TEXTS))
    datasets = pytest.importorskip("datasets")
    return HubShard(datasets.Dataset.from_dict({"text": TEXTS}).to_iterable_dataset(), "text", "hub/train/0")


@pytest.mark.parametrize("start", [0, 1, 3, 9, 10])
def test_every_kind_of_shard_is_read_from_any_document_on(shard: TextShard, start: int) -> None:
    assert list(read(shard, start)) == list(enumerate(TEXTS))[start:]


@pytest.mark.parametrize(
    "wrong",
    [
        b'{"text": "the line ends in the midd',
        b"",
        b"[1, 2]",
        b'{"txt": "another column"}',
        b'{"text": 7}',
        b'{"text": null}',
        b'{"text": "half a pair: \\ud83d"}',
        b'{"text": "no UTF-8: \xff"}',
        b"[" * 100_000,
    ],
)
def test_a_line_without_a_text_is_told_and_marked_and_keeps_its_number(tmp_path: Path, wrong: bytes) -> None:
    lines = records(TEXTS)
    lines[4] = wrong
    shard = json_shard(tmp_path / "c4-train.json.gz", lines)
    with pytest.warns(UserWarning, match=r"c4-train.json.gz: .* 5 has no text"):
        found = list(read(shard))
    assert found == [(number, None if number == 4 else text) for number, text in enumerate(TEXTS)]


@pytest.mark.parametrize("kept", [0.3, 0.8, 0.999])
def test_a_truncated_file_gives_what_comes_before_and_says_so(tmp_path: Path, kept: float) -> None:
    texts = [f"{number} " * 50 for number in range(5000)]
    shard = json_shard(tmp_path / "c4-train.json.gz", records(texts))
    whole = shard.path.read_bytes()
    shard.path.write_bytes(whole[: int(len(whole) * kept)])
    with pytest.warns(UserWarning, match="is damaged"):
        found = list(read(shard))
    assert 0 < len(found) < len(texts)
    assert found[-1] == (len(found) - 1, None)
    assert [text for _, text in found[:-1]] == texts[: len(found) - 1]


@pytest.mark.parametrize("content", [b"no gzip at all", b"\x1f\x8b\x08\x00garbage garbage garbage"])
def test_a_file_that_is_no_gzip_gives_nothing_and_says_so(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json.gz").write_bytes(content)
    with pytest.warns(UserWarning, match="first 0 documents"):
        assert list(read(JsonShard(tmp_path / "a.json.gz", "text", "a.json.gz"))) == [(0, None)]


def test_a_file_that_is_no_parquet_gives_nothing_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 but not really")
    with pytest.warns(UserWarning, match="first 0 documents"):
        assert list(read(ParquetShard(tmp_path / "a.parquet", "text", "a.parquet"))) == [(0, None)]


def test_a_missing_parquet_column_is_a_mistake_that_names_the_others(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"content": TEXTS}), tmp_path / "a.parquet")
    with pytest.raises(UserError, match=r"no column 'text'.*content"):
        list(read(ParquetShard(tmp_path / "a.parquet", "text", "a.parquet")))


def test_shares_of_a_shard_part_its_documents_by_what_they_say() -> None:
    whole = MemoryShard(tuple(TEXTS * 2))
    cuts = [0, 0.3, 0.6, 1]
    shares = [[text for _, text in read(HashShare(whole, low, high)) if text] for low, high in itertools.pairwise(cuts)]
    assert sorted(text for share in shares for text in share) == sorted(TEXTS * 2)
    assert all(share.count(text) == 2 for share in shares for text in share)
