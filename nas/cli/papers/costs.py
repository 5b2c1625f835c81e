"""`nas reproduce flops | tokens | memory | time`: printed costs compared with counts here."""

from collections.abc import Mapping, Sequence
from typing import Any

from nas.papers.configs import LABELS, is_label_true
from nas.papers.configs.printed_costs import COSTS, PrintedCost
from nas.report import tables
from search_spaces.support.errors import UserError


def records(what: str, paper: str | None) -> list[dict[str, Any]]:
    """Return the records of one paper or of all. Raises UserError for a paper without this cost."""
    cost_records = [_record(cost) for cost in COSTS[what]()]
    selection = [record for record in cost_records if paper in (None, record["paper"])]
    if not selection:
        papers = tuple(dict.fromkeys(record["paper"] for record in cost_records))
        message = f"`nas reproduce {what}` does not cover --paper {paper}. Choose from: {', '.join(papers)}."
        raise UserError("unsupported", message, option="--paper", value=paper, choices=papers, what=what)
    return selection


def _record(cost: PrintedCost) -> dict[str, Any]:
    return {
        "paper": cost.paper,
        "table": cost.table,
        "model": cost.model,
        "printed": cost.printed,
        "digits": cost.resolution,
        "here": cost.count,
        "unit": cost.unit,
        "label": cost.label,
        "reading": cost.description,
        "matches": _matches(cost),
    }


def _matches(cost: PrintedCost) -> str | None:
    """Return whether the count matches; None if it counts something else than the paper measured."""
    if cost.label == "beside":
        return None
    return "yes" if cost.matches else "no"


def print_table(records: list[dict[str, Any]]) -> None:
    """Print one line for each cost, then the number of each label."""
    headings = ("paper", "table", "model", "printed", "here", "unit", "label", "reading")
    lines = []
    for record in records:
        numbers = {"printed": f"{record['printed']:.5g}", "here": f"{record['here']:.5g}"}
        lines.append([(record | numbers | {"label": shown_label(record)})[heading] for heading in headings])
    console = tables.make_console()
    tables.print_texts(console, headings, lines, no_wrap_headings=("printed", "here"))
    print_label_counts(records)


def shown_label(record: Mapping[str, Any]) -> str:
    """Return a record's label, or "BROKEN" if its count contradicts it."""
    return record["label"] if is_label_true(record["label"], record["matches"] == "yes") else "BROKEN"


def print_label_counts(records: Sequence[Mapping[str, Any]]) -> None:
    """Print the number of each label, one line each."""
    for label in LABELS:
        if number := sum(record["label"] == label for record in records):
            tables.make_console().print(f"{number} {label}", highlight=False)
