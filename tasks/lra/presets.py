"""Recipes of the Long Range Arena: Nyströmformer's (Xiong et al., 2021, code for LRA), and quick ones for a CPU.

The published training is AdamW without decay and a one-cycle policy that falls in a line. Its epsilon is 1e-6 where
ours is torch's 1e-8, it warms up from a 25th of the learning rate, computes in fp16, and tests the weights that were
best on validation, where ours are those of the end.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tasks.lra.lists import Grammar
from tasks.recipe import Recipe
from tasks.settings import Count, Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class LongRangeRecipe(Recipe):
    """A recipe for long sequences.

    Attributes:
        tokens: What sequences are cut to; at most the network's positions.
        landmarks: Of the attention that is trained; what has no more tokens has exact attention.
        dropout: Share of features that is dropped while training.
    """

    tokens: Count
    landmarks: Count = 64
    dropout: Fraction = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOpsRecipe(LongRangeRecipe):
    """A recipe with the lists that are generated for it.

    Attributes:
        grammar: Which lists.
        examples: How many to train on.
        held_out: How many to validate on, and as many to test on.
    """

    grammar: Grammar
    examples: Count
    held_out: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class PathfinderRecipe(LongRangeRecipe):
    """A recipe with the images that are generated for it.

    Attributes:
        examples: How many in all: a tenth validates and another tests.
    """

    examples: Count


_PAPER: Mapping[str, Any] = {
    "lr": 1e-4,
    "weight_decay": 0.0,
    "schedule": "linear",
    "clip": 0.0,
    "precision": "bf16-mixed",
}
_PROXY: Mapping[str, Any] = {"weight_decay": 0.0, "dropout": 0.0, "measured": 1000}
_SMOKE: Mapping[str, Any] = {**_PROXY, "steps": 4, "batch": 4, "lr": 1e-3, "landmarks": 8, "measured": 8, "reports": 2}

LISTOPS: Mapping[str, ListOpsRecipe] = {
    "smoke": ListOpsRecipe(**_SMOKE, tokens=64, grammar=Grammar(19, 65, 4, 5), examples=500, held_out=250),
    "proxy": ListOpsRecipe(
        **{**_PROXY, "measured": 0}, reports=4, steps=1000, batch=32, lr=2e-3, tokens=64, landmarks=16,
        grammar=Grammar(19, 65, 4, 5), examples=32_000, held_out=2000,
    ),
    "paper": ListOpsRecipe(
        **_PAPER, steps=5000, batch=32, warmup=1000 / 5000, reports=100, tokens=2048,
        grammar=Grammar(500, 2000, 10, 10), examples=96_000, held_out=2000,
    ),
}  # fmt: skip
TEXT: Mapping[str, LongRangeRecipe] = {
    "smoke": LongRangeRecipe(**_SMOKE, tokens=64),
    "proxy": LongRangeRecipe(**_PROXY, steps=300, batch=16, lr=1e-3, tokens=512, landmarks=32),
    "paper": LongRangeRecipe(**_PAPER, steps=20_000, batch=32, warmup=8000 / 20_000, reports=40, tokens=4096),
}
RETRIEVAL: Mapping[str, LongRangeRecipe] = {
    "smoke": LongRangeRecipe(**_SMOKE, tokens=64),
    "proxy": LongRangeRecipe(**_PROXY, steps=300, batch=8, lr=1e-3, tokens=512, landmarks=32),
    "paper": LongRangeRecipe(**_PAPER, steps=30_000, batch=32, warmup=800 / 30_000, reports=100, tokens=4096),
}
IMAGE: Mapping[str, LongRangeRecipe] = {
    "smoke": LongRangeRecipe(**_SMOKE, tokens=1024),
    "proxy": LongRangeRecipe(**_PROXY, steps=200, batch=16, lr=1e-3, tokens=1024, landmarks=32),
    "paper": LongRangeRecipe(**_PAPER, steps=35_000, batch=256, warmup=175 / 35_000, reports=200, tokens=1024),
}
PATHFINDER: Mapping[str, PathfinderRecipe] = {
    "smoke": PathfinderRecipe(**_SMOKE, tokens=1024, examples=40),
    "proxy": PathfinderRecipe(**_PROXY, steps=200, batch=16, lr=1e-3, tokens=1024, landmarks=32, examples=4000),
    "paper": PathfinderRecipe(
        **_PAPER, steps=62_400, batch=256, warmup=312 / 62_400, reports=200, tokens=1024, examples=200_000
    ),
}
