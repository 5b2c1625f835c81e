"""Figures of papers, computed again from the problems that they state: losses in decades, over seeds.

A panel has a curve for each network. `nas.papers.claims` has the networks, and what the papers leave open (sizes,
rates, seeds).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev
from typing import Any


@dataclass(frozen=True, slots=True)
class Curve:
    """The losses of one network.

    Attributes:
        network: Its label in the panel.
        x: Numbers of steps or of layers at which the loss is measured.
        decades: For each of these, log10 of the loss of each seed.
        highlight: Whether it has its own color.
    """

    network: str
    x: Sequence[int]
    decades: Sequence[Sequence[float]]
    highlight: bool = True

    @property
    def means(self) -> list[float]:
        """Means over seeds."""
        return [fmean(values) for values in self.decades]

    @property
    def errors(self) -> list[float]:
        """Standard errors over seeds; 0 with one seed."""
        return [stdev(values) / sqrt(len(values)) if len(values) > 1 else 0.0 for values in self.decades]


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel of a figure.

    Attributes:
        paper: Name of the paper.
        figure: Number of the figure, "2 (a)".
        statement: A paraphrase of what the paper says about it.
        x_name: What `x` counts: "steps" or "layers".
        curves: The curves.
    """

    paper: str
    figure: str
    statement: str
    x_name: str
    curves: Sequence[Curve]

    def records(self) -> list[dict[str, Any]]:
        """Return a flat record for each point."""
        return [
            {
                "paper": self.paper,
                "figure": self.figure,
                "network": curve.network,
                self.x_name: x,
                "log10_loss": mean,
                "log10_loss_se": error,
                "seeds": len(curve.decades[0]),
            }
            for curve in self.curves
            for x, mean, error in zip(curve.x, curve.means, curve.errors, strict=True)
        ]
