"""`nas reproduce claims`: claims of papers, tested by small experiments."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from math import isfinite
from typing import Any

import torch

from nas.papers.claims.experiments import cheap_experiments, training_experiments
from nas.report import tables
from nas.workers.resources import Resources
from search_spaces.support.logger import LOGGER


def records(
    paper: str | None, preset: str | None, storage: str, study: str | None, workers: int | str | None
) -> list[dict[str, Any]]:
    """Return one record for each claim: without a preset those that need no training, with one those that train.

    Raises:
        UserError: An unknown preset, or a store or rows that cannot be used.
    """
    experiments = (
        cheap_experiments() if preset is None else training_experiments(preset, storage, study, Resources(workers))
    )
    claim_records = []
    with one_thread():
        for experiment in experiments:
            if paper in (None, experiment.paper):
                LOGGER.info(f"{experiment.paper}: {experiment.setting}")
                claim_records += [
                    _record(experiment.paper, experiment.setting, finding) for finding in experiment.findings()
                ]
    return sorted(claim_records, key=lambda record: str(record["paper"]))


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread inside the context: for such small networks a second one costs more than it saves."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _record(paper: str, setting: str, finding: Any) -> dict[str, Any]:
    claim = finding.claim
    return {
        "paper": paper,
        "source": claim.source,
        "claim": claim.name,
        "statement": claim.statement,
        "setting": setting,
        "quantity": claim.quantity,
        "from": claim.low if isfinite(claim.low) else None,
        "to": claim.high if isfinite(claim.high) else None,
        "mean": finding.mean,
        "low": finding.low,
        "high": finding.high,
        "seeds": len(finding.values),
        "verdict": finding.verdict,
    }


def print_table(records: list[dict[str, Any]]) -> None:
    """Print one line for each claim, grouped by experiment, then the number of each verdict."""
    console, headings = tables.make_console(), ("source", "claim", "claimed", "mean", "interval", "verdict")
    for (paper, setting), group in groupby(records, lambda record: (record["paper"], record["setting"])):
        lines = []
        for record in group:
            low, high = record["low"], record["high"]
            interval = "unknown" if low is None else f"{low:.3g} .. {high:.3g}"
            cells = (record["source"], record["claim"], _range(record["from"], record["to"]), f"{record['mean']:.3g}")
            lines.append((*cells, interval, record["verdict"]))
        tables.print_line(console, f"{paper}: {setting}")
        tables.print_texts(console, headings, lines, no_wrap_headings=("claimed", "mean", "interval"))
    for verdict in ("agrees", "contradicts", "not distinguishable"):
        console.print(f"{sum(record['verdict'] == verdict for record in records)} {verdict}", highlight=False)
    console.print("statements and measured values: --format csv", highlight=False)


def _range(low: float | None, high: float | None) -> str:
    if high is None:
        return f"over {low:.4g}"
    return f"under {high:.4g}" if low is None else f"{low:.4g} .. {high:.4g}"
