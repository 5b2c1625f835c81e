"""Progress of evaluations as they start and end."""

import logging
from collections.abc import Iterable, Sequence
from functools import partial
from types import TracebackType
from typing import Self, final

from nas.evaluation.heartbeat import read_heartbeat
from nas.request.job import EvaluationJob
from results.records.row import Row
from search_spaces.architecture.architecture import Architecture
from search_spaces.support.logger import LOGGER
from search_spaces.support.progress import Progress


@final
class EvaluationProgress:
    """A progress display of evaluations, as a context: call `begin` for each job and `add` for each Row.

    Args:
        title: What is evaluated.
        scores: The columns shown of each Row; None to show no Rows.
        identities: Identities of the stored Rows, so that a resumed training is not counted twice.
        total: Number of evaluations.
    """

    def __init__(self, title: str, scores: Sequence[str] | None, identities: Iterable[str], total: int) -> None:
        self._scores, self._identities, self._total = scores, set(identities), total
        self._progress = Progress(title, total, len(self._identities))

    def begin(self, job: EvaluationJob) -> None:
        """Show that an evaluation has started."""
        settings = "".join(f" {name}={value}" for name, value in job.settings)
        LOGGER.debug(f"start: {job.architecture} seed={job.seed} preset={job.preset}{settings}")
        new = float(job.identity not in self._identities)
        self._progress.begin(
            job.identity,
            f"{_label(job.architecture)} seed={job.seed}",
            partial(read_heartbeat, job.folder, job.max_steps),
            new,
        )

    def add(self, row: Row) -> None:
        """Show that an evaluation has ended, with its result."""
        identity, columns = row.identity(), row.columns()
        self._identities.add(identity)
        number = len(self._identities)
        scores = " ".join(f"{name} {columns[name]:.4g}" for name in self._scores or () if columns.get(name) is not None)
        was_under_way = self._progress.end(identity)
        # A Row that was stored before took no time.
        set_done = self._progress.set_done if was_under_way else self._progress.set_done_untimed
        set_done(number, f"{row.architecture.topology} {row.error or scores}")
        if self._scores is not None and (row.status == "failed" or not self._progress.is_drawn):
            state = "" if row.status == "complete" else f"{row.status}: "
            text = f"{number}/{self._total} {state}{row.architecture} seed={row.seed} {scores} {row.error or ''}"
            LOGGER.log(logging.WARNING if row.status == "failed" else logging.INFO, text.rstrip())
        if was_under_way:
            _log_details(row)
        else:
            LOGGER.debug(f"already stored: {row.architecture} seed={row.seed}")

    def __enter__(self) -> Self:
        self._progress.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.__exit__(kind, error, trace)


def _label(architecture: Architecture) -> str:
    """Return a label that starts with the topology, since a terminal may have room for no more."""
    record = architecture.record()
    return " ".join([str(record.pop("topology")), *(f"{name}={value}" for name, value in record.items() if value)])


def _log_details(row: Row) -> None:
    seconds = row.provenance.get("wall_s")
    took = f", {seconds:.1f} s" if isinstance(seconds, float) else ""
    without = ", ".join(row.costs.uncounted) or "none"
    LOGGER.debug(
        f"end: {row.architecture} seed={row.seed}: {row.status}, {row.steps} steps{took}; "
        f"operators without matrix work: {without}"
    )
