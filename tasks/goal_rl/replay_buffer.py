"""The replay buffer, and goals sampled from it in hindsight.

Shapes: E = environments, C = capacity, n = steps of a rollout, S = features of a state, A = of an action, G = of a
goal, B = batch, W = states of a window, P = transitions in the windows, F = episodes that end in a rollout, M = the
most rows that a rollout adds to, or touches in, one ring.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor

from tasks.goal_rl.contrastive import Transitions


@dataclass(frozen=True, slots=True)
class Rollout:
    """Some steps of all environments.

    Attributes:
        states: States before each step, [n, E, S].
        actions: Actions taken there, [n, E, A].
        dones: Whether the episode ended with the step, [n, E].
        final: States after those last steps, in the order of steps and then environments, [F, S].
    """

    states: Tensor
    actions: Tensor
    dones: Tensor
    final: Tensor


class ReplayBuffer:
    """A ring buffer of states per environment; an episode of T actions has T + 1 states.

    Each state stores how many states of its episode follow it. Goals are sampled from these, so they are never of
    another episode, and never overwritten, since they are newer. Of an unfinished episode, the part so far is used.

    Args:
        size: Environments and capacity, E and C.
        features: Features of a state and of an action, S and A.
        goal: Slice of the goal's coordinates in a state.
        discount: gamma.
        device: Device of the buffer.
    """

    def __init__(
        self, size: tuple[int, int], features: tuple[int, int], goal: slice, discount: float, device: torch.device
    ) -> None:
        self.goal = goal
        self.discount = discount
        environments, self.capacity = size
        self._states = torch.zeros(*size, features[0], device=device)
        self._actions = torch.zeros(*size, features[1], device=device)
        self._ahead = torch.zeros(size, dtype=torch.long, device=device)
        self._cursor = torch.zeros(environments, dtype=torch.long)  # next write position of each ring
        self._sizes = torch.zeros(environments, dtype=torch.long)  # number of states in each ring
        self._open = torch.zeros(environments, dtype=torch.long)  # states of the unfinished episode
        self._usable = torch.zeros(0, dtype=torch.long, device=device)

    def __len__(self) -> int:
        """Return the number of transitions that can be sampled."""
        return len(self._usable)

    def extend(self, rollout: Rollout) -> None:
        """Append a rollout that continues the last one, to all rings at once."""
        states, actions, last, lengths = _rows(rollout)  # [M, E, S], [M, E, A], [M, E], [E]
        environment, number = torch.arange(last.shape[1]).expand_as(last), torch.arange(len(last))[:, None]
        new = (number < lengths) & (number >= lengths - self.capacity)  # other rows are padding or too old
        rings, places = environment[new], ((self._cursor + number) % self.capacity)[new]
        self._write(self._states, rings, places, states[new])
        self._write(self._actions, rings, places, actions[new])
        self._look_ahead(last, lengths)
        self._cursor = (self._cursor + lengths) % self.capacity
        self._sizes = (self._sizes + lengths).clamp(max=self.capacity)
        self._usable = self._ahead.flatten().nonzero().flatten()

    def open_episodes(self) -> list[Tensor]:
        """Return the actions of each environment's unfinished episode from its start, [m, A].

        An episode whose start was overwritten is closed: its continuation belongs to a new one.
        """
        self._open[self._open >= self.capacity] = 0
        episodes = []
        for e, (cursor, length) in enumerate(zip(self._cursor.tolist(), self._open.tolist(), strict=True)):
            rows = (cursor - length + torch.arange(length)) % self.capacity
            episodes.append(self._actions[e, rows.to(self._actions.device)].cpu())
        return episodes

    def sample(self, batch: int, generator: Generator) -> Transitions:
        """Sample transitions uniformly, each with a goal k steps later, P(k) in proportion to gamma^k.

        k is in 1 .. K if K states follow, sampled by the inverse of the truncated geometric distribution function.
        """
        device = self._usable.device
        rows = self._usable[torch.randint(len(self._usable), (batch,), generator=generator, device=device)]
        return self._transitions(rows, self._ahead.view(-1)[rows], generator)

    def window_batches(self, window: int, batch: int, generator: Generator) -> Iterator[Transitions]:
        """Yield batches without replacement from a random window of so many states of each environment.

        Goals are sampled as in `sample`, within the window. When fewer than a batch are left, all are shuffled again.

        Source: the official code of Wang et al. (2025), one window per round. It stores no state after an episode's
        last action, whose goal there is the state itself (k = 0).
        """
        rows, ahead = self._windows(window, generator)
        batch = min(batch, len(rows))
        while True:
            order = torch.randperm(len(rows), generator=generator, device=rows.device)
            for batch_rows in order[: len(rows) // batch * batch].split(batch):
                yield self._transitions(rows[batch_rows], ahead[batch_rows], generator)

    def _windows(self, window: int, generator: Generator) -> tuple[Tensor, Tensor]:
        """Return transitions in a window of each environment, and the number of states that follow in it: [P] each."""
        device, rows, ahead = self._states.device, [], []
        for e, (ring_size, cursor) in enumerate(zip(self._sizes.tolist(), self._cursor.tolist(), strict=True)):
            length = min(window, ring_size)
            first = int(torch.randint(ring_size - length + 1, (), generator=generator, device=device))
            within = torch.arange(length, device=device)
            places = (cursor - ring_size + first + within) % self.capacity
            rows.append(e * self.capacity + places)
            ahead.append(torch.minimum(self._ahead[e, places], length - 1 - within))
        every, following = torch.cat(rows), torch.cat(ahead)
        return every[following > 0], following[following > 0]

    def _transitions(self, rows: Tensor, ahead: Tensor, generator: Generator) -> Transitions:
        """Return the transitions of some rows, [B], with goals among the `ahead` states after each, [B]."""
        u = torch.rand(len(rows), generator=generator, device=rows.device, dtype=torch.float64)
        steps = truncated_geometric(u, ahead, self.discount)
        ring, place = rows // self.capacity, rows % self.capacity
        future = ring * self.capacity + (place + steps) % self.capacity
        states = self._states.flatten(0, 1)
        return states[rows], self._actions.flatten(0, 1)[rows], states[future][:, self.goal]

    def state_dict(self) -> dict[str, Any]:
        tensors = {"states": self._states, "actions": self._actions, "ahead": self._ahead}
        return {**tensors, "cursor": self._cursor, "kept": self._sizes, "open": self._open}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for tensor, name in ((self._states, "states"), (self._actions, "actions"), (self._ahead, "ahead")):
            tensor.copy_(state[name])
        self._cursor, self._sizes, self._open = (
            torch.as_tensor(state[name]).clone() for name in ("cursor", "kept", "open")
        )
        self._usable = self._ahead.flatten().nonzero().flatten()

    def _look_ahead(self, last: Tensor, new_rows: Tensor) -> None:
        """Recount the following states in all episodes that new rows extend, also unfinished ones: [M, E] and [E]."""
        lengths_before = self._open.clamp(max=self.capacity)
        lengths = lengths_before + new_rows
        number = torch.arange(int(lengths.max()))[:, None]
        among = (number - lengths_before).clamp(0, len(last) - 1)
        ends = last.gather(0, among) & (number >= lengths_before) & (number < lengths)  # [M, E]
        in_ring = (number < lengths) & (number >= lengths - self.capacity)
        environment = torch.arange(len(lengths)).expand_as(in_ring)
        places = (self._cursor - lengths_before + number) % self.capacity
        self._write(self._ahead, environment[in_ring], places[in_ring], _ahead(ends, lengths)[in_ring])
        final = torch.where(ends & in_ring, number, -1).max(0).values
        self._open = torch.where(final < 0, lengths.clamp(max=self.capacity), lengths - 1 - final)

    def _write(self, storage: Tensor, rings: Tensor, places: Tensor, rows: Tensor) -> None:
        """Write rows to their places in their rings."""
        device = storage.device
        storage[rings.to(device), places.to(device)] = rows.to(device)


def _rows(rollout: Rollout) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return a rollout's rows for the rings: states [M, E, S], actions [M, E, A], ends [M, E], and their number [E].

    After the step that ends an episode comes its final state, with a meaningless action.
    """
    steps, environments = rollout.dones.shape
    dones = rollout.dones.long()
    place = torch.arange(steps)[:, None] + dones.cumsum(0) - dones  # [n, E]
    lengths = steps + dones.sum(0)
    most, environment = int(lengths.max()), torch.arange(environments).expand_as(place)
    states = rollout.states.new_zeros(most, environments, rollout.states.shape[2])
    actions = rollout.actions.new_zeros(most, environments, rollout.actions.shape[2])
    last = torch.zeros(most, environments, dtype=torch.bool)
    states[place, environment], actions[place, environment] = rollout.states, rollout.actions
    after_end = place[rollout.dones] + 1, environment[rollout.dones]
    states[after_end] = rollout.final
    last[after_end] = True
    return states, actions, last, lengths


def truncated_geometric(u: Tensor, most: Tensor, discount: float) -> Tensor:
    """Return k in 1 .. most with P(k) in proportion to discount^k, from u uniform in [0, 1): [B], [B] to [B], integers.

    F(k) = (1 - gamma^k) / (1 - gamma^most): k is the least integer not below log(1 - u (1 - gamma^most)) / log gamma.
    """
    quantile = torch.log1p(-u * (1 - discount ** most.double())) / math.log(discount)
    return quantile.ceil().long().clamp(min=torch.ones_like(most), max=most)


def _ahead(last: Tensor, lengths: Tensor) -> Tensor:
    """Return the number of rows of the same episode after each row, given the episodes' last rows.

    A ring's final row ends what is known. Maps [M, E] and the rows of each ring [E] to [M, E]; values beyond these rows
    are meaningless.
    """
    number = torch.arange(len(last))[:, None]
    ends = torch.where(last | (number >= lengths - 1), number, len(last))
    return ends.flip(0).cummin(0).values.flip(0) - number
