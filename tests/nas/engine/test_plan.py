"""The next job of a search, also while another coordinator works on the same study."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
import pytest

from nas.engine.plan import SearchPlan
from nas.engine.scheduler import WAIT
from nas.request.job import EvaluationJob, resolve_job
from nas.request.search_request import SearchRequest, build_request
from nas.samplers.budget_sampler import BudgetSampler
from nas.samplers.rungs import Rungs
from nas.store.leases import Leases, NoLeases
from nas.store.optuna_study import first_reevaluation, open_storage, open_study
from nas.store.store import Store
from results.records.row import Row
from toy_searches import TOYS


@pytest.fixture(scope="module")
def search_request() -> SearchRequest:
    return build_request(
        f"{TOYS}:Toy", "joint", "", ("topology=resnet,dca",), "params<=3k", "accuracy,flops",
        preset="smoke", settings="", seed=0, sampler="random", data=None,
    )  # fmt: skip


def plan_of(search_request: SearchRequest, url: str, leases: Leases, trials: int, **options: Any) -> SearchPlan:
    sampler = BudgetSampler(search_request.candidates, search_request.config.sampler)
    study = open_study(open_storage(url), "s", search_request.config, sampler)
    return SearchPlan(study, Store(url, make=True), search_request, leases, sampler, trials, **options)


def finish(plan: SearchPlan, job: Any, accuracy: float = 0.5) -> Row:
    """End a trial with a complete Row and a saved network."""
    assert isinstance(job, EvaluationJob)
    row = replace(resolve_job(job).row, status="complete", error=None, metrics={"accuracy": accuracy, "loss": 1.0})
    row = replace(row, costs=replace(row.costs, flops=7))
    plan.store.network(row.identity()).mkdir(parents=True)
    assert job.number is not None
    plan.store.add(row, "s", job.number)
    plan.on_end(job, row)
    return row


class FinishesFirst(Leases):
    """Leases under which another coordinator finishes trial 0 just before it is acquired here."""

    def __init__(self, study: optuna.Study) -> None:
        self.study = study
        self.releases: list[str] = []

    def acquire(self, name: str) -> bool:
        if name == "trial 0 of s" and not self.study.trials[0].state.is_finished():
            self.study.tell(0, [0.5, 1.0])
        return True

    def release(self, name: str) -> None:
        self.releases.append(name)


def url_in(folder: Any) -> str:
    return f"sqlite:///{folder}/studies.db"


def test_unfinished_trial_is_adopted_with_its_candidate(search_request: SearchRequest, tmp_path: Any) -> None:
    first = plan_of(search_request, url_in(tmp_path), NoLeases(), 2).next()
    again = plan_of(search_request, url_in(tmp_path), NoLeases(), 2).next()
    assert first not in (None, WAIT)
    assert again == first


def test_trial_of_another_coordinator_does_not_start_again(search_request: SearchRequest, tmp_path: Any) -> None:
    plan_of(search_request, url_in(tmp_path), NoLeases(), 1).next()
    mine = plan_of(search_request, url_in(tmp_path), NoLeases(), 1)
    mine.leases = leases = FinishesFirst(optuna.load_study(study_name="s", storage=open_storage(url_in(tmp_path))))
    assert mine.next() is WAIT, "it may not be the last word: asked again, there is nothing"
    assert mine.next() is None
    assert leases.releases == ["trial 0 of s"]


def test_remains_of_a_complete_row_are_removed_after_a_crash(search_request: SearchRequest, tmp_path: Any) -> None:
    plan = plan_of(search_request, url_in(tmp_path), NoLeases(), 1)
    job = plan.next()
    assert isinstance(job, EvaluationJob)
    row = replace(resolve_job(job).row, status="complete", error=None, metrics={"accuracy": 0.5, "loss": 1.0})
    plan.store.work_folder(row.identity()).mkdir(parents=True)
    plan.store.add(row, "s", job.number)
    again = plan_of(search_request, url_in(tmp_path), NoLeases(), 1)
    assert again.next() is None
    assert not plan.store.work_folder(row.identity()).exists()
    assert again.study.trials[0].state.is_finished()


class FirstTrialElsewhere(Leases):
    """Leases of which another coordinator holds that of the first trial."""

    def acquire(self, name: str) -> bool:
        return name != "trial 0 of s"

    def release(self, name: str) -> None:
        """Do nothing."""


def test_network_beaten_by_another_coordinator_is_removed_at_the_end(
    search_request: SearchRequest, tmp_path: Any
) -> None:
    mine = plan_of(search_request, url_in(tmp_path), NoLeases(), 2)
    first = mine.next()
    theirs = plan_of(search_request, url_in(tmp_path), FirstTrialElsewhere(), 2)
    finish(theirs, theirs.next(), 0.9)
    row = finish(mine, first, 0.5)
    networks = tmp_path / "networks"
    assert len(list(networks.iterdir())) == 2
    assert mine.next() is None
    assert [network.name for network in networks.iterdir()] != [row.identity()]
    assert len(list(networks.iterdir())) == 1


def test_rows_without_a_network_cost_no_query(
    search_request: SearchRequest, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(search_request, url_in(tmp_path), NoLeases(), 2)
    first, second = plan.next(), plan.next()
    row = finish(plan, first, 0.5)
    shutil.rmtree(tmp_path / "networks" / row.identity())
    monkeypatch.setattr(Store, "studies_with", lambda *_: pytest.fail("a query for each row of the study"))
    finish(plan, second, 0.9)
    assert plan.next() is None


def test_paused_training_removes_no_network(search_request: SearchRequest, tmp_path: Path) -> None:
    plan = plan_of(search_request, f"sqlite:///{tmp_path}/studies.db", NoLeases(), 2)
    job = plan.next()
    assert isinstance(job, EvaluationJob)
    row = replace(resolve_job(job).row, status="pruned", error=None)
    network = plan.store.network(row.identity())
    network.mkdir(parents=True)  # another coordinator has finished it
    plan.store.add(row, "s", job.number)
    plan.on_end(job, row)
    assert network.exists()


def test_beaten_network_is_kept_for_another_study(search_request: SearchRequest, tmp_path: Path) -> None:
    plan = plan_of(search_request, url_in(tmp_path), NoLeases(), 3)
    rows = []
    for accuracy in (0.3, 0.5):
        job = plan.next()
        assert isinstance(job, EvaluationJob)
        rows.append(resolve_job(job).row)
        plan.store.add(rows[-1], "other", None) if accuracy == 0.3 else None
        finish(plan, job, accuracy)
    finish(plan, plan.next(), 0.9)
    existence = {row.identity(): plan.store.network(row.identity()).exists() for row in rows}
    assert existence == {rows[0].identity(): True, rows[1].identity(): False}


def test_lease_is_released_when_a_trial_ends(search_request: SearchRequest, tmp_path: Path) -> None:
    plan = plan_of(search_request, url_in(tmp_path), NoLeases(), 1)
    plan.leases = leases = FinishesFirst(plan.study)
    leases.acquire = lambda name: True  # type: ignore[method-assign]
    finish(plan, plan.next())
    assert leases.releases == ["trial 0 of s"]


def test_longer_study_searches_before_it_reevaluates(search_request: SearchRequest, tmp_path: Path) -> None:
    plan = plan_of(search_request, url_in(tmp_path), NoLeases(), 4, reevals=1)
    while isinstance(job := plan.next(), EvaluationJob):
        finish(plan, job)
    assert first_reevaluation(plan.study) == 3
    longer_plan = plan_of(search_request, url_in(tmp_path), NoLeases(), 9, reevals=2)
    numbers = []
    while isinstance(job := longer_plan.next(), EvaluationJob):
        numbers.append((job.number, job.seed))
        finish(longer_plan, job)
    assert [number for number, seed in numbers if seed != 0] == [7, 8]
    assert first_reevaluation(longer_plan.study) == 7


def test_search_continues_without_reevaluations(search_request: SearchRequest, tmp_path: Path) -> None:
    plan = plan_of(search_request, url_in(tmp_path), NoLeases(), 6, reevals=3)
    for _ in range(4):
        finish(plan, plan.next())
    assert first_reevaluation(plan.study) == 3
    plan.sampler.can_reevaluate = lambda study: False  # type: ignore[method-assign]
    job = plan.next()
    assert isinstance(job, EvaluationJob)
    assert first_reevaluation(plan.study) is None


def test_paused_trainings_resume_before_reevaluations(search_request: SearchRequest, tmp_path: Path) -> None:
    plan = plan_of(search_request, url_in(tmp_path), NoLeases(), 3, reevals=1, rungs=Rungs(1))
    searching_flags = []
    plan.sampler.promote = lambda study, *, searching: searching_flags.append(searching)  # type: ignore[method-assign,func-returns-value]
    while isinstance(job := plan.next(), EvaluationJob):
        finish(plan, job)
    assert searching_flags == [True, True, False, False]


def test_parallel_trials_reevaluate_running_ones_with_other_seeds(tmp_path: Path) -> None:
    small_request = build_request(
        f"{TOYS}:Toy", "depth-heads", "depth=1,heads=1", ("depth=1,2", "heads=1"), "", "accuracy,flops",
        preset="smoke", settings="", seed=0, sampler="random", data=None,
    )  # fmt: skip
    plan = plan_of(small_request, url_in(tmp_path), NoLeases(), 8, reevals=4)
    running, jobs = list[EvaluationJob](), list[EvaluationJob]()
    while len(jobs) < 8:
        while len(running) < 3 and isinstance(job := plan.next(), EvaluationJob):
            running.append(job)
        jobs.append(running.pop(0))
        finish(plan, jobs[-1])
    assert plan.next() is None
    assert len({(job.architecture, job.seed) for job in jobs}) == 8
    assert len({job.architecture for job in jobs}) == 2
    assert first_reevaluation(plan.study) is not None
