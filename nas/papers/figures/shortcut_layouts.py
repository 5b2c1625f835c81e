"""ANCRe, figure 2: linear networks by depth, and by their shortcuts."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations

from nas.papers.claims.shortcuts import LinearNet, curve
from nas.papers.figures import Curve, Panel

SEEDS, EVERY = 20, 20
"""Seeds of each network, and steps between points of a curve."""

FAST = ("1:2+2:3", "0:2+2:3")
"""The pairs of shortcuts that the paper's text and its official code call fast."""


def panels(seeds: int = SEEDS) -> list[Panel]:
    """Return all three panels."""
    deep = [_train_curve(f"{layers} layers", LinearNet(layers), seeds) for layers in (2, 3, 4)]
    three = [
        _train_curve("none", LinearNet(3), seeds),
        _train_curve("cascaded", LinearNet(3, ((0, 1), (1, 2), (2, 3))), seeds),
        *(_train_curve(_label([skip]), LinearNet(3, (skip,)), seeds) for skip in _all_skips(3)),
        *_ancre_curves(3, seeds),
    ]
    four = [_train_curve("0:3 alone", LinearNet(4, ((0, 3),)), seeds), *_pairs(seeds), *_ancre_curves(4, seeds)]
    specs = (
        ("2 (a)", "without shortcuts, the deeper, the slower", deep),
        (
            "2 (b)",
            "of 3 layers, 0:1 or 0:2 alone beats cascaded, 0:2 by far; ANCRe is on a par with it",
            three,
        ),
        ("2 (c)", "of 4 layers, a second shortcut helps only where it is well placed; ANCRe is on a par", four),
    )
    return [Panel("ancre", figure, statement, "steps", curves) for figure, statement, curves in specs]


def _pairs(seeds: int) -> Iterable[Curve]:
    """Return a curve for every pair of shortcuts of four layers; FAST and the best pair are highlighted."""
    curves = [_train_curve(_label(pair), LinearNet(4, pair), seeds) for pair in combinations(_all_skips(4), 2)]
    best = min(curves, key=lambda curve: curve.means[-1]).network
    return [replace(curve, highlight=curve.network in (*FAST, best)) for curve in curves]


def _all_skips(layers: int) -> list[tuple[int, int]]:
    return list(combinations(range(layers + 1), 2))


def _label(skips: Iterable[tuple[int, int]]) -> str:
    return "+".join(f"{first}:{last}" for first, last in skips)


def _ancre_curves(layers: int, seeds: int) -> list[Curve]:
    return [_train_curve(f"ANCRe {tau:g}", LinearNet(layers, temperature=tau), seeds) for tau in (0.1, 0.01)]


def _train_curve(name: str, net: LinearNet, seeds: int) -> Curve:
    decades = curve(net, seeds).log10()
    at = range(0, len(decades), EVERY)
    return Curve(name, at, [decades[step].tolist() for step in at])
