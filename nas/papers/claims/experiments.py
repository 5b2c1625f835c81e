"""All experiments, by whether they train."""

from collections.abc import Iterator

from nas.papers.claims import Experiment
from nas.papers.claims.dilution import DCAInitialization, Dilution
from nas.papers.claims.heads import HeadConditioning
from nas.papers.claims.scaling import Scaling
from nas.papers.claims.shortcuts import Shortcuts
from nas.papers.claims.table_experiments import TABLE_EXPERIMENTS
from nas.papers.claims.training_experiments import ARCHITECTURE_PAIRS, SEEDS, TrainingExperiment
from nas.papers.claims.variance import Variance
from nas.workers.resources import Resources
from search_spaces.support.errors import unknown_name_error


def cheap_experiments() -> Iterator[Experiment]:
    """Yield the experiments that count, compute or read shipped rows: a minute and a half on one core."""
    yield from (DCAInitialization(), Dilution(), Shortcuts(), Scaling(), Variance(), HeadConditioning())
    yield from TABLE_EXPERIMENTS


def training_experiments(preset: str, storage: str, study: str | None, resources: Resources) -> Iterator[Experiment]:
    """Yield the experiments that train. Raises UserError for a preset without a number of seeds."""
    if preset not in SEEDS:
        raise unknown_name_error("preset", preset, list(SEEDS), of="claims")
    for paper in dict.fromkeys(pair.paper for pair in ARCHITECTURE_PAIRS):
        yield TrainingExperiment(paper, preset, storage, study, resources)
