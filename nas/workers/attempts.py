"""Attempts of an evaluation whose process or node dies, and the Row of one that exceeds its time."""

from dataclasses import dataclass, replace
from pathlib import Path

from nas.evaluation.failures import TIMED_OUT
from nas.request.job import EvaluationJob, failed_row
from results.records.row import Row
from search_spaces.support.logger import LOGGER

PROCESS_DIED, NODE_DIED = "its process died", "its node died"
"""Prefixes of the error of an evaluation that died too often."""

MAX_DEATHS = 3
"""An evaluation fails after so many deaths of its own process without a new checkpoint in between."""

MAX_NODES = 10
"""The same for deaths of its node, which may have other causes."""


@dataclass(frozen=True, slots=True)
class Deaths:
    """Deaths of an evaluation's process or node since its last new checkpoint.

    Attributes:
        job: Its job.
        checkpoints: Names of its checkpoints when it started or last died.
        max_deaths: Number of deaths that fails it.
        number: Number of deaths so far.
    """

    job: EvaluationJob
    checkpoints: frozenset[str]
    max_deaths: int
    number: int = 0

    def with_death(self) -> "Deaths":
        """Add a death; the count restarts at a new checkpoint."""
        checkpoints = _checkpoints(self.job)
        number = 1 if checkpoints - self.checkpoints else self.number + 1
        return replace(self, checkpoints=checkpoints, number=number)

    def row(self, cause: str) -> Row | None:
        """Return the failed Row of an evaluation that died too often; else None, after a message."""
        if self.number < self.max_deaths:
            LOGGER.warning(f"{self.job.architecture}: {cause}. It resumes from its last checkpoint.")
            return None
        return failed_row(self.job, f"{cause}, {self.max_deaths} times without a new checkpoint in between")


def new_death_count(job: EvaluationJob, max_deaths: int = MAX_DEATHS) -> Deaths:
    """Return the count at the start of an evaluation: no deaths."""
    return Deaths(job, _checkpoints(job), max_deaths)


def timeout_row(job: EvaluationJob, seconds: float) -> Row:
    """Return the failed Row of an evaluation that exceeded its time."""
    return failed_row(job, f"{TIMED_OUT}: not finished after {seconds:g} s (--trial-timeout)")


def _checkpoints(job: EvaluationJob) -> frozenset[str]:
    """Return the names of an evaluation's checkpoints."""
    return frozenset(path.name for path in Path(job.folder).glob("*.ckpt")) if job.folder else frozenset()
