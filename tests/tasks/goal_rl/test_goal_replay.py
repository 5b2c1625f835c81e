"""Hindsight goals: distribution and episode boundaries."""

from itertools import product

import pytest
import torch
from torch import Generator, Tensor

from grouped import grouped
from tasks.goal_rl.replay_buffer import ReplayBuffer, Rollout, truncated_geometric


class Past:
    """Counting environments: a state is (environment, episode, step), an action the step."""

    def __init__(self, lengths: list[list[int]]) -> None:
        self.lengths = lengths
        self.at = [[0, 0] for _ in lengths]  # episode and step

    def roll(self, steps: int) -> Rollout:
        rows: list[list[Tensor]] = [[], [], [], []]
        for _ in range(steps):
            now, after, dones = [], [], []
            for e, at in enumerate(self.at):
                now.append([float(e), *map(float, at)])
                at[1] += 1
                after.append([float(e), *map(float, at)])
                dones.append(at[1] == self.lengths[e][at[0] % len(self.lengths[e])])
                if dones[-1]:
                    at[:] = at[0] + 1, 0
            states, over = torch.tensor(now), torch.tensor(dones)
            for row, value in zip(rows, (states, states[:, 2:], over, torch.tensor(after)[over]), strict=True):
                row.append(value)
        *columns, final = rows
        return Rollout(*(torch.stack(row) for row in columns), torch.cat(final))


def replay(environments: int, capacity: int, discount: float = 0.9) -> ReplayBuffer:
    return ReplayBuffer((environments, capacity), (3, 1), slice(0, 3), discount, torch.device("cpu"))


def test_a_goal_is_a_later_state_of_the_same_episode() -> None:
    for capacity in (200, 37, 23):
        past, buffer = Past([[5, 9, 1], [7], [22]]), replay(3, capacity, discount=0.99)
        for steps in (4, 13, 3, 20, 1, 9):
            buffer.extend(past.roll(steps))
            states, actions, goals = buffer.sample(2000, Generator().manual_seed(steps))
            assert (states[:, :2] == goals[:, :2]).all()
            assert (goals[:, 2] > states[:, 2]).all()
            assert (actions == states[:, 2:]).all()


def test_the_last_state_of_an_episode_is_a_goal_only() -> None:
    past, buffer = Past([[5]]), replay(1, 100)
    buffer.extend(past.roll(15))
    states, _, goals = buffer.sample(3000, Generator().manual_seed(0))
    assert len(buffer) == 15
    assert set(states[:, 2].tolist()) == {0.0, 1.0, 2.0, 3.0, 4.0}
    assert set(goals[:, 2].tolist()) == {1.0, 2.0, 3.0, 4.0, 5.0}


def test_goals_follow_the_truncated_geometric_distribution() -> None:
    past, buffer, gamma = Past([[6]]), replay(1, 100, discount=0.7), 0.7
    buffer.extend(past.roll(6))
    states, _, goals = buffer.sample(60_000, Generator().manual_seed(0))
    for first in range(6):
        ahead = goals[states[:, 2] == first][:, 2] - first
        assert len(ahead) / 60_000 == pytest.approx(1 / 6, abs=0.01)
        weights = [gamma**k for k in range(1, 6 - first + 1)]
        for k, weight in enumerate(weights, start=1):
            assert (ahead == k).float().mean().item() == pytest.approx(weight / sum(weights), abs=0.02)


def test_goals_stay_within_the_window() -> None:
    past, buffer, gamma = Past([[9], [5, 7]]), replay(2, 64, discount=0.8), 0.8
    buffer.extend(past.roll(25))
    distances: list[Tensor] = []
    for seed in range(200):
        batches = buffer.window_batches(10, 4, Generator().manual_seed(seed))
        states, _, goals = (torch.cat(column) for column in zip(*(next(batches) for _ in range(3)), strict=True))
        assert len({tuple(row) for row in states.tolist()}) == 12  # without replacement
        assert (states[:, :2] == goals[:, :2]).all()
        distances.append(goals[:, 2] - states[:, 2])
    steps = torch.cat(distances)
    assert steps.min() == 1
    whole = (1 - gamma) * sum(k * gamma ** (k - 1) for k in range(1, 100))
    assert steps.mean() < whole  # shortened by windows and episodes


def test_a_window_longer_than_the_replay_covers_all_of_it() -> None:
    past, buffer = Past([[6]]), replay(1, 100, discount=0.7)
    buffer.extend(past.roll(9))
    states, _, _ = next(buffer.window_batches(1000, 8, Generator().manual_seed(0)))
    assert sorted(states[:, 1:].tolist()) == [[0, n] for n in range(6)] + [[1, n] for n in range(2)]


def naive_windows(ahead: list[int], window: int, gamma: float) -> list[float]:
    """P(k) of the steps to a goal over all windows of a ring."""
    weights_by_step = [0.0] * (window + 1)
    for first in range(len(ahead) - window + 1):
        for i in range(window):
            most = min(ahead[first + i], window - 1 - i)
            weights = [gamma**k for k in range(1, most + 1)]
            for k, weight in enumerate(weights, start=1):
                weights_by_step[k] += weight / sum(weights)
    return [weight / sum(weights_by_step) for weight in weights_by_step]


def test_goals_in_windows_match_a_naive_loop() -> None:
    past, buffer, gamma = Past([[12]]), replay(1, 100, discount=0.8), 0.8
    buffer.extend(past.roll(40))
    ahead = [13 - 1 - i % 13 for i in range(39)] + [3 - i for i in range(4)]
    assert buffer.state_dict()["ahead"][0, :43].tolist() == ahead
    expected, counts = naive_windows(ahead, 8, gamma), torch.zeros(9)
    count = 0
    for seed in range(1000):
        # every transition of a window
        states, _, goals = next(buffer.window_batches(8, 1000, Generator().manual_seed(seed)))
        counts += torch.bincount((goals[:, 2] - states[:, 2]).long(), minlength=9)
        count += len(states)
    assert counts[0] == 0
    for k in range(1, 9):
        assert counts[k].item() / count == pytest.approx(expected[k], abs=0.01)


def test_truncated_geometric_inverse_is_exact() -> None:
    gamma, most = 0.99, 1000
    below = torch.tensor([sum(gamma**j for j in range(k)) for k in range(most + 1)], dtype=torch.float64)
    below = below / below[-1]  # P(steps <= k)
    k = torch.arange(1, most + 1)
    just_inside = (below[:-1] + below[1:]) / 2
    assert torch.equal(truncated_geometric(just_inside, torch.full_like(k, most), gamma), k)
    ends = torch.tensor([0.0, 1 - 2**-53], dtype=torch.float64)
    assert truncated_geometric(ends, torch.tensor([3, 3]), gamma).tolist() == [1, 3]


def test_the_newest_states_are_kept() -> None:
    past, buffer = Past([[10]]), replay(1, 33)
    buffer.extend(past.roll(20))
    buffer.extend(past.roll(30))
    states, _, goals = buffer.sample(3000, Generator().manual_seed(0))
    assert set(states[:, 1].tolist()) == {2.0, 3.0, 4.0}
    assert goals[:, 1].max() == 4.0


def test_a_roll_longer_than_the_ring_keeps_its_end() -> None:
    past, buffer = Past([[50]]), replay(1, 20)
    buffer.extend(past.roll(45))
    states, _, goals = buffer.sample(3000, Generator().manual_seed(0))
    assert set(states[:, 2].tolist()) == set(map(float, range(25, 44)))
    assert goals[:, 2].max() == 44.0


def test_open_episodes_have_the_actions_since_their_start() -> None:
    past, buffer = Past([[6, 11], [9]]), replay(2, 40)
    rolls = [past.roll(5), past.roll(3)]
    for roll in rolls:
        buffer.extend(roll)
    actions = torch.cat([roll.actions for roll in rolls])  # [8, E, A]
    dones = torch.cat([roll.dones for roll in rolls])
    for e, under_way in enumerate(buffer.open_episodes()):
        last = max([0, *(dones[:, e].nonzero().flatten() + 1).tolist()])
        assert torch.equal(under_way, actions[last:, e])


def test_an_episode_longer_than_the_ring_is_closed() -> None:
    past, buffer = Past([[100]]), replay(1, 10)
    buffer.extend(past.roll(20))
    assert [len(actions) for actions in buffer.open_episodes()] == [0]
    buffer.extend(past.roll(6))
    states, _, goals = buffer.sample(500, Generator().manual_seed(0))
    assert ((states[:, 2] < 20) == (goals[:, 2] < 20)).all()


class Rings:
    """The expected contents of a replay, one state at a time."""

    def __init__(self, environments: int) -> None:
        self.rows: list[list[tuple[Tensor, Tensor, bool]]] = [[] for _ in range(environments)]

    def extend(self, roll: Rollout) -> None:
        final = iter(roll.final)
        for states, actions, dones in zip(roll.states, roll.actions, roll.dones, strict=True):
            for ring, state, action, over in zip(self.rows, states, actions, dones, strict=True):
                ring.append((state, action, False))
                if over:
                    ring.append((next(final), torch.zeros_like(action), True))

    def transitions(self, capacity: int) -> list[tuple[float, ...]]:
        """State, action and number of later states of the episode, for states with successors."""
        rows = []
        for ring in self.rows:
            newest = ring[-capacity:]
            for n, (state, action, over) in enumerate(newest):
                behind = 0
                while not over and n + behind + 1 < len(newest) and not newest[n + behind][2]:
                    behind += 1
                if behind:
                    rows.append((*state.tolist(), *action.tolist(), float(behind)))
        return rows


@pytest.mark.parametrize(("environments", "capacity"), [(1, 3), (2, 20), (5, 60), (3, 7)])
def test_rings_match_a_naive_loop(environments: int, capacity: int) -> None:
    with grouped() as case:
        for seed, often in product(range(3), (0, 0.05, 0.4, 1)):
            draws = Generator().manual_seed(seed)
            rings, naive = replay(environments, capacity), Rings(environments)
            for steps in (4, 17, 1, 9, 30):
                size = steps, environments
                dones = torch.rand(size, generator=draws) < often
                states, actions = torch.rand(*size, 3, generator=draws), torch.rand(*size, 1, generator=draws)
                roll = Rollout(states, actions, dones, torch.rand(int(dones.sum()), 3, generator=draws))
                rings.extend(roll)
                naive.extend(roll)
                with case(f"seed {seed}, ends {often}, steps {steps}"):
                    state = rings.state_dict()
                    parts = state["states"].flatten(0, 1), state["actions"].flatten(0, 1), state["ahead"].view(-1, 1)
                    usable = torch.cat(parts, dim=1)[state["ahead"].flatten() > 0]
                    expected = sorted(naive.transitions(capacity))
                    assert sorted(map(tuple, usable.tolist())) == expected
                    assert len(rings) == len(expected)


def test_a_restored_replay_draws_the_same() -> None:
    past, first, second = Past([[6, 11], [9]]), replay(2, 40), replay(2, 40)
    first.extend(past.roll(25))
    second.load_state_dict(first.state_dict())
    for buffer in (first, second):
        buffer.extend(Past([[5], [5]]).roll(3))
    first_sample, second_sample = (buffer.sample(50, Generator().manual_seed(3)) for buffer in (first, second))
    assert all(torch.equal(a, b) for a, b in zip(first_sample, second_sample, strict=True))


def test_a_restored_replay_leaves_its_source_unchanged() -> None:
    first, second = replay(1, 10), replay(1, 10)
    first.extend(Past([[100]]).roll(20))
    state = first.state_dict()
    second.load_state_dict(state)
    second.open_episodes()  # truncated episodes are closed
    assert state["open"].tolist() == [10]
