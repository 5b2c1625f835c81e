"""Speed of generating ListOps, relative to the recursion as its authors wrote it.

One core makes lists of the published lengths both ways. The peer draws every tree to its end and then checks its
length, as lra_benchmarks/data/listops.py does. Then all cores make the published 100,000 lists without the cache. With
--quick, that time is extrapolated from one block on one core.
"""

import random
import time

from benchmarks.form import Figure, main
from tasks.lra.list_grammar import generate, make_block
from tasks.lra.lra_presets import LISTOPS

_PAPER = LISTOPS["paper"]
_OPERATOR_SHARE = 0.25


def literal(draw: random.Random, depth: int) -> tuple[object, int]:
    """Draw a tree of any length; return it and its length."""
    if depth >= _PAPER.grammar.levels or draw.random() > _OPERATOR_SHARE:
        return draw.choice(range(10)), 1
    arguments = [literal(draw, depth + 1) for _ in range(draw.randint(2, _PAPER.grammar.arguments))]
    return (draw.choice(("MIN", "MAX", "MED", "SM")), arguments), 2 + sum(length for _, length in arguments)


def literal_lists_per_second(lists: int) -> float:
    """Return the peer's lists per second of the published lengths on one core, drawn to the end and not evaluated."""
    draw, count, began = random.Random(0), 0, time.process_time()
    while count < lists:
        _, length = literal(draw, 1)
        count += _PAPER.grammar.longer_than < length < _PAPER.grammar.shorter_than
    return lists / (time.process_time() - began)


def lists_per_second(lists: int) -> float:
    """Return the lists that one core makes and evaluates in a second."""
    began = time.process_time()
    make_block(_PAPER.grammar, seed=0, size=lists, number=0)
    return lists / (time.process_time() - began)


def figures(quick: bool) -> dict[str, Figure]:
    """Measure lists per second on one core, and the time of the published number."""
    lists, total = (1000 if quick else 5000), _PAPER.examples + 2 * _PAPER.held_out
    ours, theirs = lists_per_second(lists), literal_lists_per_second(lists)
    seconds = total / ours
    if not quick:
        began = time.perf_counter()
        generate(_PAPER.grammar, total, seed=0)
        seconds = time.perf_counter() - began
    return {
        "lists_per_second": Figure(ours, "lists/s", "higher", peers={"drawn to the end": theirs}),
        "published_lists_seconds": Figure(seconds, "s", "lower", target=600),
    }


if __name__ == "__main__":
    main("listops", figures)
