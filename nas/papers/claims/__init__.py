"""Claims of papers as small experiments: what is claimed, what came out over seeds, and one rule for what that means.

Each claim says that one quantity lies in a range: above 0 where a paper says that something is better, and where it
prints a number, whatever rounds to it. The quantity is measured once a seed, and the mean has Student's interval at
95 % for all claims of an experiment together (Bonferroni). Then

- "agrees": the whole interval lies in the range;
- "contradicts": the whole interval lies outside;
- "not distinguishable": anything else, and whatever has one seed that is a draw.

What holds no draw, such as a count, is its own interval.
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
"""Name of a claim -> what was measured, a number a seed."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a paper says, as a range of something that can be measured.

    Attributes:
        name: What it is known by.
        source: Table, figure, theorem or section.
        statement: What the paper says, in other words.
        quantity: What is measured, with its unit.
        low: The claim holds from here on ...
        high: ... up to here.
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
    """What came out of a claim.

    Attributes:
        claim: The claim.
        values: What was measured, a number a seed.
        low: Where the interval of their mean begins, and ...
        high: ... ends; both None with one draw.
        verdict: By the rule of this module.
    """

    claim: Claim
    values: tuple[float, ...]
    low: float | None
    high: float | None
    verdict: Verdict

    @property
    def mean(self) -> float:
        """Of the values."""
        return statistics.fmean(self.values)


class Experiment(ABC):
    """Claims of a paper that are measured together.

    Attributes:
        paper: Whose claims they are.
        setting: What is measured on, in a line.
        claims: The claims, each with a name of its own.
        exact: Whether nothing in it is drawn.
    """

    paper: str
    setting: str
    claims: tuple[Claim, ...]
    exact: bool = False

    @abstractmethod
    def values(self) -> Values:
        """Measure every claim."""

    def findings(self) -> list[Finding]:
        """What came out, claim by claim."""
        values = self.values()
        return [judge(claim, values[claim.name], len(self.claims), exact=self.exact) for claim in self.claims]


def judge(claim: Claim, values: Sequence[float], num_claims: int, *, exact: bool = False) -> Finding:
    """What values mean for one claim of so many that are measured together."""
    if exact:
        low = high = statistics.fmean(values)
    elif len(set(values)) < 2:  # one draw, or draws that agree to the last digit: of their spread nothing is known
        return Finding(claim, tuple(values), None, None, "not distinguishable")
    else:
        low, high = interval(values, num_claims)
    verdict: Verdict = "not distinguishable"
    if claim.low <= low and high <= claim.high:
        verdict = "agrees"
    elif high < claim.low or low > claim.high:
        verdict = "contradicts"
    return Finding(claim, tuple(values), low, high, verdict)
