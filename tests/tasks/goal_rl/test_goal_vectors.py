"""Environments in other processes give the same episodes and raise their errors."""

import multiprocessing
import pickle
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any

import pytest
import torch

from expect import raises
from tasks.goal_rl import vectors
from tasks.goal_rl.episodes import Collector, random_policy
from tasks.goal_rl.task import GoalTask
from tasks.goal_rl.vectors import AsyncVectorEnv, Environments, SyncVectorEnv, make_environments
from tasks.load import load_task

gymnasium = pytest.importorskip("gymnasium")
pytest.importorskip("gymnasium_robotics")


@pytest.fixture(scope="module")
def task() -> GoalTask:
    task = load_task("goal:FetchReach-v4")
    assert isinstance(task, GoalTask)
    return task


@pytest.fixture(scope="module")
def apart(task: GoalTask) -> Iterator[Environments]:
    """Two forked processes, which start faster than spawned ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectors, "get_context", lambda method: multiprocessing.get_context("fork"))
        vector = make_environments(partial(task.environment, 6), 3, task.goal_offset, processes=2)
    assert isinstance(vector, AsyncVectorEnv)
    yield vector
    vector.close()


def test_a_task_can_be_sent_to_other_processes(task: GoalTask) -> None:
    there = pickle.loads(pickle.dumps(partial(task.environment, 6)))
    assert there.func.__self__.name == task.name
    with closing(there()) as environments:
        assert environments.spec.id == "FetchReach-v4"


@pytest.mark.slow
def test_episodes_of_spawned_processes_are_the_same(task: GoalTask) -> None:
    with closing(make_environments(partial(task.environment, 6), 3, task.goal_offset, processes=2)) as vector:
        compare(task, vector)


def test_episodes_do_not_depend_on_the_number_of_processes(task: GoalTask, apart: Environments) -> None:
    compare(task, apart)


def compare(task: GoalTask, apart: Environments) -> None:
    """Assert equal episodes in other processes and in this one."""
    here = SyncVectorEnv(partial(task.environment, 6), 3, task.goal_offset)
    expected, actual = (Collector(vector, seed=5).rollout(15, random_policy(4, 0)) for vector in (here, apart))
    for name in ("states", "actions", "dones", "final"):
        assert torch.equal(getattr(expected, name), getattr(actual, name))
    assert expected.dones.sum() == 6
    assert torch.equal(here.goals, apart.goals)
    here.close()


def test_some_episodes_restart_while_others_continue(apart: Environments) -> None:
    apart.reset([True] * 3, [1, 2, 3])
    states_before = apart.states
    apart.step(torch.ones(3, 4))
    gone_on = apart.states
    apart.reset([False, False, True], [1, 2, 3])
    assert torch.equal(apart.states[2], states_before[2])
    assert torch.equal(apart.states[:2], gone_on[:2])


def test_an_error_of_another_process_is_raised_here(apart: Environments) -> None:
    apart.reset([True] * 3, [1, 2, 3])
    with pytest.raises(RuntimeError, match="Error: "):  # the original class
        apart.step(torch.zeros(3, 9))


def test_a_single_environment_runs_in_this_process(task: GoalTask) -> None:
    vector = make_environments(partial(task.environment, 6), 1, task.goal_offset, processes=0)
    assert isinstance(vector, SyncVectorEnv)
    vector.close()


class Silent(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that does not report success."""

    def step(self, action: Any) -> Any:
        *parts, _ = super().step(action)
        return *parts, {"score": 1.0}


def test_refuses_an_environment_that_does_not_report_success(task: GoalTask) -> None:
    vector = SyncVectorEnv(lambda: Silent(task.environment(6)), 1, task.goal_offset)
    vector.reset([True], [0])
    with raises("unsupported", needs="success", choices=("success", "is_success"), value=("score", "_score")):
        vector.step(torch.zeros(1, 4))
    vector.close()
