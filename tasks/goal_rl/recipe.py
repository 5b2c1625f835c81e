"""How an agent is trained: rounds of stepping and of updates."""

from dataclasses import dataclass
from typing import Annotated, Literal

from search_spaces.support.errors import UserError
from tasks.recipes.settings import (
    AtLeastOne,
    Between,
    NonNegativeInt,
    NotNegative,
    Positive,
    ShareOfOne,
    check,
    recipe_text,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalRecipe:
    """The settings of a training run. Its `str` is one line.

    A round is `unroll` steps of every environment and then `updates` steps of the optimisers.

    Attributes:
        length: Steps of an episode; 0 leaves it to the environment.
        environments: How many are stepped together; 512 in the paper.
        processes: That step them: 1 is this one, 0 as many as there are cores. A search gives each core a training of
            its own; one training alone, with many environments, is quicker with more.
        unroll: Steps of each environment in a round; 62 in the paper.
        prefill: Rounds before the first one with updates.
        rounds: Rounds with updates.
        updates: Steps of the optimisers in a round, each of the actor, the entropy's weight and the critic.
        batch: Transitions of an update.
        lr: Adam's learning rate, of actor, entropy's weight and critic alike.
        discount: gamma: a goal lies k steps ahead with a probability in proportion to gamma^k.
        capacity: States that are kept of each environment; more than an episode has, so that one that a training was
            stopped in can be gone on with. Where the environment says the length, a longer one is given up there.
        window: States of each environment that a round's updates are drawn from, without replacement, as published; 0
            draws from all that are kept, with replacement.
        penalty: Weight of the squared log-sum-exp in the critic's loss.
        entropy: The policy's entropy aimed at, for each action feature.
        goals_of_others: Share of the actor's goals that are taken from other samples of the batch; none in the paper.
            With a state's own future alone, the policy learns only from goals that it has reached already.
        reports: Into how many parts the training is cut by the evaluations on the way.
        episodes: Episodes of an evaluation.
        accelerator: "auto" is a GPU where there is one. Narrow networks are no faster on one.
    """

    length: NonNegativeInt = 0
    environments: AtLeastOne = 16
    processes: NonNegativeInt = 1
    unroll: AtLeastOne
    prefill: AtLeastOne = 1
    rounds: AtLeastOne
    updates: AtLeastOne
    batch: AtLeastOne = 256
    lr: Positive = 1e-3
    discount: Annotated[float, Between(0, 1, open_low=True, open_high=True)] = 0.99
    capacity: AtLeastOne = 10_000
    window: NonNegativeInt = 0
    penalty: NotNegative = 0.1
    entropy: float = -0.5
    goals_of_others: ShareOfOne = 0.5
    reports: AtLeastOne = 10
    episodes: AtLeastOne = 64
    accelerator: Literal["auto", "cpu"] = "cpu"

    def __post_init__(self) -> None:
        check(self)
        if self.window == 1:
            raise UserError(
                "out-of-range",
                "window must hold a state and one that follows it, got 1. Set 0 for all that is kept.",
                option="window",
                value=1,
                least=2,
            )
        for name, steps in (("unroll", self.unroll), ("length", self.length)):
            if steps >= self.capacity:
                raise UserError(
                    "out-of-range",
                    f"capacity must be more than {name}, got {self.capacity} and {steps}. Set a larger capacity.",
                    option="capacity",
                    value=self.capacity,
                    **{name: steps},
                )

    def __str__(self) -> str:
        return recipe_text(self, ("goals_of_others",))

    def report_rounds(self) -> frozenset[int]:
        """After which rounds of 1 .. rounds the agent is measured on the way; the end is not among them."""
        return frozenset(self.rounds * part // self.reports for part in range(1, self.reports)) - {0, self.rounds}


PAPER = GoalRecipe(
    length=1000,
    environments=512,
    processes=0,
    unroll=62,
    prefill=17,
    rounds=3100,
    updates=800,
    batch=512,
    lr=3e-4,
    window=1000,
    goals_of_others=0.0,
    reports=100,
    episodes=128,
    accelerator="auto",
)
"""The published settings: 98.4 million steps and 2.48 million updates."""


def smoke(length: int = 30) -> GoalRecipe:
    """Enough to see that everything runs."""
    return GoalRecipe(
        length=length, environments=2, unroll=length, rounds=2, updates=4, batch=16, reports=2, episodes=2
    )
