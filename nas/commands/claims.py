"""`nas reproduce claims`: what papers claim, and what came out of small experiments here."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from typing import Any


def records(
    paper: str | None, preset: str | None, storage: str, study: str | None, workers: int | str | None
) -> list[dict[str, Any]]:
    """A record a claim: without a preset of what takes no training, with one of what it trains.

    Raises:
        UserError: An unknown preset, or a store or rows that cannot be used.
    """
    from nas.claims.experiments import trained, untrained
    from nas.progress import say
    from nas.workers.resources import resources_of

    experiments = untrained() if preset is None else trained(preset, storage, study, resources_of(workers, 1))
    found = []
    with _one_thread():
        for experiment in experiments:
            if paper in (None, experiment.paper):
                say(f"{experiment.paper}: {experiment.setting}")
                found += [_record(experiment.paper, experiment.setting, finding) for finding in experiment.findings()]
    return sorted(found, key=lambda record: str(record["paper"]))


@contextmanager
def _one_thread() -> Iterator[None]:
    """What is measured is small: a second thread costs more than it does."""
    import torch

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
    """Print a line a claim, and how many came out how."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    from nas import report

    shown = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), collapse_padding=True)
    for heading in ("paper", "source", "statement", "measured", "claimed", "mean", "interval", "verdict"):
        shown.add_column(heading, overflow="fold", no_wrap=heading in ("paper", "mean"))
    for record in records:
        cells = (
            record["paper"],
            record["source"],
            record["statement"],
            f"{record['quantity']} ({record['setting']})",
            _range(record["from"], record["to"]),
            f"{record['mean']:.3g}",
            "one draw" if record["low"] is None else f"{record['low']:.3g} .. {record['high']:.3g}",
            record["verdict"],
        )
        shown.add_row(*map(escape, cells))
    console = report.screen()
    console.print(shown)
    for verdict in ("agrees", "contradicts", "not distinguishable"):
        console.print(f"{sum(record['verdict'] == verdict for record in records)} {verdict}", highlight=False)


def _range(low: float | None, high: float | None) -> str:
    if high is None:
        return f"over {low:.3g}"
    return f"under {high:.3g}" if not low else f"{low:.3g} .. {high:.3g}"
