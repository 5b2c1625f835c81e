"""A run that was interrupted goes on where it can."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from search_spaces.architecture import Architecture
from tasks import checkpoint
from tasks.base import Fitted
from tasks.goal_rl import training
from tasks.goal_rl.recipe import GoalRecipe, smoke
from tasks.goal_rl.task import GoalTask
from tasks.load import load_task
from tasks.run import CONTINUE, STOP, Decision, Run

pytest.importorskip("gymnasium_robotics")

TINY = Architecture(depth=1, width=8, hidden=8)


def task(name: str) -> GoalTask:
    found = load_task(name)
    assert isinstance(found, GoalTask)
    return found


class Interrupted(Exception):
    pass


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Save a checkpoint after every round."""
    monkeypatch.setattr(checkpoint, "SECONDS", -1.0)
    monkeypatch.setattr(checkpoint, "_SHARE", 1e9)


Reported = tuple[int, dict[str, float]]


def fit(recipe: GoalRecipe, folder: Path | None, stop: int = 10**9) -> tuple[Fitted, list[Reported]]:
    curve: list[Reported] = []

    def report(step: int, metrics: Mapping[str, float]) -> Decision:
        curve.append((step, dict(metrics)))
        return STOP if step >= stop else CONTINUE

    run = Run(architecture=TINY, recipe=recipe, seed=0, folder=folder, report=report)
    return task("goal-point-maze").fit(run), curve


def weights(fitted: Fitted) -> list[torch.Tensor]:
    assert fitted.network is not None
    return [parameter.detach() for parameter in fitted.network.parameters()]


# Episodes of 30 steps, 2 environments: rounds that end with episodes, that end within them, and a replay that forgets.
WITHIN = replace(smoke(), unroll=12, rounds=4, reports=2)
RECIPES = {"with episodes": smoke(), "within": WITHIN, "long": replace(WITHIN, unroll=7, rounds=6, reports=3)}


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_a_run_that_was_interrupted_ends_with_the_same_numbers(
    recipe: GoalRecipe, rounds: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = fit(recipe, None)
    collect = training.GoalTraining.collect

    def die(self: training.GoalTraining) -> None:
        if self.round == min(rounds, recipe.rounds):
            raise Interrupted
        collect(self)

    with monkeypatch.context() as patch:
        patch.setattr(training.GoalTraining, "collect", die)
        with pytest.raises(Interrupted):
            fit(recipe, tmp_path)
    assert list(tmp_path.glob("*.ckpt"))
    resumed = fit(recipe, tmp_path)
    assert resumed == whole
    assert all(map(torch.equal, weights(resumed[0]), weights(whole[0])))
    assert not list(tmp_path.iterdir())


def test_a_stopped_run_goes_on_to_the_same_numbers(tmp_path: Path) -> None:
    whole, curve = fit(WITHIN, None)
    stopped, seen = fit(WITHIN, tmp_path, stop=8)
    assert (stopped.steps, stopped.metrics) == seen[-1] == curve[0]
    assert stopped.steps == 8
    assert stopped.test == {}
    assert stopped.measures == {"env_steps": 3 * 12 * 2}
    resumed = fit(WITHIN, tmp_path)
    assert resumed == (whole, curve)
    assert all(map(torch.equal, weights(resumed[0]), weights(whole)))
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("eager")
def test_an_episode_longer_than_what_is_kept_is_given_up(tmp_path: Path) -> None:
    recipe = replace(WITHIN, capacity=14, length=0)  # the environment's own is 300
    fit(recipe, tmp_path, stop=8)
    fitted, _ = fit(recipe, tmp_path)
    assert fitted.steps == 16
    assert fitted.measures["env_steps"] == 5 * 12 * 2


def test_a_broken_checkpoint_is_not_continued(tmp_path: Path) -> None:
    whole, _ = fit(WITHIN, None)
    fit(WITHIN, tmp_path, stop=8)
    for path in tmp_path.iterdir():
        path.write_bytes(b"no checkpoint")
    with pytest.warns(UserWarning, match="is set aside, .*: its bytes are not those that were written"):
        assert fit(WITHIN, tmp_path)[0] == whole


def test_the_training_step_updates_the_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    step = task("goal-point-maze").training_step(Run(architecture=TINY, recipe=smoke(), seed=0))
    agent = step.__self__.network  # type: ignore[attr-defined]
    before = [parameter.clone() for parameter in agent.parameters()]
    step()
    step()
    assert not any(torch.equal(one, other) for one, other in zip(before, agent.parameters(), strict=True))
