"""Hindsight goals: their distribution, and that they never leave the episode."""

from itertools import product

import pytest
import torch
from torch import Generator, Tensor

from grouped import grouped
from tasks.goal_rl.replay_buffer import ReplayBuffer, Rollout, truncated_geometric


class Past:
    """Environments that count: a state is (environment, episode, step), an action the step it is taken at."""

    def __init__(self, lengths: list[list[int]]) -> None:
        self.lengths = lengths
        self.at = [[0, 0] for _ in lengths]  # episode and step

    def roll(self, steps: int) -> Rollout:
        rows: list[list[Tensor]] = [[], [], [], []]
        for _ in range(steps):
            now, after, ended = [], [], []
            for e, at in enumerate(self.at):
                now.append([float(e), *map(float, at)])
                at[1] += 1
                after.append([float(e), *map(float, at)])
                ended.append(at[1] == self.lengths[e][at[0] % len(self.lengths[e])])
                if ended[-1]:
                    at[:] = at[0] + 1, 0
            states, over = torch.tensor(now), torch.tensor(ended)
            for row, value in zip(rows, (states, states[:, 2:], over, torch.tensor(after)[over]), strict=True):
                row.append(value)
        *stacked, final = rows
        return Rollout(*(torch.stack(row) for row in stacked), torch.cat(final))


def replay(environments: int, capacity: int, discount: float = 0.9) -> ReplayBuffer:
    return ReplayBuffer((environments, capacity), (3, 1), slice(0, 3), discount, torch.device("cpu"))


def test_a_goal_is_a_later_state_of_the_same_episode() -> None:
    for capacity in (200, 37, 23):
        past, kept = Past([[5, 9, 1], [7], [22]]), replay(3, capacity, discount=0.99)
        for steps in (4, 13, 3, 20, 1, 9):
            kept.extend(past.roll(steps))
            states, actions, goals = kept.sample(2000, Generator().manual_seed(steps))
            assert (states[:, :2] == goals[:, :2]).all()
            assert (goals[:, 2] > states[:, 2]).all()
            assert (actions == states[:, 2:]).all()


def test_the_last_state_of_an_episode_is_a_goal_only() -> None:
    past, kept = Past([[5]]), replay(1, 100)
    kept.extend(past.roll(15))
    states, _, goals = kept.sample(3000, Generator().manual_seed(0))
    assert len(kept) == 15
    assert set(states[:, 2].tolist()) == {0.0, 1.0, 2.0, 3.0, 4.0}
    assert set(goals[:, 2].tolist()) == {1.0, 2.0, 3.0, 4.0, 5.0}


def test_goals_follow_the_truncated_geometric_distribution() -> None:
    past, kept, gamma = Past([[6]]), replay(1, 100, discount=0.7), 0.7
    kept.extend(past.roll(6))
    states, _, goals = kept.sample(60_000, Generator().manual_seed(0))
    for first in range(6):
        ahead = goals[states[:, 2] == first][:, 2] - first
        assert len(ahead) / 60_000 == pytest.approx(1 / 6, abs=0.01)
        weights = [gamma**k for k in range(1, 6 - first + 1)]
        for k, weight in enumerate(weights, start=1):
            assert (ahead == k).float().mean().item() == pytest.approx(weight / sum(weights), abs=0.02)


def test_goals_stay_within_the_window() -> None:
    past, kept, gamma = Past([[9], [5, 7]]), replay(2, 64, discount=0.8), 0.8
    kept.extend(past.roll(25))
    seen: list[Tensor] = []
    for seed in range(200):
        batches = kept.window_batches(10, 4, Generator().manual_seed(seed))
        states, _, goals = (torch.cat(one) for one in zip(*(next(batches) for _ in range(3)), strict=True))
        assert len({tuple(row) for row in states.tolist()}) == 12  # without replacement
        assert (states[:, :2] == goals[:, :2]).all()
        seen.append(goals[:, 2] - states[:, 2])
    steps = torch.cat(seen)
    assert steps.min() == 1
    whole = (1 - gamma) * sum(k * gamma ** (k - 1) for k in range(1, 100))
    assert steps.mean() < whole  # cut by windows and episodes


def test_a_window_longer_than_the_replay_covers_all_of_it() -> None:
    past, kept = Past([[6]]), replay(1, 100, discount=0.7)
    kept.extend(past.roll(9))
    states, _, _ = next(kept.window_batches(1000, 8, Generator().manual_seed(0)))
    assert sorted(states[:, 1:].tolist()) == [[0, n] for n in range(6)] + [[1, n] for n in range(2)]


def naive_windows(ahead: list[int], window: int, gamma: float) -> list[float]:
    """P(k) of the steps to a goal over all windows of a ring, transition by transition."""
    found = [0.0] * (window + 1)
    for first in range(len(ahead) - window + 1):
        for i in range(window):
            most = min(ahead[first + i], window - 1 - i)
            weights = [gamma**k for k in range(1, most + 1)]
            for k, weight in enumerate(weights, start=1):
                found[k] += weight / sum(weights)
    return [one / sum(found) for one in found]


def test_goals_in_windows_match_a_naive_loop() -> None:
    past, kept, gamma = Past([[12]]), replay(1, 100, discount=0.8), 0.8
    kept.extend(past.roll(40))
    ahead = [13 - 1 - i % 13 for i in range(39)] + [3 - i for i in range(4)]
    assert kept.state_dict()["ahead"][0, :43].tolist() == ahead
    expected, counts = naive_windows(ahead, 8, gamma), torch.zeros(9)
    drawn = 0
    for seed in range(1000):
        states, _, goals = next(
            kept.window_batches(8, 1000, Generator().manual_seed(seed))
        )  # every transition of a window
        counts += torch.bincount((goals[:, 2] - states[:, 2]).long(), minlength=9)
        drawn += len(states)
    assert counts[0] == 0
    for k in range(1, 9):
        assert counts[k].item() / drawn == pytest.approx(expected[k], abs=0.01)


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
    past, kept = Past([[10]]), replay(1, 33)
    kept.extend(past.roll(20))
    kept.extend(past.roll(30))
    states, _, goals = kept.sample(3000, Generator().manual_seed(0))
    assert set(states[:, 1].tolist()) == {2.0, 3.0, 4.0}
    assert goals[:, 1].max() == 4.0


def test_of_a_roll_longer_than_the_ring_the_end_is_kept() -> None:
    past, kept = Past([[50]]), replay(1, 20)
    kept.extend(past.roll(45))
    states, _, goals = kept.sample(3000, Generator().manual_seed(0))
    assert set(states[:, 2].tolist()) == set(map(float, range(25, 44)))
    assert goals[:, 2].max() == 44.0


def test_actions_under_way_are_those_since_the_episode_began() -> None:
    past, kept = Past([[6, 11], [9]]), replay(2, 40)
    rolls = [past.roll(5), past.roll(3)]
    for roll in rolls:
        kept.extend(roll)
    actions = torch.cat([roll.actions for roll in rolls])  # [8, E, A]
    ended = torch.cat([roll.dones for roll in rolls])
    for e, under_way in enumerate(kept.open_episodes()):
        last = max([0, *(ended[:, e].nonzero().flatten() + 1).tolist()])
        assert torch.equal(under_way, actions[last:, e])


def test_an_episode_longer_than_the_ring_is_closed() -> None:
    past, kept = Past([[100]]), replay(1, 10)
    kept.extend(past.roll(20))
    assert [len(taken) for taken in kept.open_episodes()] == [0]
    kept.extend(past.roll(6))
    states, _, goals = kept.sample(500, Generator().manual_seed(0))
    assert ((states[:, 2] < 20) == (goals[:, 2] < 20)).all()


class Rings:
    """What a replay is to hold, one environment and one state after the other."""

    def __init__(self, environments: int) -> None:
        self.rows: list[list[tuple[Tensor, Tensor, bool]]] = [[] for _ in range(environments)]

    def extend(self, roll: Rollout) -> None:
        final = iter(roll.final)
        for states, actions, ended in zip(roll.states, roll.actions, roll.dones, strict=True):
            for ring, state, action, over in zip(self.rows, states, actions, ended, strict=True):
                ring.append((state, action, False))
                if over:
                    ring.append((next(final), torch.zeros_like(action), True))

    def transitions(self, capacity: int) -> list[tuple[float, ...]]:
        """State, action and how many states of its episode follow, of all that one follows."""
        found = []
        for ring in self.rows:
            newest = ring[-capacity:]
            for n, (state, action, over) in enumerate(newest):
                behind = 0
                while not over and n + behind + 1 < len(newest) and not newest[n + behind][2]:
                    behind += 1
                if behind:
                    found.append((*state.tolist(), *action.tolist(), float(behind)))
        return found


@pytest.mark.parametrize(("environments", "capacity"), [(1, 3), (2, 20), (5, 60), (3, 7)])
def test_rings_match_a_naive_loop(environments: int, capacity: int) -> None:
    with grouped() as case:
        for seed, often in product(range(3), (0, 0.05, 0.4, 1)):
            draws = Generator().manual_seed(seed)
            rings, naive = replay(environments, capacity), Rings(environments)
            for steps in (4, 17, 1, 9, 30):
                size = steps, environments
                ended = torch.rand(size, generator=draws) < often
                states, actions = torch.rand(*size, 3, generator=draws), torch.rand(*size, 1, generator=draws)
                roll = Rollout(states, actions, ended, torch.rand(int(ended.sum()), 3, generator=draws))
                rings.extend(roll)
                naive.extend(roll)
                with case(f"seed {seed}, ends {often}, steps {steps}"):
                    held = rings.state_dict()
                    parts = held["states"].flatten(0, 1), held["actions"].flatten(0, 1), held["ahead"].view(-1, 1)
                    usable = torch.cat(parts, dim=1)[held["ahead"].flatten() > 0]
                    expected = sorted(naive.transitions(capacity))
                    assert sorted(map(tuple, usable.tolist())) == expected
                    assert len(rings) == len(expected)


def test_a_restored_replay_draws_the_same() -> None:
    past, first, second = Past([[6, 11], [9]]), replay(2, 40), replay(2, 40)
    first.extend(past.roll(25))
    second.load_state_dict(first.state_dict())
    for kept in (first, second):
        kept.extend(Past([[5], [5]]).roll(3))
    drawn, again = (kept.sample(50, Generator().manual_seed(3)) for kept in (first, second))
    assert all(torch.equal(a, b) for a, b in zip(drawn, again, strict=True))


def test_a_restored_replay_leaves_its_source_unchanged() -> None:
    first, second = replay(1, 10), replay(1, 10)
    first.extend(Past([[100]]).roll(20))
    loaded = first.state_dict()
    second.load_state_dict(loaded)
    second.open_episodes()  # an episode of which not all is kept is over
    assert loaded["open"].tolist() == [10]
