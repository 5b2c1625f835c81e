"""All installed goal tasks in their simulators."""

import sys
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from expect import raises
from nas.costs.count import count
from nas.evaluation.evaluate import evaluate
from nas.request.job import EvaluationJob
from search_spaces.architecture.architecture import Architecture
from tasks.goal_rl.recipe import PAPER, GoalRecipe, smoke
from tasks.load import load_task, task_class
from tasks.registry import TASKS
from tasks.run import Run
from tasks.training.contract import check_task

pytest.importorskip("gymnasium_robotics")
sys.path.insert(0, str(Path(__file__).parent))
from reach_task import ReachTask, goal_task

NAMES = [name for name in TASKS.names() if name.startswith("goal-")]
TINY = Architecture(depth=1, width=8, hidden=8)


def test_a_goal_task_fulfils_the_contract() -> None:
    check_task(ReachTask(), TINY)


@pytest.mark.slow
def test_a_goal_task_in_a_simulator_fulfils_the_contract() -> None:
    check_task(goal_task("goal-point-maze"), TINY)


@pytest.mark.parametrize("name", [*NAMES, "goal:FetchReach-v4"])
def test_training_measures_a_task(name: str) -> None:
    task = goal_task(name)
    sizes = {"length": 10, "unroll": 10, "environments": 1, "episodes": 1, "reports": 1}
    recipe = replace(task.presets["smoke"], **sizes)
    result = task.fit(Run(architecture=TINY, recipe=recipe, seed=0))
    assert result.steps == recipe.rounds * recipe.updates
    assert result.extra_metrics["env_steps"] == 10 * (recipe.rounds + recipe.prefill)
    assert {"env_steps_per_second", "updates_per_second"} <= set(result.speeds)
    assert 0 <= result.metrics["time_at_goal"] <= 10
    assert count(task, TINY).params == sum(p.numel() for p in task.build(TINY).parameters())


def test_a_row_has_steps_and_speeds() -> None:
    row = evaluate(EvaluationJob(task="goal-ant-maze", architecture=TINY, preset="smoke", seed=0))
    assert row.status == "complete"
    columns = row.columns()
    assert columns["env_steps"] == 180
    assert columns["steps"] == 8
    assert columns["speed_env_steps_per_second"] > 0
    assert columns["speed_updates_per_second"] > 0


def test_random_actions_and_the_untrained_agent_are_the_baselines() -> None:
    baselines = ReachTask().baselines(ReachTask.presets["smoke"])
    assert set(baselines) == {"random actions", "untrained agent"}
    for columns in baselines.values():
        assert set(columns) >= {"time_at_goal", "success_any", "test_time_at_goal", "test_success_any"}


@pytest.mark.slow
def test_proxy_learns_to_reach_goals_and_to_stay_there() -> None:
    task = goal_task("goal-point-maze")
    by_chance = max(columns["time_at_goal"] for columns in task.baselines(task.presets["proxy"]).values())
    result = task.fit(Run(architecture=replace(task.base, depth=1), recipe=task.presets["proxy"], seed=0))
    assert result.metrics["time_at_goal"] > 5 * by_chance
    assert result.metrics["success_any"] > 0.8


def test_the_paper_preset_has_the_published_settings() -> None:
    steps = (PAPER.prefill + PAPER.rounds) * PAPER.unroll * PAPER.environments
    assert steps == pytest.approx(98.9e6, rel=0.01)
    assert PAPER.rounds * PAPER.updates == 2_480_000
    assert PAPER.goals_of_others == 0
    for name in NAMES:
        kind = task_class(name)
        assert kind.presets["paper"] == PAPER
        assert kind.bases["paper"] == Architecture(depth=4, width=256, hidden=256)


def test_impossible_settings_are_refused() -> None:
    with raises("out-of-range", option="goals_of_others", value=1.5):
        GoalRecipe(unroll=5, rounds=1, updates=1, goals_of_others=1.5)
    with raises("out-of-range", option="window", value=1, least=2):
        replace(smoke(), window=1)
    with raises("out-of-range", option="capacity", value=60, unroll=60):
        replace(smoke(), capacity=60, unroll=60)
    with raises("out-of-range", option="capacity", value=60, length=60):
        replace(smoke(), capacity=60, length=60)


def test_fingerprint_depends_on_the_packages_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    def there(package: str) -> str:
        if package == "gymnasium-robotics":
            raise PackageNotFoundError(package)
        return versions.get(package, "1")

    versions = {"mujoco": "3"}
    whole = load_task("goal:FetchReach-v4").fingerprint(smoke())
    monkeypatch.setattr("tasks.goal_rl.task.version", there)
    without = load_task("goal:FetchReach-v4").fingerprint(smoke())
    monkeypatch.setattr("tasks.goal_rl.goal_tasks.registering_packages", lambda environment: ["hills"])
    hills = load_task("goal:FetchReach-v4").fingerprint(smoke())
    versions["hills"] = "2"
    assert len({whole, without, hills, load_task("goal:FetchReach-v4").fingerprint(smoke())}) == 4


def test_reports_are_spread_over_the_rounds() -> None:
    recipe = replace(smoke(), rounds=20, reports=5)
    assert recipe.report_rounds() == {4, 8, 12, 16}
