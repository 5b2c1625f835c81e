"""Environments in other processes: the same episodes, and their errors."""

from collections.abc import Iterator
from functools import partial

import pytest
import torch

from search_spaces.errors import UserError
from tasks.goal_rl.episodes import Collector, at_random
from tasks.goal_rl.task import GoalTask
from tasks.goal_rl.vectors import AsyncVectorEnv, Environments, SyncVectorEnv, environments
from tasks.load import load_task

pytest.importorskip("gymnasium_robotics")


@pytest.fixture(scope="module")
def task() -> GoalTask:
    found = load_task("goal:FetchReach-v4")
    assert isinstance(found, GoalTask)
    return found


@pytest.fixture(scope="module")
def apart(task: GoalTask) -> Iterator[Environments]:
    vector = environments(partial(task.environment, 6), 3, task.goal_at, processes=2)
    assert isinstance(vector, AsyncVectorEnv)
    yield vector
    vector.close()


def test_episodes_are_the_same_in_any_number_of_processes(task: GoalTask, apart: Environments) -> None:
    here = SyncVectorEnv(partial(task.environment, 6), 3, task.goal_at)
    mine, theirs = (Collector(vector, seed=5).roll(15, at_random(4, 0)) for vector in (here, apart))
    for name in ("states", "actions", "ended", "final"):
        assert torch.equal(getattr(mine, name), getattr(theirs, name))
    assert mine.ended.sum() == 6
    assert torch.equal(here.goals, apart.goals)
    here.close()


def test_some_may_begin_while_others_go_on(apart: Environments) -> None:
    apart.reset([True] * 3, [1, 2, 3])
    begun = apart.states
    apart.step(torch.ones(3, 4))
    gone_on = apart.states
    apart.reset([False, False, True], [1, 2, 3])
    assert torch.equal(apart.states[2], begun[2])
    assert torch.equal(apart.states[:2], gone_on[:2])


def test_an_error_there_is_raised_here(apart: Environments) -> None:
    apart.reset([True] * 3, [1, 2, 3])
    with pytest.raises(RuntimeError, match="Error: "):
        apart.step(torch.zeros(3, 9))


def test_one_process_is_this_one(task: GoalTask) -> None:
    vector = environments(partial(task.environment, 6), 1, task.goal_at, processes=0)
    assert isinstance(vector, SyncVectorEnv)
    vector.close()


def test_an_environment_that_says_nothing_of_success_is_a_mistake(
    task: GoalTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    vector = SyncVectorEnv(partial(task.environment, 6), 1, task.goal_at)
    monkeypatch.setattr("tasks.goal_rl.vectors._SUCCESS", ("arrived",))
    vector.reset([True], [0])
    with pytest.raises(UserError, match="info must say arrived"):
        vector.step(torch.zeros(1, 4))
    vector.close()
