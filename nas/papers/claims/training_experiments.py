"""Claims tested by small trainings on digits-vit. Rows stay in the store, and stored trainings are not repeated."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain

from nas.analysis.compare import candidates, jobs_of
from nas.engine.scheduler import evaluate_all
from nas.papers.claims import Claim, Experiment, Values
from nas.papers.claims.row_experiments import BetterClaim, paired_differences
from nas.request.job import reload_task
from nas.request.resolve import parse_overrides
from nas.workers.resources import Resources
from results.records.row import Row
from search_spaces.architecture.architecture import Architecture
from tasks.base import Task

TASK = "digits-vit"
SEEDS = {"smoke": 4, "proxy": 8}
"""Preset -> number of seeds."""

_LOSS = "nats by which its validation loss is lower"
_WORSE_BY = 0.01
"""Loss of accuracy that counts as preserved."""


@dataclass(frozen=True, slots=True)
class ArchitecturePair:
    """Two architectures, in the syntax of `--arch`, and a claim about the second.

    Attributes:
        paper: Name of the paper.
        claim: The claim.
        first: Changes to the task's base architecture.
        second: Changes to the task's base architecture.
        metric: The metric that is compared.
        match_params: Whether the second's hidden features are changed to match the first's parameters.
    """

    paper: str
    claim: Claim
    first: str
    second: str
    metric: str = "loss"
    match_params: bool = True


def _claim(name: str, source: str, statement: str, quantity: str = _LOSS, low: float = 0.0) -> Claim:
    return Claim(name=f"{name}, {TASK}", source=source, statement=statement, quantity=quantity, low=low)


ARCHITECTURE_PAIRS = (
    ArchitecturePair(
        "dca",
        _claim("dca over resnet", "tables 5, 6", "DCA is better than residuals at equal parameters"),
        "",
        "topology=dca",
    ),
    ArchitecturePair(
        "ancre",
        _claim("ancre over resnet", "section 5", "ANCRe is better than residuals at equal parameters"),
        "",
        "topology=ancre",
    ),
    ArchitecturePair(
        "rmt",
        _claim("rmt over resnet", "section 4.2", "the RMT is better than the transformer at equal parameters"),
        "",
        "topology=rmt(keys=32)",
    ),
    ArchitecturePair(
        "rmt",
        _claim("keys 32 over 8", "section 4.4", "a larger residual stream is better, the rest being equal"),
        "topology=rmt(keys=8)",
        "topology=rmt(keys=32)",
        match_params=False,
    ),
    ArchitecturePair(
        "leaner",
        _claim(
            "2 x 8 over 4 x 4",
            "tables 2 to 6",
            "half the depth with twice the heads is as accurate with fewer parameters",
            f"gain in validation accuracy; {_WORSE_BY:g} lower counts as equal",
            -_WORSE_BY,
        ),
        "",
        "depth=2,heads=8",
        "accuracy",
        match_params=False,
    ),
)


class TrainingExperiment(Experiment):
    """One paper's claims, tested by trainings."""

    def __init__(self, paper: str, preset: str, storage: str, study: str | None, resources: Resources) -> None:
        self.paper, self.preset = paper, preset
        self.storage, self.study, self.resources = storage, study, resources
        self.pairs = tuple(pair for pair in ARCHITECTURE_PAIRS if pair.paper == paper)
        self.claims = tuple(pair.claim for pair in self.pairs)
        self.setting = f"{TASK} at {preset}, {SEEDS[preset]} seeds"

    def values(self) -> Values:
        """Train what the store lacks, and compare."""
        task = reload_task(TASK, None)
        pairs = [
            candidates(task, [pair.first, pair.second], None, "params" if pair.match_params else None, self.preset)
            for pair in self.pairs
        ]
        rows = self._rows(task, list(dict.fromkeys(chain.from_iterable(pairs))))
        return {
            pair.claim.name: paired_differences(
                rows, BetterClaim(claim=pair.claim, first=asdict(first), second=asdict(second), metric=pair.metric)
            )
            for pair, (first, second) in zip(self.pairs, pairs, strict=True)
        }

    def _rows(self, task: Task, architectures: Sequence[Architecture]) -> list[Row]:
        changes = parse_overrides(task, self.preset, "")
        with_changes = [(architecture, changes) for architecture in architectures]
        jobs = jobs_of(TASK, None, with_changes, range(SEEDS[self.preset]), self.preset, 1)
        return evaluate_all(jobs, self.storage, self.study, self.resources)
