"""How printed rows are read as networks: a CSV file a paper, a line a reading, and what such a network has.

A row may be read in more than one way. Which kind a reading is, its label says:

- "stated": paper, official code or the named library give the configuration, without a look at the count.
- "fitted": something in it was chosen because it gives what is printed. It holds the count in place, and says
  nothing of what the authors ran.
- "differs": the reading does not give what is printed.
- "nominal": what is printed is the name of a size, and no count to be met.
- "beside": what is printed was measured on a device; a count of something else stands beside it (`costs` alone).
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
"""What a printed row is known by within its paper: table, model, data."""

_MODES = {"nearest": ROUND_HALF_UP, "down": ROUND_DOWN}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One way to read a printed row as a network.

    Attributes:
        table: Number of the table, or of the section whose sentence has it; with `model` and `data` the row that is
            read.
        model: As in that row.
        data: As in that row.
        label: What kind of reading it is.
        network: A task, or what else `nas.papers.configs.paper_networks` can build.
        preset: Of the task, for its base architecture; "" for the task's own.
        architecture: Changes to the base architecture, or the arguments of a constructor of timm's.
        formula: Parameters besides those of that network, in closed form over the architecture's sizes: of a wiring
            that nothing here builds, or less than nothing for what is left out. "" for none.
        counts: "all" parameters, or only the "matrices" (those of two dimensions).
        rounding: How the paper makes its last digit: "nearest", or "down".
        params: What the network has, its formula included.
        reading: Why it is read so, in a line.
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
    reading: str

    @property
    def row(self) -> RowName:
        """What the printed row is known by."""
        return self.table, self.model, self.data


def row_of(line: published.Line) -> RowName:
    """What a printed row is known by."""
    return line["table"], line["model"], line["data"]


@cache
def readings(paper: str) -> tuple[Reading, ...]:
    """All readings of a paper's rows, in the rows' order. Raises UserError for a paper without printed tables."""
    order = [row_of(line) for line in published.lines_of(paper)]
    text = files("nas.papers.configs").joinpath(f"{paper}.csv").read_text(encoding="utf-8")
    records = csv.DictReader(text.splitlines())
    entries = [Reading(**record | {"params": int(record["params"])}) for record in records]  # type: ignore[arg-type]
    return tuple(sorted(entries, key=lambda reading: order.index(reading.row)))


def models_without_reading(paper: str) -> list[str]:
    """The models with printed parameters that no reading counts: nothing here builds them."""
    read = {reading.row for reading in readings(paper)}
    lines = [line for line in published.lines_of(paper) if line["params_millions"]]
    return [f"table {line['table']} {line['model']} ({line['data']})" for line in lines if row_of(line) not in read]


def is_printed(params: int, millions: str, rounding: str) -> bool:
    """Whether a paper that rounds so would print that many parameters as `millions`, with as many digits."""
    return (Decimal(params) / 10**6).quantize(Decimal(millions), rounding=_MODES[rounding]) == Decimal(millions)


def holds(label: Label, matches: bool) -> bool:
    """Whether a reading is what its label says, by whether it gives what is printed; a name is no count to be met."""
    return label in ("nominal", "beside") or matches != (label == "differs")
