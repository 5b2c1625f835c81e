"""Readings: how rows of printed tables are interpreted as networks, one CSV file for each paper.

A row may have several readings. The label of a reading is

- "stated": the paper, its official code or the named library gives the configuration, independent of the count.
- "fitted": something was chosen so that the count matches. It is a regression test, and no evidence of what the authors
  ran.
- "differs": the count does not match the printed one.
- "nominal": the printed number is the name of a size, and is not compared.
- "beside": the printed number was measured on a device; a count of something else is shown with it (`costs` only).
"""

import csv
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from functools import cache
from importlib.resources import files
from typing import Literal, get_args

from results.records import published

Label = Literal["stated", "fitted", "differs", "nominal", "beside"]
LABELS: tuple[Label, ...] = get_args(Label)
RowName = tuple[str, str, str]
"""Key of a printed row within its paper: table, model, data."""

_MODES = {"nearest": ROUND_HALF_UP, "down": ROUND_DOWN}


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperConfig:
    """One interpretation of a printed row as a network.

    Attributes:
        table: Number of the table, or of the section with the sentence; `table`, `model` and `data` name the printed
            row.
        model: As in that row.
        data: As in that row.
        label: Kind of the reading.
        network: A task, or another name that `nas.papers.configs.paper_networks` can build.
        preset: The task's preset with the base architecture; "" for the task's own.
        architecture: Changes to the base architecture, or the arguments of a timm constructor.
        formula: Additional parameters in closed form over the architecture's sizes, for parts that are not built here;
            negative for parts that the paper leaves out; "" for none.
        counts: "all" parameters, or only "matrices" (two dimensions).
        rounding: How the paper rounds its last digit: "nearest" or "down".
        params: Parameters of the network, its formula included.
        rationale: One line with the reason for this reading.
    """

    table: str
    model: str
    data: str
    label: Label
    network: str
    preset: str
    architecture: str
    formula: str
    counts: Literal["all", "matrices"]
    rounding: Literal["nearest", "down"]
    params: int
    rationale: str

    @property
    def row(self) -> RowName:
        """Key of the printed row."""
        return self.table, self.model, self.data


def row_of(line: published.Line) -> RowName:
    """Return the key of a printed row."""
    return line["table"], line["model"], line["data"]


@cache
def paper_configs(paper: str) -> tuple[PaperConfig, ...]:
    """Return all readings of a paper in the order of its rows. Raises UserError for a paper without printed tables."""
    order = [row_of(line) for line in published.lines_of(paper)]
    text = files("nas.papers.configs").joinpath(f"{paper}.csv").read_text(encoding="utf-8")
    records = csv.DictReader(text.splitlines())
    entries = [PaperConfig(**record | {"params": int(record["params"])}) for record in records]  # type: ignore[arg-type]
    return tuple(sorted(entries, key=lambda reading: order.index(reading.row)))


def models_without_config(paper: str) -> list[str]:
    """Return the models with printed parameters that have no reading."""
    read = {reading.row for reading in paper_configs(paper)}
    lines = [line for line in published.lines_of(paper) if line["params_millions"]]
    return [f"table {line['table']} {line['model']} ({line['data']})" for line in lines if row_of(line) not in read]


def is_printed(params: int, millions: str, rounding: str) -> bool:
    """Return whether the paper's rounding prints this many parameters as `millions`."""
    return (Decimal(params) / 10**6).quantize(Decimal(millions), rounding=_MODES[rounding]) == Decimal(millions)


def is_label_true(label: Label, matches: bool) -> bool:
    """Return whether a reading's label is true, given whether its count matches; names of sizes always are."""
    return label in ("nominal", "beside") or matches != (label == "differs")
