"""Several architectures side by side, each trained with several seeds."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nas.evaluate import Job
from nas.workers import Workers
from results.row import Row
from search_spaces.architecture import Architecture


def evaluate_all(jobs: Sequence[Job], workers: Workers, on_row: Callable[[Row], None]) -> list[Row]:
    """The Row of every job, in their order; `on_row` is told of each as it comes."""
    waiting, running = list(reversed(jobs)), 0
    rows: dict[Job, Row] = {}
    while waiting or running:
        while waiting and running < workers.capacity:
            workers.submit(waiting.pop())
            running += 1
        for job, row in workers.collect():
            rows[job] = row
            running -= 1
            on_row(row)
    return [rows[job] for job in jobs]


def summary(architecture: Architecture, rows: Sequence[Row], metrics: Sequence[str]) -> Mapping[str, Any]:
    """One architecture's mean of each metric over the seeds that were completed, and its standard error.

    The error is of the mean over seeds, and None with one seed; how much a single measurement is off is not in it.
    """
    own = [row.columns() for row in rows if row.architecture == architecture and row.status == "complete"]
    found: dict[str, Any] = {"seeds": len(own)}
    for metric in metrics:
        values = [columns[metric] for columns in own if metric in columns]
        found[metric] = statistics.fmean(values) if values else None
        found[f"{metric}_se"] = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None
    return found
