"""GLUE's sets as files: GLUE's own, and those of the hub."""

from dataclasses import replace
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from search_spaces.errors import Notice, UserError
from tasks.glue.files import GLUE, read_set
from tasks.glue.sets import SetTexts


def written(folder: Path, name: str, lines: list[str]) -> Path:
    """A set whose train and dev have these lines, in its folder."""
    of = GLUE[name]
    (folder / of.folder).mkdir()
    for part in ("train", *of.dev):
        (folder / of.folder / f"{part}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8-sig")
    return folder


@pytest.mark.parametrize("name", GLUE)
def test_every_set_is_read_with_its_texts_and_answers(name: str, glue_data: Path) -> None:
    of, folder = GLUE[name], Path(str(glue_data).partition(",")[0])
    texts = read_set(of, folder)
    assert [len(part.texts) for part in (texts.train, *texts.dev)] == [40] + [10] * len(of.dev)
    assert {len(text) for text in texts.train.texts} == {len(of.columns)}
    assert texts.train.answers == [float(number % (len(of.labels) or 6)) for number in range(40)]


@pytest.mark.parametrize("name", GLUE)
def test_the_files_of_the_hub_give_the_same(name: str, glue_data: Path, tmp_path: Path) -> None:
    of, folder = GLUE[name], Path(str(glue_data).partition(",")[0])
    texts = read_set(of, folder)
    copy = tmp_path / "hub" / name
    copy.mkdir(parents=True)
    for split, part in zip(("train", *of.dev.values()), (texts.train, *texts.dev), strict=True):
        kind = int if of.labels else float
        columns = dict(zip(of.hub_columns, zip(*part.texts, strict=True), strict=True))
        table = pyarrow.table({**columns, "label": [kind(answer) for answer in part.answers]})
        pyarrow.parquet.write_table(table, copy / f"{split}-00000-of-00001.parquet")
    assert read_set(of, copy.parent) == texts


def test_quotation_marks_are_text_and_lines_end_as_they_may(tmp_path: Path) -> None:
    lines = ['gj04\t1\t\t"Never, he said.\r', "gj04\t0\t*\tHe\u2028said never."]
    found = read_set(GLUE["cola"], written(tmp_path, "cola", lines))
    assert found.train.texts == [('"Never, he said.',), ("He\u2028said never.",)]
    assert found.train.answers == [1.0, 0.0]


def test_a_few_short_lines_are_left_out_and_said(tmp_path: Path) -> None:
    good = ["sentence\tlabel", *["a film\t1"] * 2000]
    with pytest.warns(Notice, match="1 of 2001 lines are short, and left out; the first is line 2002"):
        found: SetTexts = read_set(GLUE["sst2"], written(tmp_path, "sst2", [*good, "a film"]))
    assert len(found.train.texts) == 2000


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (
            ["text\tlabel", "a film\t1"],
            "line 1: a file of SST-2 has the columns sentence, label, and 'sentence' is not",
        ),
        (["sentence\tlabel", "a film\tgood"], "line 2: label must be one of 0, 1, got 'good'"),
        (["sentence\tlabel", "a film\t1", "a film"], "columns, the first of them line 3, and 1 whole ones"),
        (["sentence\tlabel"], "has no examples. Take GLUE's own file."),
        ([], "'sentence' is not among ''"),
    ],
)
def test_another_schema_is_a_line_with_file_and_place(lines: list[str], says: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"train\.tsv") as raised:
        read_set(GLUE["sst2"], written(tmp_path, "sst2", lines))
    assert says in str(raised.value)


def in_parquet(folder: Path, name: str, columns: dict[str, list[object]]) -> Path:
    """A set of the hub's whose train and dev hold these columns."""
    (folder / name).mkdir()
    for split in ("train", *GLUE[name].dev.values()):
        pyarrow.parquet.write_table(pyarrow.table(columns), folder / name / f"{split}-00000-of-00001.parquet")
    return folder


@pytest.mark.parametrize(
    ("name", "columns", "says"),
    [
        ("sst2", {"sentence": ["a", "b"], "label": [1.0, 0.0]}, r"row 0: label must be one of 0, 1, got 1\.0"),
        ("sst2", {"sentence": ["a", "b"], "label": [1, -1]}, "row 1: label must be one of 0, 1, got -1"),
        ("sst2", {"sentence": ["a", "b"], "label": [1, None]}, "row 1: label must be one of 0, 1, got None"),
        ("sst2", {"sentence": ["a", None], "label": [1, 0]}, r"row 1: texts must be text, got \(None,\)"),
        ("sst2", {"text": ["a", "b"], "label": [1, 0]}, "has no column 'sentence'. Its columns: text, label"),
        (
            "stsb",
            {"sentence1": ["a"], "sentence2": ["b"], "label": [float("nan")]},
            "row 0: score must be a finite number, got 'nan'",
        ),
    ],
)
def test_another_schema_of_the_hub_is_a_line_with_file_and_row(
    name: str, columns: dict[str, list[object]], says: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=rf"train-00000-of-00001\.parquet.*{says}"):
        read_set(GLUE[name], in_parquet(tmp_path, name, columns))


def test_files_of_the_hub_that_are_none_or_not_there_are_named(tmp_path: Path) -> None:
    folder = in_parquet(tmp_path, "sst2", {"sentence": ["a"], "label": [1]})
    path = folder / "sst2" / "validation-00000-of-00001.parquet"
    path.write_bytes(b"no table")
    with pytest.raises(UserError, match=r"validation-00000-of-00001\.parquet cannot be read"):
        read_set(GLUE["sst2"], folder)
    path.unlink()
    with pytest.raises(UserError, match=r"has no validation-\*\.parquet"):
        read_set(GLUE["sst2"], folder)


def test_a_file_that_is_no_text_and_one_that_is_not_there_are_named(tmp_path: Path) -> None:
    folder = written(tmp_path, "rte", ["sentence1\tsentence2\tlabel", "a\tb\tentailment"])
    (folder / "RTE" / "dev.tsv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match=r"dev\.tsv cannot be read"):
        read_set(GLUE["rte"], folder)
    (folder / "RTE" / "dev.tsv").unlink()
    with pytest.raises(UserError, match=r"dev\.tsv cannot be read"):
        read_set(GLUE["rte"], folder)
    with pytest.raises(UserError, match=r"neither CoLA/train\.tsv"):
        read_set(GLUE["cola"], folder)
    with pytest.raises(UserError, match="must be a finite number, got 'entailment'"):
        read_set(replace(GLUE["stsb"], folder="RTE", label="label"), folder)
