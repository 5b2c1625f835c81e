"""Formats of GLUE's sets, its own and the hub's, as literals."""

from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from tasks.glue.glue_files import GLUE, read_set

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

# name: (columns, class number or value, answer)
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

# name: (scores, development sets in GLUE, and on the hub)
SCORES = {
    "cola": ({"matthews"}, ["dev"], ["validation"]),
    "sst2": ({"accuracy"}, ["dev"], ["validation"]),
    "mrpc": ({"accuracy", "f1"}, ["dev"], ["validation"]),
    "stsb": ({"pearson", "spearman"}, ["dev"], ["validation"]),
    "qqp": ({"accuracy", "f1"}, ["dev"], ["validation"]),
    "mnli": ({"accuracy"}, ["dev_matched", "dev_mismatched"], ["validation_matched", "validation_mismatched"]),
    "qnli": ({"accuracy"}, ["dev"], ["validation"]),
    "rte": ({"accuracy"}, ["dev"], ["validation"]),
}


def test_every_set_has_glues_scores_and_development_sets() -> None:
    scores = {name: ({*of.scores}, [*of.dev], [*of.dev.values()]) for name, of in GLUE.items()}
    assert scores == SCORES


def test_reads_glues_own_files(tmp_path: Path) -> None:
    assert {*GLUE} == {*TSV}
    contents, expected = {}, {}
    for name, (folder, header, line, texts, answer) in TSV.items():
        (tmp_path / folder).mkdir()
        for part in ("train", *SCORES[name][1]):
            lines = [line] if header is None else [header, line]
            (tmp_path / folder / f"{part}.tsv").write_text("".join(line.replace("|", "\t") + "\n" for line in lines))
        read = read_set(GLUE[name], tmp_path)
        contents[name] = [(part.texts, part.answers) for part in (read.train, *read.dev)]
        expected[name] = [([texts], [answer])] * (1 + len(SCORES[name][1]))
    assert contents == expected


def test_reads_the_hubs_files(tmp_path: Path) -> None:
    assert {*GLUE} == {*HUB}
    texts, expected = {}, {}
    for name, (columns, label, answer) in HUB.items():
        (tmp_path / name).mkdir()
        table: dict[str, list[Any]] = {**{column: [text] for column, text in columns.items()}, "label": [label]}
        for split in ("train", *SCORES[name][2]):
            pyarrow.parquet.write_table(pyarrow.table(table), tmp_path / name / f"{split}-00000-of-00001.parquet")
        read, labels = read_set(GLUE[name], tmp_path), GLUE[name].labels
        read_answer = labels[int(read.train.answers[0])] if labels else str(read.train.answers[0])
        texts[name], expected[name] = (read.train.texts, read_answer), ([tuple(columns.values())], answer)
    assert texts == expected
