"""Claims by trainings: which networks, at which size, and which pairs are compared."""

from collections.abc import Sequence

import pytest

from nas.costs.count import budget_counts
from nas.papers.claims import training_experiments
from nas.papers.claims.training_experiments import ARCHITECTURE_PAIRS, SEEDS, TrainingExperiment
from nas.request.job import EvaluationJob
from nas.workers.resources import Resources
from results.records.row import Row
from tasks.vision.digits import DigitsViT
from toy_rows import a_row


@pytest.mark.parametrize("paper", ["ancre", "dca", "leaner", "rmt"])
def test_claim_compares_the_rows_of_its_two_networks(paper: str, monkeypatch: pytest.MonkeyPatch) -> None:
    all_jobs: list[EvaluationJob] = []
    order: list[object] = []

    def record_jobs(jobs: Sequence[EvaluationJob], *_: object) -> list[Row]:
        all_jobs.extend(jobs)
        order.extend(dict.fromkeys(job.architecture for job in jobs))
        return [
            a_row(
                architecture=job.architecture,
                seed=job.seed,
                directions={"loss": "min", "accuracy": "max"},
                metrics={"loss": 9.0 - order.index(job.architecture), "accuracy": 0.1 * order.index(job.architecture)},
            )
            for job in jobs
        ]

    monkeypatch.setattr(training_experiments, "evaluate_all", record_jobs)
    values = TrainingExperiment(paper, "smoke", "sqlite://", None, Resources(1)).values()
    assert {job.seed for job in all_jobs} == set(range(SEEDS["smoke"]))
    assert {job.preset for job in all_jobs} == {"smoke"}
    names = {pair.claim.name: pair for pair in ARCHITECTURE_PAIRS if pair.paper == paper}
    assert values.keys() == names.keys()
    if paper == "rmt":  # resnet, 32 keys at its size, 8 keys, 32 keys
        assert list(values.values()) == [[1.0] * 4, [1.0] * 4]
    else:
        (differences,) = values.values()
        assert differences == pytest.approx([0.1 if paper == "leaner" else 1.0] * 4)


def test_claims_at_equal_parameters_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    all_jobs: list[EvaluationJob] = []

    def record_jobs(jobs: Sequence[EvaluationJob], *_: object) -> list[Row]:
        all_jobs[:] = jobs
        return []

    monkeypatch.setattr(training_experiments, "evaluate_all", record_jobs)
    for pair in ARCHITECTURE_PAIRS:
        monkeypatch.setattr(
            training_experiments,
            "paired_differences",
            lambda rows, better, pair=pair: [float(better.metric == pair.metric)],
        )
        monkeypatch.setattr(training_experiments, "ARCHITECTURE_PAIRS", (pair,))
        experiment = TrainingExperiment(pair.paper, "smoke", "sqlite://", None, Resources(1))
        assert experiment.values() == {pair.claim.name: [1.0]}
        first, second = dict.fromkeys(job.architecture for job in all_jobs)
        params = [budget_counts(DigitsViT(), each)["params"] for each in (first, second)]
        assert abs(params[1] / params[0] - 1) < 0.005 or not pair.match_params
        assert ("equal parameters" in pair.claim.statement) is pair.match_params
        assert params[1] < params[0] or "fewer parameters" not in pair.claim.statement
