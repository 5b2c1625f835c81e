"""GLUE's sets from its own files and from the hub."""

from dataclasses import replace
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from expect import raises, warns
from search_spaces.support.errors import Kind
from tasks.glue.glue_files import GLUE, read_set
from tasks.glue.sets import GlueSetData


def write_set(folder: Path, name: str, lines: list[str]) -> Path:
    """Write a set with these lines in train and dev."""
    of = GLUE[name]
    (folder / of.folder).mkdir()
    for part in ("train", *of.dev):
        (folder / of.folder / f"{part}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8-sig")
    return folder


def test_every_set_has_its_texts_and_answers(glue_data: Path) -> None:
    folder = Path(str(glue_data).partition(",")[0])
    sets, expected = {}, {}
    for name, of in GLUE.items():
        texts = read_set(of, folder)
        sizes = [len(part.texts) for part in (texts.train, *texts.dev)]
        sets[name] = sizes, {len(text) for text in texts.train.texts}, texts.train.answers
        answers = [float(number % (len(of.labels) or 6)) for number in range(40)]
        expected[name] = [40] + [10] * len(of.dev), {len(of.columns)}, answers
    assert sets == expected


def test_parquet_files_of_the_hub_give_the_same_sets(glue_data: Path, tmp_path: Path) -> None:
    folder = Path(str(glue_data).partition(",")[0])
    plain = {name: read_set(of, folder) for name, of in GLUE.items()}
    for name, of in GLUE.items():
        copy = tmp_path / "hub" / name
        copy.mkdir(parents=True)
        for split, part in zip(("train", *of.dev.values()), (plain[name].train, *plain[name].dev), strict=True):
            kind = int if of.labels else float
            columns = dict(zip(of.hub_columns, zip(*part.texts, strict=True), strict=True))
            table = pyarrow.table({**columns, "label": [kind(answer) for answer in part.answers]})
            pyarrow.parquet.write_table(table, copy / f"{split}-00000-of-00001.parquet")
    assert {name: read_set(of, tmp_path / "hub") for name, of in GLUE.items()} == plain


def test_quotation_marks_are_text_and_either_line_end_is_read(tmp_path: Path) -> None:
    lines = ['gj04\t1\t\t"Never, he said.\r', "gj04\t0\t*\tHe\u2028said never."]
    texts = read_set(GLUE["cola"], write_set(tmp_path, "cola", lines))
    assert texts.train.texts == [('"Never, he said.',), ("He\u2028said never.",)]
    assert texts.train.answers == [1.0, 0.0]


def test_a_few_short_lines_are_skipped_with_a_notice(tmp_path: Path) -> None:
    good = ["sentence\tlabel", *["a film\t1"] * 2000]
    with warns("skipped", short_lines=1, examples=2000, line=2002):
        texts: GlueSetData = read_set(GLUE["sst2"], write_set(tmp_path, "sst2", [*good, "a film"]))
    assert len(texts.train.texts) == 2000


@pytest.mark.parametrize(
    ("lines", "kind", "fields"),
    [
        (["text\tlabel", "a film\t1"], "bad-data", {"column": "sentence", "columns": ("text", "label")}),
        (["sentence\tlabel", "a film\tgood"], "bad-data", {"option": "label", "value": "good", "line": 2}),
        (["sentence\tlabel", "a film\t1", "a film"], "bad-data", {"short_lines": 1, "examples": 1, "line": 3}),
        (["sentence\tlabel"], "missing-data", {}),
        ([], "bad-data", {"column": "sentence", "columns": ("",)}),
    ],
)
def test_refuses_a_tsv_file_of_another_schema(
    lines: list[str], kind: Kind, fields: dict[str, object], tmp_path: Path
) -> None:
    folder = write_set(tmp_path, "sst2", lines)
    with raises(kind, path=str(folder / "SST-2" / "train.tsv"), **fields):
        read_set(GLUE["sst2"], folder)


def in_parquet(folder: Path, name: str, columns: dict[str, list[object]]) -> Path:
    """Write a set of the hub with these columns in train and dev."""
    (folder / name).mkdir()
    for split in ("train", *GLUE[name].dev.values()):
        pyarrow.parquet.write_table(pyarrow.table(columns), folder / name / f"{split}-00000-of-00001.parquet")
    return folder


@pytest.mark.parametrize(
    ("name", "columns", "fields"),
    [
        ("sst2", {"sentence": ["a", "b"], "label": [1.0, 0.0]}, {"option": "label", "value": 1.0, "row": 0}),
        ("sst2", {"sentence": ["a", "b"], "label": [1, -1]}, {"option": "label", "value": -1, "row": 1}),
        ("sst2", {"sentence": ["a", "b"], "label": [1, None]}, {"option": "label", "value": None, "row": 1}),
        ("sst2", {"sentence": ["a", None], "label": [1, 0]}, {"option": "sentence", "value": None, "row": 1}),
        ("sst2", {"text": ["a", "b"], "label": [1, 0]}, {"column": "sentence", "columns": ("text", "label")}),
        (
            "stsb",
            {"sentence1": ["a"], "sentence2": ["b"], "label": [float("nan")]},
            {"option": "score", "value": "nan", "row": 0},
        ),
    ],
)
def test_refuses_a_parquet_file_of_another_schema(
    name: str, columns: dict[str, list[object]], fields: dict[str, object], tmp_path: Path
) -> None:
    folder = in_parquet(tmp_path, name, columns)
    with raises("bad-data", path=str(folder / name / "train-00000-of-00001.parquet"), **fields):
        read_set(GLUE[name], folder)


def test_names_a_parquet_file_that_is_damaged_or_missing(tmp_path: Path) -> None:
    folder = in_parquet(tmp_path, "sst2", {"sentence": ["a"], "label": [1]})
    path = folder / "sst2" / "validation-00000-of-00001.parquet"
    path.write_bytes(b"no table")
    with raises("bad-file", path=str(path)):
        read_set(GLUE["sst2"], folder)
    path.unlink()
    with raises("missing-data", path=str(folder / "sst2"), split="validation"):
        read_set(GLUE["sst2"], folder)


def test_names_a_tsv_file_that_is_damaged_or_missing(tmp_path: Path) -> None:
    folder = write_set(tmp_path, "rte", ["sentence1\tsentence2\tlabel", "a\tb\tentailment"])
    path = folder / "RTE" / "dev.tsv"
    path.write_bytes(b"\xff\xfe\x00")
    with raises("bad-file", path=str(path)):
        read_set(GLUE["rte"], folder)
    path.unlink()
    with raises("missing-file", path=str(path)):
        read_set(GLUE["rte"], folder)
    with raises("missing-data", path=str(folder), set="cola"):
        read_set(GLUE["cola"], folder)
    with raises("bad-data", option="label", value="entailment", line=2):
        read_set(replace(GLUE["stsb"], folder="RTE", label="label"), folder)
