"""GLUE's sets as GLUE and the hub publish them: headers, classes, scores and parts, as literals."""

from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from tasks.glue.files import GLUE, read_set

# name: (folder, header of train.tsv or None, a line, its texts, its answer)
TSV: dict[str, tuple[str, str | None, str, tuple[str, ...], float]] = {
    "cola": ("CoLA", None, "gj04|0|*|They drank the pub.", ("They drank the pub.",), 0),
    "sst2": ("SST-2", "sentence|label", "a charming film |1", ("a charming film ",), 1),
    "mrpc": ("MRPC", "Quality|#1 ID|#2 ID|#1 String|#2 String", "1|7|8|One said so.|So said one.",
             ("One said so.", "So said one."), 1),
    "stsb": ("STS-B", "index|genre|filename|year|old_index|source1|source2|sentence1|sentence2|score",
             "0|main|f|2012|1|none|none|A cat sits.|A cat sat.|4.2", ("A cat sits.", "A cat sat."), 4.2),
    "qqp": ("QQP", "id|qid1|qid2|question1|question2|is_duplicate", "5|1|2|Why?|How so?|0", ("Why?", "How so?"), 0),
    "mnli": ("MNLI", "index|promptID|pairID|genre|sentence1_binary_parse|sentence2_binary_parse|sentence1_parse|"
             "sentence2_parse|sentence1|sentence2|label1|gold_label",
             "0|3|3n|g|( a )|( b )|(A)|(B)|It rains.|It is dry.|contradiction|contradiction",
             ("It rains.", "It is dry."), 2),
    "qnli": ("QNLI", "index|question|sentence|label", "9|Who?|She did.|entailment", ("Who?", "She did."), 0),
    "rte": ("RTE", "index|sentence1|sentence2|label", "9|It rains.|It is wet.|not_entailment",
            ("It rains.", "It is wet."), 1),
}  # fmt: skip

# name: (columns, the number of a class or the value, the answer that it is)
HUB: dict[str, tuple[dict[str, str], float, str]] = {
    "cola": ({"sentence": "a"}, 1, "1"),
    "sst2": ({"sentence": "a"}, 1, "1"),
    "mrpc": ({"sentence1": "a", "sentence2": "b"}, 1, "1"),
    "stsb": ({"sentence1": "a", "sentence2": "b"}, 4.2, "4.2"),
    "qqp": ({"question1": "a", "question2": "b"}, 1, "1"),
    "mnli": ({"premise": "a", "hypothesis": "b"}, 1, "neutral"),
    "qnli": ({"question": "a", "sentence": "b"}, 1, "not_entailment"),
    "rte": ({"sentence1": "a", "sentence2": "b"}, 0, "entailment"),
}

# name: (what its score is a mean of, development sets in GLUE, and on the hub)
SCORED = {
    "cola": ({"matthews"}, ["dev"], ["validation"]),
    "sst2": ({"accuracy"}, ["dev"], ["validation"]),
    "mrpc": ({"accuracy", "f1"}, ["dev"], ["validation"]),
    "stsb": ({"pearson", "spearman"}, ["dev"], ["validation"]),
    "qqp": ({"accuracy", "f1"}, ["dev"], ["validation"]),
    "mnli": ({"accuracy"}, ["dev_matched", "dev_mismatched"], ["validation_matched", "validation_mismatched"]),
    "qnli": ({"accuracy"}, ["dev"], ["validation"]),
    "rte": ({"accuracy"}, ["dev"], ["validation"]),
}


def test_the_sets_are_those_that_glue_averages_over() -> None:
    assert {*GLUE} == {*TSV} == {*HUB} == {*SCORED}


@pytest.mark.parametrize("name", SCORED)
def test_a_set_is_scored_as_glue_scores_it(name: str) -> None:
    scores, dev, on_the_hub = SCORED[name]
    assert {*GLUE[name].scores} == scores
    assert [*GLUE[name].dev] == dev
    assert [*GLUE[name].dev.values()] == on_the_hub


@pytest.mark.parametrize("name", TSV)
def test_glues_own_file_is_read(name: str, tmp_path: Path) -> None:
    folder, header, line, texts, answer = TSV[name]
    (tmp_path / folder).mkdir()
    for part in ("train", *SCORED[name][1]):
        lines = [line] if header is None else [header, line]
        (tmp_path / folder / f"{part}.tsv").write_text("".join(one.replace("|", "\t") + "\n" for one in lines))
    found = read_set(GLUE[name], tmp_path)
    for one in (found.train, *found.dev):
        assert (one.texts, one.answers) == ([texts], [answer])


@pytest.mark.parametrize("name", HUB)
def test_the_hubs_file_is_read(name: str, tmp_path: Path) -> None:
    columns, label, answer = HUB[name]
    (tmp_path / name).mkdir()
    table: dict[str, list[Any]] = {**{column: [text] for column, text in columns.items()}, "label": [label]}
    for split in ("train", *SCORED[name][2]):
        pyarrow.parquet.write_table(pyarrow.table(table), tmp_path / name / f"{split}-00000-of-00001.parquet")
    found = read_set(GLUE[name], tmp_path)
    assert found.train.texts == [tuple(columns.values())]
    labels = GLUE[name].labels
    assert (labels[int(found.train.answers[0])] if labels else str(found.train.answers[0])) == answer
