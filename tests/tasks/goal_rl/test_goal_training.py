"""Interrupted runs resume."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch

from expect import warns
from search_spaces.architecture.architecture import Architecture
from tasks.base import FitResult
from tasks.goal_rl import training
from tasks.goal_rl.goal_tasks import GoalAntMaze
from tasks.goal_rl.recipe import GoalRecipe
from tasks.goal_rl.task import GoalTask
from tasks.run import CONTINUE, STOP, Decision, Run

pytest.importorskip("gymnasium_robotics")
sys.path.insert(0, str(Path(__file__).parent))
from reach_task import SHORT, ReachTask

TINY = Architecture(depth=1, width=8, hidden=8)
Report = tuple[int, dict[str, float]]


class Interruption(Exception):
    pass


def fit(
    recipe: GoalRecipe, folder: Path | None, stop: int = 10**9, kind: type[GoalTask] = ReachTask
) -> tuple[FitResult, list[Report]]:
    curve: list[Report] = []

    def report(step: int, metrics: Mapping[str, float]) -> Decision:
        curve.append((step, dict(metrics)))
        return STOP if step >= stop else CONTINUE

    run = Run(architecture=TINY, recipe=recipe, seed=0, folder=folder, report=report)
    return kind().fit(run), curve


@cache
def whole(recipe: GoalRecipe, kind: type[GoalTask] = ReachTask) -> tuple[FitResult, list[Report]]:
    """An uninterrupted run."""
    return fit(recipe, None, kind=kind)


def weights(result: FitResult) -> list[torch.Tensor]:
    assert result.network is not None
    return [parameter.detach() for parameter in result.network.parameters()]


def check_resume(recipe: GoalRecipe, rounds: Sequence[int], folder: Path, kind: type[GoalTask]) -> None:
    """Interrupt a run after each of these rounds and compare its end with an uninterrupted run."""
    collect = training.GoalTraining.collect
    for last in rounds:

        def die(self: training.GoalTraining, last: int = last) -> None:
            if self.round == last:
                raise Interruption
            collect(self)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(training.GoalTraining, "collect", die)
            with pytest.raises(Interruption):
                fit(recipe, folder, kind=kind)
        assert list(folder.glob("*.ckpt"))
    result, expected = fit(recipe, folder, kind=kind), whole(recipe, kind)
    assert result == expected
    assert all(map(torch.equal, weights(result[0]), weights(expected[0])))
    assert not list(folder.iterdir())


# Episodes of 10 steps in 2 environments; rounds end with or within episodes.
WITHIN = replace(SHORT, unroll=4, rounds=4, reports=2)
RECIPES = {"with episodes": SHORT, "within": WITHIN, "long": replace(WITHIN, unroll=3, rounds=6, reports=3)}


@pytest.mark.usefixtures("checkpoint_each_step")
@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_resume_gives_the_same_numbers(recipe: GoalRecipe, tmp_path: Path) -> None:
    check_resume(recipe, (1, 2, 3)[: recipe.rounds], tmp_path, ReachTask)


@pytest.mark.usefixtures("checkpoint_each_step")
def test_resume_late_in_a_run_gives_the_same_numbers(tmp_path: Path) -> None:
    check_resume(WITHIN, (3,), tmp_path, ReachTask)


@pytest.mark.usefixtures("checkpoint_each_step")
def test_resume_in_a_simulator_gives_the_same_numbers(tmp_path: Path) -> None:
    check_resume(replace(WITHIN, episodes=1, environments=1), (3,), tmp_path, GoalAntMaze)


def test_resume_of_a_stopped_run_gives_the_same_numbers(tmp_path: Path) -> None:
    expected, curve = whole(WITHIN)
    partial, partial_curve = fit(WITHIN, tmp_path, stop=4)
    assert (partial.steps, partial.metrics) == partial_curve[-1] == curve[0]
    assert partial.steps == 4
    assert partial.test == {}
    assert partial.extra_metrics == {"env_steps": 3 * 4 * 2}
    result = fit(WITHIN, tmp_path)
    assert result == (expected, curve)
    assert all(map(torch.equal, weights(result[0]), weights(expected)))
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("checkpoint_each_step")
def test_an_episode_longer_than_the_replay_is_abandoned(tmp_path: Path) -> None:
    recipe = replace(WITHIN, capacity=9, length=0)  # the environment's default is 20
    fit(recipe, tmp_path, stop=4)
    result, _ = fit(recipe, tmp_path)
    assert result.steps == 8
    assert result.extra_metrics["env_steps"] == 5 * 4 * 2


def test_a_damaged_checkpoint_is_not_resumed(tmp_path: Path) -> None:
    fit(WITHIN, tmp_path, stop=4)
    (checkpoint_file,) = tmp_path.iterdir()
    checkpoint_file.write_bytes(b"no checkpoint")
    with warns("bad-file", path=str(checkpoint_file)):
        assert fit(WITHIN, tmp_path) == whole(WITHIN)


def test_the_training_step_updates_the_agent() -> None:
    step = ReachTask().training_step(Run(architecture=TINY, recipe=SHORT, seed=0))
    agent = step.__self__.network  # type: ignore[attr-defined]
    before = [parameter.clone() for parameter in agent.parameters()]
    step()
    step()
    assert not any(torch.equal(old, new) for old, new in zip(before, agent.parameters(), strict=True))
