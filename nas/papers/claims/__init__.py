"""Claims of papers, tested by small experiments over seeds.

Each claim says that a quantity lies in a range: above 0 if the paper says that something is better; if it prints a
number, whatever rounds to it. The quantity is measured once for each seed. Its mean has Student's interval at 95 % for
all claims of an experiment together (Bonferroni). The verdict is

- "agrees" if the whole interval lies in the range;
- "contradicts" if the whole interval lies outside;
- "not distinguishable" otherwise, and for a random quantity with one seed.

A quantity without randomness, such as a count, is its own interval.
"""

import math
import statistics
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, final

from results.stats.intervals import interval

Verdict = Literal["agrees", "contradicts", "not distinguishable"]

Values = Mapping[str, Sequence[float]]
"""Name of a claim -> its measured values, one for each seed."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A claim of a paper, as a range of a measurable quantity.

    Attributes:
        name: Its unique name.
        source: Table, figure, theorem or section.
        statement: A paraphrase of what the paper says.
        quantity: What is measured, with its unit.
        low: Lower end of the range in which the claim is true.
        high: Upper end of that range.
    """

    name: str
    source: str
    statement: str
    quantity: str
    low: float = 0.0
    high: float = math.inf


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """The result of testing a claim.

    Attributes:
        claim: The claim.
        values: The measured values, one for each seed.
        low: Lower end of the interval of their mean; None with one draw.
        high: Upper end of that interval; None with one draw.
        verdict: By the rule of this module.
    """

    claim: Claim
    values: tuple[float, ...]
    low: float | None
    high: float | None
    verdict: Verdict

    @property
    def mean(self) -> float:
        """Mean of the values."""
        return statistics.fmean(self.values)


class Experiment(ABC):
    """Claims of a paper that are measured together.

    Attributes:
        paper: Name of the paper.
        setting: One line about what is measured.
        claims: The claims, with unique names.
        exact: Whether the measurement has no randomness.
    """

    paper: str
    setting: str
    claims: tuple[Claim, ...]
    exact: bool = False

    @abstractmethod
    def values(self) -> Values:
        """Measure every claim."""

    def findings(self) -> list[Finding]:
        """Measure and judge every claim."""
        values = self.values()
        return [judge(claim, values[claim.name], len(self.claims), exact=self.exact) for claim in self.claims]


def judge(claim: Claim, values: Sequence[float], num_claims: int, *, exact: bool = False) -> Finding:
    """Judge one claim by its values; `num_claims` are measured together."""
    if exact:
        low = high = statistics.fmean(values)
    elif len(set(values)) < 2:  # one draw, or equal draws: their spread is unknown
        return Finding(claim, tuple(values), None, None, "not distinguishable")
    else:
        low, high = interval(values, num_claims)
    verdict: Verdict = "not distinguishable"
    if claim.low <= low and high <= claim.high:
        verdict = "agrees"
    elif high < claim.low or low > claim.high:
        verdict = "contradicts"
    return Finding(claim, tuple(values), low, high, verdict)
