"""Leaner Transformers: the condition number of untrained attention by its heads (theorem 3.1, figure 1).

The network is digits-vit's with one block, and the inputs are its first validation images; `nas.costs.conditioning`
defines the measure. If all heads together have fewer than 16 features (N = 16 tokens), it leaves out a null space.
"""

import math
from collections.abc import Iterable
from itertools import pairwise

import torch

from nas.costs.conditioning import conditioning_metrics
from nas.papers.claims import Claim, Experiment, Values
from tasks.vision.digits import DigitsViT

_HEADS, _HEAD_DIM = (1, 2, 4, 8, 16), 8
_HEAD_DIMS, _FIXED_HEADS = (2, 4, 8, 16), 4
_INNER = ((1, 64), (8, 8))
"""Shapes (heads, head_dim) with the same total number of features."""

Shape = tuple[int, int]

_LOG = "log10 of the first condition number over the second"


def _name(few: Shape, many: Shape) -> str:
    return f"{few[0]} x {few[1]} over {many[0]} x {many[1]}"


def _claims() -> Iterable[tuple[Shape, Shape, Claim]]:
    by_heads = [((few, _HEAD_DIM), (many, _HEAD_DIM)) for few, many in pairwise(_HEADS)]
    by_dim = [((_FIXED_HEADS, few), (_FIXED_HEADS, many)) for few, many in pairwise(_HEAD_DIMS)]
    for pairs, source, effect in (
        (by_heads, "theorem 3.1, figure 1 left", "more heads of as many features are better conditioned"),
        (by_dim, "theorem A.2, figure 1 right", "as many heads of more features are better conditioned"),
        ([_INNER], "section 1", "several heads are better conditioned, here than one of as many features in all"),
    ):
        for few, many in pairs:
            statement = f"{effect}: {many[0]} of {many[1]} than {few[0]} of {few[1]}"
            yield few, many, Claim(name=_name(few, many), source=source, statement=statement, quantity=_LOG)


class HeadConditioning(Experiment):
    """Condition numbers with few or narrow heads, relative to more or wider heads."""

    paper = "leaner"
    setting = "digits-vit with one block of width 32, untrained, 6 seeds"
    claims = tuple(claim for *_, claim in _claims())

    def __init__(self, seeds: int = 6) -> None:
        self.seeds = seeds

    def values(self) -> Values:
        """Measure each shape with each seed."""
        pairs = [(few, many) for few, many, _ in _claims()]
        shapes = {shape for pair in pairs for shape in pair}
        decades = {shape: [_decades(shape, seed) for seed in range(self.seeds)] for shape in sorted(shapes)}
        return {
            _name(few, many): [a - b for a, b in zip(decades[few], decades[many], strict=True)] for few, many in pairs
        }


def _decades(shape: Shape, seed: int) -> float:
    """Return log10 of the mean condition number."""
    task = DigitsViT()
    architecture = task.base.with_fields({"depth": 1, "heads": shape[0], "head_dim": shape[1]})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = task.build(architecture)
    images, _ = task.load().validation
    return math.log10(conditioning_metrics(network, (images,))["condition_number"])
