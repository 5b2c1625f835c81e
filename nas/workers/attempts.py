"""What becomes of an evaluation whose process dies or takes too long, wherever that process is."""

from dataclasses import dataclass, replace
from pathlib import Path

from nas.jobs import EvaluationJob, blank_row
from nas.progress import say
from nas.workers.resources import TIMED_OUT
from results.row import Row

MOST_DEATHS = 3
"""So often an evaluation's own process may die, with no new checkpoint in between, before that fails it."""


@dataclass(frozen=True, slots=True)
class Deaths:
    """How often the own process of an evaluation has died since its last new checkpoint.

    Attributes:
        job: What is evaluated.
        checkpoints: Names of those that it had when it began or last died.
        number: How often.
    """

    job: EvaluationJob
    checkpoints: frozenset[str]
    number: int = 0

    def another(self) -> "Deaths":
        """With one more, counted from a new checkpoint on where there is one."""
        checkpoints = _checkpoints(self.job)
        number = 1 if checkpoints - self.checkpoints else self.number + 1
        return replace(self, checkpoints=checkpoints, number=number)

    def row(self, cause: str) -> Row | None:
        """The failed Row of an evaluation that has died too often; none where it is to go on, which is said."""
        if self.number < MOST_DEATHS:
            say(f"{self.job.architecture}: {cause}. It goes on from its last checkpoint.")
            return None
        return blank_row(self.job, f"{cause}, {MOST_DEATHS} times without a new checkpoint in between")


def no_deaths(job: EvaluationJob) -> Deaths:
    """Of an evaluation that begins."""
    return Deaths(job, _checkpoints(job))


def timed_out(job: EvaluationJob, seconds: float) -> Row:
    """The failed Row of an evaluation that was ended because its time was up."""
    return blank_row(job, f"{TIMED_OUT}: it was not done after {seconds:g} s (--trial-timeout)")


def _checkpoints(job: EvaluationJob) -> frozenset[str]:
    """The names of the checkpoints that an evaluation has."""
    return frozenset(path.name for path in Path(job.folder).glob("*.ckpt")) if job.folder else frozenset()
