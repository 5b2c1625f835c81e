"""Recipes of the Long Range Arena: Nyströmformer's (Xiong et al., 2021, code for LRA), and quick ones for a CPU.

The published training is AdamW without decay and a one-cycle policy with linear decay, with torch's cycle of the first
beta from 0.95 to 0.85 and back. Unlike here, its epsilon is 1e-6, its warm-up starts at 1/25 of the learning rate, it
computes in fp16, and it tests the weights that are best on validation. For texts its configuration has 4,000 bytes and
its data script 1,000: "paper" has the former, `tokens=1024` the latter.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from search_spaces.layers.nystrom import Scaling
from search_spaces.models.encoder import Pooling
from tasks.lra.list_grammar import Grammar
from tasks.recipes.recipe import Recipe
from tasks.recipes.settings import AtLeastOne, UnitInterval


@dataclass(frozen=True, slots=True, kw_only=True)
class LongRangeRecipe(Recipe):
    """A recipe for long sequences.

    Attributes:
        tokens: Length to which sequences are truncated; at most the network's positions.
        landmarks: Landmarks of the attention in training; sequences of no more tokens get exact attention.
        dropout: Dropout in training.
        pooling: Positions of the mean: a text's tokens, or all positions up to its padded length. The published code
            does the latter, so that a text's length scales its features.
        scaling: Start of the pseudo-inverse, see `search_spaces.layers.nystrom.Nystrom`.
    """

    tokens: AtLeastOne
    landmarks: AtLeastOne = 64
    dropout: UnitInterval = 0.1
    pooling: Pooling = "tokens"
    scaling: Scaling = "matrix"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOpsRecipe(LongRangeRecipe):
    """A recipe with generated lists.

    Attributes:
        longer_than: Exclusive lower bound of a list's tokens, without round brackets.
        shorter_than: Exclusive upper bound of a list's tokens.
        levels: Levels of operators and digits; the last has only digits.
        arguments: Maximum arguments of an operator; the minimum is 2.
        examples: Number of training lists.
        held_out: Number of validation lists, and of test lists.
    """

    longer_than: AtLeastOne
    shorter_than: AtLeastOne
    levels: AtLeastOne
    arguments: AtLeastOne
    examples: AtLeastOne
    held_out: AtLeastOne

    def __post_init__(self) -> None:
        Recipe.__post_init__(self)  # a class with slots has no super() of its own before Python 3.14
        _ = self.grammar  # raises if there are no such lists

    @property
    def grammar(self) -> Grammar:
        """The grammar of the lists."""
        return Grammar(self.longer_than, self.shorter_than, self.levels, self.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class PathfinderRecipe(LongRangeRecipe):
    """A recipe with generated images.

    Attributes:
        examples: Number of images in all: a tenth for validation and a tenth for test.
        single_dashes: Whether images have single dashes wherever there is room, another reading of the generator's
            "default parameters".
    """

    examples: AtLeastOne
    single_dashes: bool = False


_PAPER: Mapping[str, Any] = {
    "lr": 1e-4,
    "beta_cycle": (0.95, 0.85),
    "pooling": "positions",
    "scaling": "batch",
    "weight_decay": 0.0,
    "schedule": "linear",
    "clip": 0.0,
    "precision": "bf16-mixed",
}
_PROXY: Mapping[str, Any] = {"weight_decay": 0.0, "dropout": 0.0, "measured": 1000}
_SHORT: Mapping[str, Any] = {"longer_than": 19, "shorter_than": 65, "levels": 4, "arguments": 5}
_LONG: Mapping[str, Any] = {"longer_than": 500, "shorter_than": 2000, "levels": 10, "arguments": 10}
_SMOKE: Mapping[str, Any] = {**_PROXY, "steps": 4, "batch": 4, "lr": 1e-3, "landmarks": 8, "measured": 8, "reports": 2}

LISTOPS: Mapping[str, ListOpsRecipe] = {
    "smoke": ListOpsRecipe(**_SMOKE, **_SHORT, tokens=64, examples=500, held_out=250),
    "proxy": ListOpsRecipe(
        **{**_PROXY, "measured": 0}, **_SHORT, reports=4, steps=1000, batch=32, lr=2e-3, tokens=64, landmarks=16,
        examples=32_000, held_out=2000,
    ),
    "paper": ListOpsRecipe(
        **_PAPER, **_LONG, steps=5000, batch=32, warmup=1000 / 5000, reports=100, tokens=2048,
        examples=96_000, held_out=2000,
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
