"""The checks of all recipes before the first training."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from nas.engine.scheduler import evaluate_all
from nas.request import job
from nas.request.job import EvaluationJob
from nas.workers.resources import Resources
from toy_searches import TOYS
from toy_tasks import Toy


class Enough(Exception):
    """Ends an evaluation before its training."""


def test_recipes_are_checked_in_the_order_of_jobs_under_a_status_line(
    in_tmp_path: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_lines, checked = list[str](), list[float]()

    @contextmanager
    def show(message: str) -> Iterator[None]:
        open_lines.append(message)
        yield
        open_lines.pop()

    def check(task: Toy, recipe: object) -> None:
        assert open_lines == ["reading the data of toy ..."]
        checked.append(recipe.penalty)  # type: ignore[attr-defined]

    def check_data(task: Toy, recipe: object) -> None:
        check(task, recipe)
        raise Enough

    monkeypatch.setattr(job, "status_if_slow", show)
    kind = type(job.task_of(f"{TOYS}:Toy", None))
    monkeypatch.setattr(kind, "check_recipe", check)
    monkeypatch.setattr(kind, "check_data", check_data)
    penalties = [0.5, 0.25, 0.125, 0.5, 0.75]
    jobs = [
        EvaluationJob(task=f"{TOYS}:Toy", architecture=Toy.base, preset="smoke", settings=(("penalty", penalty),))
        for penalty in penalties
    ]
    with pytest.raises(Enough):
        evaluate_all(jobs, "sqlite:///study.db", None, Resources(workers=1))
    assert checked == [0.5, 0.25, 0.125, 0.75, 0.5]
