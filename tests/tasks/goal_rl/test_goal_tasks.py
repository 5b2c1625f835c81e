"""Every installed goal task in its simulator."""

from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import PackageNotFoundError

import pytest

from nas.counting import count
from nas.evaluation import evaluate
from nas.jobs import EvaluationJob
from search_spaces.architecture import Architecture
from search_spaces.errors import UserError
from tasks.base import Task
from tasks.goal_rl.recipe import PAPER, GoalRecipe, smoke
from tasks.goal_rl.task import GoalTask
from tasks.load import load_task, task_class
from tasks.registry import TASKS
from tasks.run import Run
from tasks.testing import CONTRACT

pytest.importorskip("gymnasium_robotics")

NAMES = [name for name in TASKS.names() if name.startswith("goal-")]
TINY = Architecture(depth=1, width=8, hidden=8)


def task(name: str) -> GoalTask:
    found = load_task(name)
    assert isinstance(found, GoalTask)
    return found


@pytest.mark.parametrize("check", CONTRACT, ids=lambda check: check.__name__)
def test_a_goal_task_keeps_its_contract(check: Callable[[Task, Architecture], None]) -> None:
    check(task("goal-point-maze"), TINY)


@pytest.mark.parametrize("name", [*NAMES, "goal:FetchReach-v4"])
def test_a_task_steps_updates_and_is_measured(name: str) -> None:
    one = task(name)
    fitted = one.fit(Run(architecture=TINY, recipe=one.presets["smoke"], seed=0))
    recipe = one.presets["smoke"]
    assert fitted.steps == recipe.rounds * recipe.updates
    assert fitted.measures["env_steps"] == 30 * 2 * (recipe.rounds + recipe.prefill)
    assert {"env_steps_per_second", "updates_per_second"} <= set(fitted.speeds)
    assert 0 <= fitted.metrics["time_at_goal"] <= 30
    assert count(one, TINY).params == sum(p.numel() for p in one.build(TINY).parameters())


def test_a_row_has_the_share_of_goals_the_steps_and_both_speeds() -> None:
    row = evaluate(EvaluationJob(task="goal-point-maze", architecture=TINY, preset="smoke", seed=0))
    assert row.status == "complete"
    columns = row.columns()
    assert columns["env_steps"] == 180
    assert columns["steps"] == 8
    assert columns["speed_env_steps_per_second"] > 0
    assert columns["speed_updates_per_second"] > 0


def test_random_actions_and_the_untrained_agent_are_the_baselines() -> None:
    baselines = task("goal-point-maze").baselines(smoke())
    assert set(baselines) == {"random actions", "untrained agent"}
    for columns in baselines.values():
        assert set(columns) >= {"time_at_goal", "success_any", "test_time_at_goal", "test_success_any"}


@pytest.mark.slow
def test_proxy_learns_to_reach_goals_and_to_stay_there() -> None:
    one = task("goal-point-maze")
    by_chance = max(columns["time_at_goal"] for columns in one.baselines(one.presets["proxy"]).values())
    fitted = one.fit(Run(architecture=replace(one.base, depth=1), recipe=one.presets["proxy"], seed=0))
    assert fitted.metrics["time_at_goal"] > 5 * by_chance
    assert fitted.metrics["success_any"] > 0.8


def test_the_papers_preset_is_the_published_one() -> None:
    steps = (PAPER.prefill + PAPER.rounds) * PAPER.unroll * PAPER.environments
    assert steps == pytest.approx(98.9e6, rel=0.01)
    assert PAPER.rounds * PAPER.updates == 2_480_000
    assert PAPER.goals_of_others == 0
    for name in NAMES:
        kind = task_class(name)
        assert kind.presets["paper"] == PAPER
        assert kind.bases["paper"] == Architecture(depth=4, width=256, hidden=256)


def test_goals_of_others_is_a_share() -> None:
    with pytest.raises(UserError, match=r"goals_of_others must be at least 0 and at most 1, got 1\.5"):
        GoalRecipe(unroll=5, rounds=1, updates=1, goals_of_others=1.5)


@pytest.mark.parametrize("name", ["unroll", "length"])
def test_what_is_kept_is_more_than_an_episode_and_than_a_round(name: str) -> None:
    with pytest.raises(ValueError, match=f"capacity must be more than {name}, got 60 and 60. Set a larger capacity"):
        replace(smoke(), capacity=60, **{name: 60})  # type: ignore[arg-type]


def test_the_data_is_what_registers_an_environment_of_the_packages_that_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def there(package: str) -> str:
        if package == "gymnasium-robotics":
            raise PackageNotFoundError(package)
        return versions.get(package, "1")

    versions = {"mujoco": "3"}
    whole = load_task("goal:FetchReach-v4").fingerprint(smoke())
    monkeypatch.setattr("tasks.goal_rl.task.version", there)
    without = load_task("goal:FetchReach-v4").fingerprint(smoke())
    monkeypatch.setattr("tasks.goal_rl.catalog.registered_by", lambda environment: ["hills"])
    hills = load_task("goal:FetchReach-v4").fingerprint(smoke())
    versions["hills"] = "2"
    assert len({whole, without, hills, load_task("goal:FetchReach-v4").fingerprint(smoke())}) == 4


def test_reports_are_spread_over_the_rounds() -> None:
    recipe = replace(smoke(), rounds=20, reports=5)
    assert recipe.report_rounds() == {4, 8, 12, 16}
