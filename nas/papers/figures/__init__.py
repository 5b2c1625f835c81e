"""Figures of papers, drawn anew from the problem that they state: curves of losses, in decades, over seeds.

A figure's panel has a curve a network. What papers leave open (sizes, rates, seeds) is said in `nas.papers.claims`,
whose networks these are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev
from typing import Any


@dataclass(frozen=True, slots=True)
class Curve:
    """How one network does.

    Attributes:
        network: What it is called, in the panel's words.
        at: Where it is measured: after so many steps, or with so many layers.
        decades: At each of these, log10 of the loss of each seed.
        highlight: Whether it is drawn in a colour of its own.
    """

    network: str
    at: Sequence[int]
    decades: Sequence[Sequence[float]]
    highlight: bool = True

    @property
    def means(self) -> list[float]:
        """Over seeds."""
        return [fmean(values) for values in self.decades]

    @property
    def errors(self) -> list[float]:
        """Standard errors over seeds; 0 of one seed."""
        return [stdev(values) / sqrt(len(values)) if len(values) > 1 else 0.0 for values in self.decades]


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel of a figure.

    Attributes:
        paper: Whose it is.
        figure: Its number there, "2 (a)".
        statement: What the paper says that it shows, in other words.
        across: What `at` counts: "steps" or "layers".
        curves: What came out.
    """

    paper: str
    figure: str
    statement: str
    across: str
    curves: Sequence[Curve]

    def records(self) -> list[dict[str, Any]]:
        """A flat record a point."""
        return [
            {
                "paper": self.paper,
                "figure": self.figure,
                "network": curve.network,
                self.across: at,
                "log10_loss": mean,
                "log10_loss_se": error,
                "seeds": len(curve.decades[0]),
            }
            for curve in self.curves
            for at, mean, error in zip(curve.at, curve.means, curve.errors, strict=True)
        ]
