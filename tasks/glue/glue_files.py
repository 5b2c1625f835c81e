"""Readers of GLUE's sets: GLUE's own TSV files, or the parquet files of nyu-mll/glue on the Hub."""

import math
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from search_spaces.support.errors import Notice, UserError
from search_spaces.support.files import check_regular_file, kind_of_read_error
from tasks.glue.sets import GlueSet, GlueSetData, LabelledTexts
from tasks.language.hub import hub_splits

_HUB = "nyu-mll/glue"
_SHORT = 1 / 1_000
"""Fraction of a file's lines that may lack an answer or a text, as a few of QQP's do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFiles(GlueSet):
    """A set and its files.

    Attributes:
        folder: Folder with train.tsv.
        columns: Columns of its texts in that file.
        label: Column of the answer.
        header: Columns of a file without a header line; () if it has one.
        hub_columns: Columns of its texts on the Hub, where the answer is in "label", classes by number.
        dev: Name of each development set at GLUE -> its name on the Hub.
    """

    folder: str
    columns: tuple[str, ...]
    label: str = "label"
    header: tuple[str, ...] = ()
    hub_columns: tuple[str, ...] = ("sentence1", "sentence2")
    dev: Mapping[str, str]


_SINGLE_DEV = {"dev": "validation"}
_NO_YES = ("0", "1")
_TWO = ("sentence1", "sentence2")

GLUE: Mapping[str, SetFiles] = {
    files.name: files
    for files in (
        SetFiles(
            name="cola", labels=_NO_YES, scores=("matthews",), folder="CoLA", columns=("sentence",), dev=_SINGLE_DEV,
            header=("source", "label", "mark", "sentence"), hub_columns=("sentence",),
        ),
        SetFiles(
            name="sst2", labels=_NO_YES, scores=("accuracy",), folder="SST-2", columns=("sentence",), dev=_SINGLE_DEV,
            hub_columns=("sentence",),
        ),
        SetFiles(
            name="mrpc", labels=_NO_YES, scores=("accuracy", "f1"), folder="MRPC", dev=_SINGLE_DEV,
            columns=("#1 String", "#2 String"), label="Quality",
        ),
        SetFiles(
            name="stsb", labels=(), scores=("pearson", "spearman"), folder="STS-B", dev=_SINGLE_DEV, columns=_TWO,
            label="score",
        ),
        SetFiles(
            name="qqp", labels=_NO_YES, scores=("accuracy", "f1"), folder="QQP", dev=_SINGLE_DEV,
            columns=("question1", "question2"), label="is_duplicate", hub_columns=("question1", "question2"),
        ),
        SetFiles(
            name="mnli", labels=("entailment", "neutral", "contradiction"), scores=("accuracy",), folder="MNLI",
            dev={"dev_matched": "validation_matched", "dev_mismatched": "validation_mismatched"}, columns=_TWO,
            label="gold_label", hub_columns=("premise", "hypothesis"),
        ),
        SetFiles(
            name="qnli", labels=("entailment", "not_entailment"), scores=("accuracy",), folder="QNLI", dev=_SINGLE_DEV,
            columns=("question", "sentence"), hub_columns=("question", "sentence"),
        ),
        SetFiles(
            name="rte", labels=("entailment", "not_entailment"), scores=("accuracy",), folder="RTE", dev=_SINGLE_DEV,
            columns=_TWO,
        ),
    )
}  # fmt: skip
"""The eight sets in GLUE's average, without WNLI, as in Crammed-BERT's table."""


def read_set(files: SetFiles, folder: Path) -> GlueSetData:
    """Read a set from GLUE's folders, or from a copy of the Hub's. Raises UserError if both are missing."""
    if (folder / files.folder / "train.tsv").exists():
        parts = [_read_tsv(files, folder / files.folder / f"{name}.tsv") for name in ("train", *files.dev)]
    elif (folder / files.name).is_dir():
        parts = [_read_parquet(files, folder / files.name, split) for split in ("train", *files.dev.values())]
    else:
        raise UserError(
            "missing-data",
            f"{folder} must contain {files.folder}/train.tsv (GLUE's files) or {files.name}/train-*.parquet ({_HUB}). "
            f"Give another folder, or remove {files.name} from the setting sets.",
            path=str(folder),
            set=files.name,
        )
    return GlueSetData(parts[0], tuple(parts[1:]))


def hub_set(files: SetFiles) -> GlueSetData:
    """Read a set from the Hub or its cache. Raises UserError if it is in neither."""
    names = ("train", *files.dev.values())
    splits = zip(names, hub_splits(_HUB, files.name, names), strict=True)
    parts = [_from_columns(files, columns, f"{_HUB}/{files.name}/{split}") for split, columns in splits]
    return GlueSetData(parts[0], tuple(parts[1:]))


def _read_tsv(files: SetFiles, path: Path) -> LabelledTexts:
    """Read tab-separated lines; quotation marks are plain text."""
    try:
        text_lines = check_regular_file(path).read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise UserError(
            kind_of_read_error(error),
            f"{path} cannot be read: {reason}. Use all of GLUE's original files of {files.folder}.",
            path=str(path),
        ) from error
    rows = ((number, line.rstrip("\r").split("\t")) for number, line in enumerate(text_lines, 1) if line.strip())
    header = list(files.header) or next(rows, (1, [""]))[1]
    names = (*files.columns, files.label)
    if missing := [name for name in names if name not in header]:
        raise UserError(
            "bad-data",
            f"{path}, line 1: a file of {files.folder} must have the columns {', '.join(names)}, got no {missing[0]!r} "
            f"in {', '.join(map(repr, header))}. Use GLUE's original file.",
            path=str(path),
            column=missing[0],
            columns=tuple(header),
        )
    places = [header.index(name) for name in names]
    examples, short = LabelledTexts([], []), list[int]()
    for number, row in rows:
        if len(row) <= max(places) or not all(row[place].strip() for place in places):
            short.append(number)
            continue
        *texts, label = (row[place] for place in places)
        examples.texts.append(tuple(texts))
        examples.answers.append(_answer(files, label.strip(), _Location(str(path), "line", number)))
    _check_short(path, short, len(examples.texts), len(header))
    return examples


def _check_short(path: Path, short: Sequence[int], complete: int, columns: int) -> None:
    """Warn about lines that were skipped. Raises UserError if they are many, or the file has no example."""
    if not complete and not short:
        raise UserError("missing-data", f"{path} has no examples. Use GLUE's original file.", path=str(path))
    if len(short) > _SHORT * complete:
        raise UserError(
            "bad-data",
            f"{path} has {complete} complete lines, and {len(short)} without a text, an answer or one of {columns} "
            f"columns. The first is line {short[0]}. Use GLUE's original file.",
            path=str(path),
            short_lines=len(short),
            examples=complete,
            line=short[0],
        )
    if short:
        words = (
            f"{len(short)} of {len(short) + complete} lines are incomplete and skipped; the first is line {short[0]}"
        )
        fields = {"path": str(path), "short_lines": len(short), "examples": complete, "line": short[0]}
        warnings.warn(Notice("skipped", f"{path}: {words}.", **fields), stacklevel=2)


def _read_parquet(files: SetFiles, folder: Path, split: str) -> LabelledTexts:
    """Read the parquet files of a split."""
    import pyarrow
    import pyarrow.parquet

    paths = sorted(folder.glob(f"{split}-*.parquet"))
    if not paths:
        raise UserError(
            "missing-data",
            f"{folder} has no {split}-*.parquet. Download all files of {files.name} from {_HUB}.",
            path=str(folder),
            split=split,
        )
    try:
        table = pyarrow.concat_tables(pyarrow.parquet.read_table(check_regular_file(path)) for path in paths)
    except (OSError, pyarrow.ArrowException) as error:
        message = f"{paths[0]} cannot be read: {str(error).splitlines()[0]}."
        raise UserError("bad-file", message, path=str(paths[0]), cause=type(error).__name__) from error
    return _from_columns(files, {name: table.column(name).to_pylist() for name in table.column_names}, str(paths[0]))


def _from_columns(files: SetFiles, columns: Mapping[str, Sequence[Any]], source: str) -> LabelledTexts:
    """Return texts and answers from the Hub's columns."""
    if missing := [name for name in (*files.hub_columns, "label") if name not in columns]:
        raise UserError(
            "bad-data",
            f"{source} has no column {missing[0]!r}. Its columns: {', '.join(columns)}.",
            path=source,
            column=missing[0],
            columns=tuple(columns),
        )
    answers = [_hub_answer(files, label, _Location(source, "row", row)) for row, label in enumerate(columns["label"])]
    texts = list(zip(*(columns[name] for name in files.hub_columns), strict=True))
    for row, text in enumerate(texts):
        if wrong := [place for place, label in enumerate(text) if not isinstance(label, str)]:
            message = f"{source}, row {row}: texts must be strings, got {text!r:.80}. Use the hub's original file."
            column, value = files.hub_columns[wrong[0]], text[wrong[0]]
            raise UserError("bad-data", message, path=source, row=row, option=column, value=value)
    return LabelledTexts(texts, answers)


class _Location(NamedTuple):
    """The position of an answer: path, "line" or "row", and its number."""

    path: str
    unit: str
    number: int

    def __str__(self) -> str:
        return f"{self.path}, {self.unit} {self.number}"

    def wrong(self, option: str, rule: str, problem: str, value: object) -> UserError:
        """Return the error for an invalid answer."""
        message = f"{self}: {option} must be {rule}, got {problem}"
        return UserError("bad-data", message, path=self.path, option=option, value=value, **{self.unit: self.number})


def _hub_answer(files: SetFiles, label: Any, location: _Location) -> float:
    """Return the answer from the Hub's label, a class number. Raises UserError if it is invalid."""
    classes = range(len(files.labels))
    if files.labels and not (type(label) is int and label in classes):
        raise location.wrong("label", f"one of {', '.join(map(str, classes))}", f"{label!r:.60}.", label)
    return float(label) if files.labels else _answer(files, str(label), location)


def _answer(files: SetFiles, label: str, location: _Location) -> float:
    """Return a class number, or the value for regression. Raises UserError if the label is invalid."""
    if files.labels:
        if label in files.labels:
            return float(files.labels.index(label))
        rule = "one of " + ", ".join(files.labels)
    else:
        with suppress(ValueError):
            if math.isfinite(number := float(label)):
                return number
        rule = "a finite number"
    raise location.wrong(files.label, rule, f"{label!r}. Use GLUE's original file.", label)
