"""Attempts of an evaluation whose process or node dies, and the Row of one that takes too long."""

from dataclasses import dataclass, replace
from pathlib import Path

from nas.evaluation.failures import TIMED_OUT
from nas.request.job import EvaluationJob, failed_row
from results.records.row import Row
from search_spaces.support.logger import LOGGER

PROCESS_DIED, NODE_DIED = "its process died", "its node died"
"""First words of the error of an evaluation that died too often."""

MAX_DEATHS = 3
"""Deaths of an evaluation's own process, without a new checkpoint in between, that fail it."""

MAX_NODES = 10
"""Deaths of its node that fail it: nodes die of other things, too."""


@dataclass(frozen=True, slots=True)
class Deaths:
    """Deaths of an evaluation's process or node since its last new checkpoint.

    Attributes:
        job: What is evaluated.
        checkpoints: Names of those that it had when it began or last died.
        most: So often fails it.
        number: How often.
    """

    job: EvaluationJob
    checkpoints: frozenset[str]
    most: int
    number: int = 0

    def another(self) -> "Deaths":
        """One death more; the count restarts at a new checkpoint."""
        checkpoints = _checkpoints(self.job)
        number = 1 if checkpoints - self.checkpoints else self.number + 1
        return replace(self, checkpoints=checkpoints, number=number)

    def row(self, cause: str) -> Row | None:
        """The failed Row of an evaluation that has died too often; none where it is to go on, which is said."""
        if self.number < self.most:
            LOGGER.info(f"{self.job.architecture}: {cause}. It goes on from its last checkpoint.")
            return None
        return failed_row(self.job, f"{cause}, {self.most} times without a new checkpoint in between")


def no_deaths(job: EvaluationJob, most: int = MAX_DEATHS) -> Deaths:
    """The count of an evaluation that begins: none."""
    return Deaths(job, _checkpoints(job), most)


def timeout_row(job: EvaluationJob, seconds: float) -> Row:
    """The failed Row of an evaluation that exceeded its time."""
    return failed_row(job, f"{TIMED_OUT}: it was not done after {seconds:g} s (--trial-timeout)")


def _checkpoints(job: EvaluationJob) -> frozenset[str]:
    """The names of the checkpoints that an evaluation has."""
    return frozenset(path.name for path in Path(job.folder).glob("*.ckpt")) if job.folder else frozenset()
