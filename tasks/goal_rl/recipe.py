"""The recipe of goal tasks: rounds of environment steps and updates."""

from dataclasses import dataclass
from typing import Annotated, Literal

from search_spaces.support.errors import UserError
from tasks.recipes.recipe import intermediate_steps
from tasks.recipes.settings import (
    AtLeastOne,
    Between,
    NonNegativeInt,
    NotNegative,
    Positive,
    UnitInterval,
    check,
    recipe_text,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalRecipe:
    """The settings of a training. Its `str` is one line.

    A round is `unroll` steps of every environment, then `updates` optimizer steps.

    Attributes:
        length: Steps of an episode; 0 for the environment's own.
        environments: Number of environments; 512 in the paper.
        processes: Processes that step them: 1 for none but this one, 0 for one per core. Use 1 in a search, which has a
            training on each core. A single training with many environments is faster with more.
        unroll: Steps of each environment in a round; 62 in the paper.
        prefill: Rounds before the first one with updates.
        rounds: Rounds with updates.
        updates: Optimizer steps in a round, each of the actor, the entropy weight and the critic.
        batch: Transitions per update.
        lr: Adam's learning rate for actor, entropy weight and critic.
        discount: gamma: a goal is k steps ahead with probability proportional to gamma^k.
        capacity: States stored per environment. It must exceed an episode, so that a training can resume within one. If
            the environment sets the length, longer episodes are closed there.
        window: States of each environment to draw a round's updates from, without replacement, as published; 0 draws
            from the whole buffer, with replacement.
        penalty: Weight of the squared log-sum-exp in the critic's loss.
        entropy: Target entropy of the policy per action feature.
        goals_of_others: Fraction of the actor's goals taken from other samples of the batch; 0 in the paper. With only
            a state's own future, the policy learns only goals that it has already reached.
        reports: Number of parts into which intermediate evaluations divide the training.
        episodes: Episodes per evaluation.
        accelerator: "auto" uses a GPU if there is one. Narrow networks are no faster on one.
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
    goals_of_others: UnitInterval = 0.5
    reports: AtLeastOne = 10
    episodes: AtLeastOne = 64
    accelerator: Literal["auto", "cpu"] = "cpu"

    def __post_init__(self) -> None:
        check(self)
        if self.window == 1:
            raise UserError(
                "out-of-range",
                "window must be at least 2, a state and its successor, got 1. Set 0 for all stored states.",
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
        """Return the rounds in 1 .. rounds after which to evaluate, without the last."""
        return intermediate_steps(self.rounds, self.reports)


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
    """Return a recipe that only tests that everything runs."""
    return GoalRecipe(
        length=length, environments=2, unroll=length, rounds=2, updates=4, batch=16, reports=2, episodes=2
    )
