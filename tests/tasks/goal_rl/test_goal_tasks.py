"""Every installed goal task in its simulator, and what may be asked for by id."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from nas.cost import count
from nas.evaluate import Job, evaluate
from search_spaces.architecture import Architecture
from search_spaces.mistake import Mistake
from tasks.base import TASKS, Task
from tasks.goal_rl import training
from tasks.goal_rl.catalog import BIG_MAZE
from tasks.goal_rl.recipe import PAPER, GoalRecipe, smoke
from tasks.goal_rl.task import GoalTask
from tasks.goal_rl.vectors import Together
from tasks.load import load_task, task_class
from tasks.testing import CONTRACT

gymnasium = pytest.importorskip("gymnasium")
pytest.importorskip("gymnasium_robotics")

NAMES = [name for name in TASKS.names() if name.startswith("goal-")]
TINY = Architecture(depth=1, width=8, hidden=8)


def ignore(step: int, metrics: Mapping[str, float]) -> None:
    pass


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
    fitted = one.fit(TINY, "smoke", 0, None, ignore)
    recipe = one.presets["smoke"]
    assert fitted.steps == recipe.rounds * recipe.updates
    assert fitted.validation["env_steps"] == 30 * 2 * (recipe.rounds + recipe.prefill)
    assert fitted.validation["goals_of_others"] == recipe.goals_of_others
    assert {"env_steps_per_second", "updates_per_second"} <= set(fitted.speeds)
    assert 0 <= fitted.validation["time_at_goal"] <= 30
    assert count(one, TINY).params == sum(p.numel() for p in one.build(TINY).parameters())


@pytest.mark.parametrize("name", NAMES)
def test_the_goal_slice_is_what_the_environment_calls_achieved(name: str) -> None:
    one = task(name)
    environment = one.environment(10)
    environments = Together(lambda: environment, 1, one.goal_at)
    environments.reset([True], [3])
    environments.step(torch.zeros(1, one.sizes.action))
    plain: Any = environment.unwrapped
    achieved = {"mujoco": lambda: plain.data.qpos[:3], "maze": lambda: plain.data.qpos[:2]}
    kind = "maze" if "maze" in name else "mujoco"
    expected = plain._get_obs()["achieved_goal"] if "arm" in name else achieved[kind]()
    torch.testing.assert_close(environments.states[0, one.goal], torch.tensor(expected, dtype=torch.float32))
    assert environments.states.shape == (1, one.sizes.state)
    environments.close()


def test_an_episode_is_a_function_of_its_seed_and_ends_after_its_length() -> None:
    one = task("goal-arm-push-hard")
    environments = Together(lambda: one.environment(5), 2, one.goal_at)
    environments.reset([True, True], [7, 8])
    begun, goals = environments.states, environments.goals
    assert (goals[0] != goals[1]).any()
    ends = [environments.step(torch.full((2, 4), 0.5))[1].tolist() for _ in range(5)]
    assert ends == [[False, False]] * 4 + [[True, True]]
    environments.reset([True, True], [7, 8])
    assert torch.equal(environments.states, begun)
    assert torch.equal(environments.goals, goals)
    assert (environments.states[:, 4] < 0.75).all()  # the cube on one side of the table
    assert (goals[:, 1] > 0.75).all()  # and the goal on the other
    environments.close()


def test_the_big_maze_is_the_papers() -> None:
    cells = [cell for row in BIG_MAZE for cell in row]
    assert (cells.count("r"), cells.count("g"), len(BIG_MAZE)) == (1, 25, 8)
    environment: Any = task("goal-ant-maze").environment(10)
    starts, goals = [], []
    for seed in range(20):
        observed, _ = environment.reset(seed=seed)
        starts.append(observed["achieved_goal"])
        goals.append(observed["desired_goal"])
    middle = environment.unwrapped.maze.cell_rowcol_to_xy([1, 1])
    assert all(abs(start - middle).max() <= 0.1 for start in starts)
    assert len({tuple(environment.unwrapped.maze.cell_xy_to_rowcol(goal)) for goal in goals}) > 8
    environment.close()


def test_a_humanoids_goal_is_1_to_5_metres_away_and_falling_ends_the_episode() -> None:
    one = task("goal-humanoid")
    environments = Together(lambda: one.environment(200), 4, one.goal_at)
    environments.reset([True] * 4, [1, 2, 3, 4])
    far = environments.goals[:, :2].norm(dim=1)
    assert ((far >= 1) & (far <= 5)).all()
    assert (environments.goals[:, 2] == 1.25).all()
    over = torch.zeros(4, dtype=torch.bool)
    while not over.any():  # Humanoid's own 200 steps would end it too, but the height would be right then
        _, over = environments.step(torch.zeros(4, 17))
    assert ((environments.states[over, 2] < 1) | (environments.states[over, 2] > 2)).all()
    environments.close()


class Interrupted(Exception):
    pass


def test_a_run_that_was_interrupted_ends_with_the_same_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = task("goal-point-maze")
    whole = one.fit(TINY, "smoke", 0, None, ignore)
    monkeypatch.setattr(training, "_CHECKPOINT_S", 0.0)
    monkeypatch.setattr(training, "_CHECKPOINT_SHARE", 1e9)
    seen: list[int] = []

    def stop(self: training.Run) -> None:
        if self.round == 2 and not seen:
            seen.append(self.round)
            raise Interrupted
        collect(self)

    collect = training.Run._collect
    monkeypatch.setattr(training.Run, "_collect", stop)
    with pytest.raises(Interrupted):
        one.fit(TINY, "smoke", 0, tmp_path, ignore)
    assert (tmp_path / "last.ckpt").exists()
    curve: list[int] = []
    resumed = one.fit(TINY, "smoke", 0, tmp_path, lambda step, metrics: curve.append(step))
    assert resumed == whole
    assert curve == [4]
    assert not list(tmp_path.iterdir())


def test_a_run_stopped_amid_episodes_goes_on_with_new_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = task("goal-point-maze")
    recipe = replace(smoke(), unroll=12, prefill=1, rounds=4, reports=1)
    monkeypatch.setattr(type(one), "presets", {**one.presets, "amid": recipe})
    monkeypatch.setattr(training, "_CHECKPOINT_S", 0.0)
    monkeypatch.setattr(training, "_CHECKPOINT_SHARE", 1e9)
    begun: list[list[int]] = []

    def stop(self: training.Run) -> None:
        if len(begun) == 2:
            begun.append([])
            raise Interrupted
        collect(self)
        begun.append(list(self.collector.episodes))

    collect = training.Run._collect
    monkeypatch.setattr(training.Run, "_collect", stop)
    with pytest.raises(Interrupted):
        one.fit(TINY, "amid", 0, tmp_path, ignore)
    fitted = one.fit(TINY, "amid", 0, tmp_path, ignore)
    assert begun == [[1, 1], [1, 1], [], [2, 2], [2, 2], [3, 3]]
    assert fitted.steps == 16
    assert fitted.validation["env_steps"] == 5 * 12 * 2


def test_a_checkpoint_of_another_run_or_a_broken_one_is_not_continued(tmp_path: Path) -> None:
    one = task("goal-point-maze")
    whole = one.fit(TINY, "smoke", 0, None, ignore)
    (tmp_path / "last.ckpt").write_bytes(b"no checkpoint")
    with pytest.warns(UserWarning, match="starts anew"):
        assert one.fit(TINY, "smoke", 0, tmp_path, ignore) == whole
    torch.save({"run": "another"}, tmp_path / "last.ckpt")
    assert one.fit(TINY, "smoke", 0, tmp_path, ignore) == whole


class Toy(gymnasium.Env[Any, Any]):
    """Stands still; what it observes, takes and does is told."""

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
    ("reference", "message"),
    [
        ("goal:FetchReech-v4", "Did you mean 'FetchReach-v4'"),
        ("goal:", "unknown environment ''"),
        ("goal:no such thing", "unknown environment"),
        ("goal:nowhere:Env-v0", "unknown environment"),
        ("goal:CartPole-v1", "observation, achieved_goal, desired_goal"),
        ("goal:Blind-v0", "FetchReach-v4"),
        ("goal:Aimless-v0", "must observe vectors named observation, achieved_goal, desired_goal"),
        ("goal:Pushbutton-v0", "numbers between bounds as actions, got Discrete(3)"),
        ("goal:Boundless-v0", "numbers between bounds"),
    ],
)
def test_what_is_no_goal_environment_is_a_mistake_in_one_line(reference: str, message: str) -> None:
    with pytest.raises(Mistake) as caught:
        load_task(reference).prepare()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("toys")
def test_an_environment_that_fails_fails_its_trial() -> None:
    row = evaluate(Job(task="goal:Fragile-v0", architecture=TINY, preset="smoke", seed=0))
    assert row.status == "failed"
    assert row.error == "RuntimeError: the simulation became unstable"


def test_a_row_has_the_share_of_goals_the_steps_and_both_speeds() -> None:
    row = evaluate(Job(task="goal-point-maze", architecture=TINY, preset="smoke", seed=0))
    assert row.status == "complete"
    columns = row.columns()
    assert columns["goals_of_others"] == 0.5
    assert columns["env_steps"] == 180
    assert columns["steps"] == 8
    assert columns["env_steps_per_second"] > 0
    assert columns["updates_per_second"] > 0


def test_random_actions_are_the_baseline() -> None:
    (columns,) = task("goal-point-maze").baselines("smoke").values()
    assert set(columns) >= {"time_at_goal", "success_any", "test_time_at_goal", "test_success_any"}


@pytest.mark.slow
def test_proxy_learns_to_reach_goals_and_to_stay_there() -> None:
    one = task("goal-point-maze")
    (by_chance,) = one.baselines("proxy").values()
    fitted = one.fit(replace(one.base, depth=1), "proxy", 0, None, ignore)
    assert fitted.validation["time_at_goal"] > 5 * by_chance["time_at_goal"]
    assert fitted.validation["success_any"] > 0.8


def test_the_extra_is_named_where_it_is_missing() -> None:
    script = (
        "import sys; sys.modules['gymnasium'] = None\n"
        "import tasks.goal_rl.catalog\n"
        "from tasks.load import load_task\n"
        "load_task('goal-humanoid').prepare()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert 'pip install "nas-bench-wiring[rl]"' in done.stderr.splitlines()[-1]


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
    with pytest.raises(Mistake, match="from 0 to 1"):
        GoalRecipe(unroll=5, rounds=1, updates=1, goals_of_others=1.5)


def test_reports_are_spread_over_the_rounds() -> None:
    recipe = replace(smoke(), rounds=20, reports=5)
    assert recipe.report_rounds() == {4, 8, 12, 16}


@pytest.mark.parametrize(
    ("file", "message"),
    [("film.avi", ".gif or .mp4"), ("nowhere/film.gif", "folder must exist")],
)
def test_a_film_that_cannot_be_written_is_a_mistake(file: str, message: str) -> None:
    with pytest.raises(Mistake, match=message):
        task("goal-point-maze").render(None, Path(file))


def test_without_anything_to_draw_with_a_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUJOCO_GL", "nothing")
    with pytest.raises(Mistake, match="apt-get install libegl1 or libosmesa6"):
        task("goal-point-maze").render(None, tmp_path / "film.gif")


@pytest.mark.parametrize("suffix", [".gif", ".mp4"])
def test_an_episode_is_rendered(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MUJOCO_GL", "PYOPENGL_PLATFORM"):
        monkeypatch.setenv(name, os.environ.get(name, ""))  # put back what rendering sets
        monkeypatch.delenv(name)
    one = task("goal-point-maze")
    monkeypatch.setattr(type(one), "presets", {"proxy": replace(smoke(), length=6)})
    file = tmp_path / f"film{suffix}"
    try:
        one.render(None, file)
    except Mistake as mistake:
        pytest.skip(str(mistake))
    one.render(one.build(TINY), file)
    import imageio.v3 as imageio

    pictures = imageio.imread(file)
    assert len(pictures) >= 3
    assert pictures.std() > 10
