import gzip
import itertools
import json
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from expect import raises, warns
from tasks.language.shards import HashSplitShard, HubShard, JsonShard, MemoryShard, ParquetShard, TextShard, read

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


def test_every_kind_of_shard_can_be_read_from_any_document(shard: TextShard) -> None:
    starts = (0, 1, 3, 9, 10)
    assert {start: list(read(shard, start)) for start in starts} == {
        start: list(enumerate(TEXTS))[start:] for start in starts
    }


def test_lines_without_text_are_skipped_with_a_notice(tmp_path: Path) -> None:
    wrong = (
        b'{"text": "the line ends in the midd',
        b"",
        b"[1, 2]",
        b'{"txt": "another column"}',
        b'{"text": 7}',
        b'{"text": null}',
        b'{"text": "half a pair: \\ud83d"}',
        b'{"text": "no UTF-8: \xff"}',
        b"[" * 100_000,
    )
    for number, line in enumerate(wrong):
        lines = records(TEXTS)
        lines[4] = line
        shard = json_shard(tmp_path / f"c4-train.{number}.json.gz", lines)
        with warns("skipped", shard=shard.name, line=5):
            texts = list(read(shard))
        assert texts == [(number, None if number == 4 else text) for number, text in enumerate(TEXTS)], line


def test_a_truncated_file_is_read_up_to_the_cut(tmp_path: Path) -> None:
    texts = [f"{number} " * 50 for number in range(5000)]
    whole = json_shard(tmp_path / "whole.json.gz", records(texts)).path.read_bytes()
    for share in (0.3, 0.8, 0.999):
        shard = JsonShard(tmp_path / f"{share}.json.gz", "text", f"{share}.json.gz")
        shard.path.write_bytes(whole[: int(len(whole) * share)])
        with warns("bad-file", shard=shard.name) as notices:
            lines = list(read(shard))
        assert 0 < len(lines) < len(texts)
        assert lines[-1] == (len(lines) - 1, None)
        assert [text for _, text in lines[:-1]] == texts[: len(lines) - 1]
        assert [notice.fields["texts"] for notice in notices] == [len(lines) - 1]


@pytest.mark.parametrize(
    ("kind", "name", "content"),
    [
        (JsonShard, "a.json.gz", b"no gzip at all"),
        (JsonShard, "b.json.gz", b"\x1f\x8b\x08\x00garbage garbage garbage"),
        (ParquetShard, "a.parquet", b"PAR1 but not really"),
    ],
)
def test_a_file_of_another_format_gives_nothing(
    kind: type[JsonShard | ParquetShard], name: str, content: bytes, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with warns("bad-file", shard=name, texts=0):
        assert list(read(kind(tmp_path / name, "text", name))) == [(0, None)]


def test_names_a_missing_parquet_column_and_the_others(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.table({"content": TEXTS}), tmp_path / "a.parquet")
    with raises("bad-data", source=str(tmp_path / "a.parquet"), column="text", columns=("content",)):
        list(read(ParquetShard(tmp_path / "a.parquet", "text", "a.parquet")))


def test_hash_shares_split_a_shard_by_content() -> None:
    whole = MemoryShard(tuple(TEXTS * 2))
    cuts = [0, 0.3, 0.6, 1]
    shares = [
        [text for _, text in read(HashSplitShard(whole, low, high)) if text] for low, high in itertools.pairwise(cuts)
    ]
    assert sorted(text for share in shares for text in share) == sorted(TEXTS * 2)
    assert all(share.count(text) == 2 for share in shares for text in share)
