"""Residual Matrix Transformers: the cost of a larger residual stream (section 3.1), by counting.

The paper counts an embedding lookup as a product with the whole vocabulary. Here that product is added to the counts.
"""

import math

from nas.costs.count import budget_counts
from nas.papers.claims import Claim, Experiment, Values
from tasks.language.published_tasks import OpenWebTextLM

_PERCENT = "% more by count for twice the stream"

_CASES = (
    ("transformer, from 1024", "transformer-405m", "width=1024", "width=2048", 100, 94),
    ("RMT, from 16 x 64", "rmt-305m", "topology=rmt(keys=16)", "topology=rmt(keys=32)", None, None),
    ("RMT, from 64 x 64", "rmt-305m", "topology=rmt(keys=64)", "topology=rmt(keys=128)", None, None),
)
"""Name, preset, before, after, printed percentages: transformer 100 and about 94 %, RMT less than 1 %."""


def _claim(name: str, quantity: str, percent: int | None) -> Claim:
    return Claim(
        name=f"{name}, {quantity}",
        source="section 3.1",
        statement=f"twice the stream has {f'{percent} %' if percent else 'less than 1 %'} more {quantity}",
        quantity=_PERCENT,
        low=percent - 0.5 if percent else -math.inf,
        high=percent + 0.5 if percent else 1.0,
    )


class Scaling(Experiment):
    """GPT-2 medium with twice the residual stream: width of the transformer, keys of the RMT."""

    paper = "rmt"
    setting = "openwebtext-lm's transformer of 405M and RMT of 305M; counts, of FLOPs for one sequence of 512"
    exact = True
    claims = tuple(
        _claim(name, quantity, percent)
        for name, *_, params, flops in _CASES
        for quantity, percent in (("parameters", params), ("FLOPs", flops))
    )

    def values(self) -> Values:
        """Count both networks of each case."""
        increases = {}
        for name, preset, before, after, *_ in _CASES:
            small, large = (_counts(preset, change) for change in (before, after))
            for quantity in small:
                increases[f"{name}, {quantity}"] = [100 * (large[quantity] / small[quantity] - 1)]
        return increases


def _counts(preset: str, change: str) -> dict[str, int]:
    task = OpenWebTextLM()
    field, _, value = change.partition("=")
    architecture = task.base_for(preset).with_fields({field: int(value) if value.isdigit() else value})
    counts = budget_counts(task, architecture)
    lookups = 2 * task.context * task.vocabulary * architecture.width
    return {"parameters": counts["params"], "FLOPs": counts["flops"] + lookups}
