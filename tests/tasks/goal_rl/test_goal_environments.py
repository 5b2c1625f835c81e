"""Goal environments match their docstrings; others are refused."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from expect import raises
from nas.evaluation.evaluate import evaluate
from nas.request.job import EvaluationJob
from search_spaces.architecture.architecture import Architecture
from search_spaces.support.errors import Kind
from tasks.goal_rl.goal_tasks import BIG_MAZE
from tasks.goal_rl.vectors import SyncVectorEnv
from tasks.load import load_task
from tasks.registry import TASKS

pytest.importorskip("gymnasium_robotics")
sys.path.insert(0, str(Path(__file__).parent))
import gymnasium
from reach_task import goal_task

NAMES = [name for name in TASKS.names() if name.startswith("goal-")]
TINY = Architecture(depth=1, width=8, hidden=8)


@pytest.mark.parametrize("name", NAMES)
def test_the_goal_slice_is_the_achieved_goal(name: str) -> None:
    task = goal_task(name)
    environment = task.environment(10)
    environments = SyncVectorEnv(lambda: environment, 1, task.goal_offset)
    environments.reset([True], [3])
    environments.step(torch.zeros(1, task.sizes.action))
    plain: Any = environment.unwrapped
    goals_by_kind = {"mujoco": lambda: plain.data.qpos[:3], "maze": lambda: plain.data.qpos[:2]}
    kind = "maze" if "maze" in name else "mujoco"
    expected = plain._get_obs()["achieved_goal"] if "arm" in name else goals_by_kind[kind]()
    torch.testing.assert_close(environments.states[0, task.goal], torch.tensor(expected, dtype=torch.float32))
    assert environments.states.shape == (1, task.sizes.state)
    environments.close()


def test_an_episode_depends_on_its_seed_and_ends_after_its_length() -> None:
    task = goal_task("goal-arm-push-hard")
    environments = SyncVectorEnv(lambda: task.environment(5), 2, task.goal_offset)
    environments.reset([True, True], [7, 8])
    states_at_start, goals = environments.states, environments.goals
    assert (goals[0] != goals[1]).any()
    ends = [environments.step(torch.full((2, 4), 0.5))[1].tolist() for _ in range(5)]
    assert ends == [[False, False]] * 4 + [[True, True]]
    environments.reset([True, True], [7, 8])
    assert torch.equal(environments.states, states_at_start)
    assert torch.equal(environments.goals, goals)
    assert (environments.states[:, 4] < 0.75).all()  # the cube on one side of the table
    assert (goals[:, 1] > 0.75).all()  # the goal on the other side
    environments.close()


def test_the_big_maze_matches_the_paper() -> None:
    cells = [cell for row in BIG_MAZE for cell in row]
    assert (cells.count("r"), cells.count("g"), len(BIG_MAZE)) == (1, 25, 8)
    environment: Any = goal_task("goal-ant-maze").environment(10)
    starts, goals = [], []
    for seed in range(20):
        observation, _ = environment.reset(seed=seed)
        starts.append(observation["achieved_goal"])
        goals.append(observation["desired_goal"])
    middle = environment.unwrapped.maze.cell_rowcol_to_xy([1, 1])
    assert all(abs(start - middle).max() <= 0.1 for start in starts)
    assert len({tuple(environment.unwrapped.maze.cell_xy_to_rowcol(goal)) for goal in goals}) > 8
    environment.close()


def test_humanoid_goals_are_1_to_5_metres_away_and_falling_ends_the_episode() -> None:
    task = goal_task("goal-humanoid")
    environments = SyncVectorEnv(lambda: task.environment(200), 4, task.goal_offset)
    environments.reset([True] * 4, [1, 2, 3, 4])
    far = environments.goals[:, :2].norm(dim=1)
    assert ((far >= 1) & (far <= 5)).all()
    assert (environments.goals[:, 2] == 1.25).all()
    over = torch.zeros(4, dtype=torch.bool)
    while not over.any():  # before Humanoid's own limit of 200 steps
        _, over = environments.step(torch.zeros(4, 17))
    assert ((environments.states[over, 2] < 1) | (environments.states[over, 2] > 2)).all()
    environments.close()


class Toy(gymnasium.Env[Any, Any]):
    """An environment that stands still; its spaces and rewards are arguments."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(self, keys: tuple[str, ...], action: Any, fails_at: int) -> None:
        box = gymnasium.spaces.Box(-1, 1, (2,))
        self.observation_space = gymnasium.spaces.Dict(dict.fromkeys(keys, box)) if keys else box
        self.action_space = action
        self.fails_at = fails_at
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.steps += 1
        if self.steps == self.fails_at:
            raise RuntimeError("the simulation became unstable")
        return self.observation_space.sample(), 0.0, False, False, {"success": False}


GOAL_KEYS = ("observation", "achieved_goal", "desired_goal")
BOX = gymnasium.spaces.Box(-1, 1, (2,))
TOYS = {
    "Blind-v0": {"keys": (), "action": BOX, "fails_at": 0},
    "Aimless-v0": {"keys": ("observation",), "action": BOX, "fails_at": 0},
    "Pushbutton-v0": {"keys": GOAL_KEYS, "action": gymnasium.spaces.Discrete(3), "fails_at": 0},
    "Boundless-v0": {"keys": GOAL_KEYS, "action": gymnasium.spaces.Box(-float("inf"), 1, (2,)), "fails_at": 0},
    "Fragile-v0": {"keys": GOAL_KEYS, "action": BOX, "fails_at": 7},
}


@pytest.fixture
def toys() -> Iterator[None]:
    for name, options in TOYS.items():
        gymnasium.register(name, entry_point=Toy, max_episode_steps=20, kwargs=options)
    yield
    for name in TOYS:
        del gymnasium.registry[name]


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize(
    ("name", "kind", "fields"),
    [
        ("FetchReech-v4", "unknown-name", {"value": "FetchReech-v4", "nearest": "FetchReach-v4"}),
        ("", "unknown-name", {"value": ""}),
        ("no such thing", "unknown-name", {"value": "no such thing"}),
        ("nowhere:Env-v0", "unknown-name", {"value": "nowhere:Env-v0"}),
        ("CartPole-v1", "unsupported", {"needs": "observations"}),
        ("Blind-v0", "unsupported", {"needs": "observations"}),
        ("Aimless-v0", "unsupported", {"needs": "observations"}),
        ("Pushbutton-v0", "unsupported", {"needs": "actions"}),
        ("Boundless-v0", "unsupported", {"needs": "actions"}),
    ],
)
def test_environments_without_goals_are_refused(name: str, kind: Kind, fields: dict[str, str]) -> None:
    with raises(kind, **fields) as error:
        load_task(f"goal:{name}").prepare()
    assert "FetchReach-v4" in error.value.fields["choices"]


@pytest.mark.usefixtures("toys")
def test_an_environment_that_raises_fails_its_trial() -> None:
    row = evaluate(EvaluationJob(task="goal:Fragile-v0", architecture=TINY, preset="smoke", seed=0))
    assert row.status == "failed"
    assert "RuntimeError" in str(row.error)
    assert "the simulation became unstable" in str(row.error)  # the environment's message


def test_error_names_the_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with raises("needs-extra", extra="rl"):
        load_task("goal-humanoid").prepare()
