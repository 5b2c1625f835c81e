"""GLUE's sets: texts of one or two sentences with an answer.

Shapes: E = examples.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tasks.glue.scores import SCORES, Answers

Text = tuple[str, ...]
"""One or two sentences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GlueSet:
    """The format of a set.

    Attributes:
        name: Name of its metric.
        labels: Names of the classes, by number; () for regression.
        scores: Keys of SCORES; their mean is the set's metric.
    """

    name: str
    labels: tuple[str, ...]
    scores: tuple[str, ...]

    @property
    def outputs(self) -> int:
        """Number of network outputs: one per class, or 1 for regression."""
        return len(self.labels) or 1

    def score(self, predictions: Answers, answers: Answers, group: Answers) -> Mapping[str, float]:
        """Return the set's score by name and, if it is a mean, each part as NAME_SCORE, for arrays [E] each.

        Each score is the mean over groups, as GLUE averages MNLI over its two development sets.
        """
        by_score = {
            name: float(
                np.mean(
                    [
                        SCORES[name](predictions[group == number], answers[group == number])
                        for number in np.unique(group)
                    ]
                )
            )
            for name in self.scores
        }
        columns = {self.name: float(np.mean(list(by_score.values())))}
        if len(by_score) > 1:
            columns |= {f"{self.name}_{name}": value for name, value in by_score.items()}
        return columns


@dataclass(frozen=True, slots=True)
class LabelledTexts:
    """Texts with their answers: class numbers, or values.

    Attributes:
        texts: Texts of one sentence each, or of two, E.
        answers: An answer for each text.
        documents: Source document of each text; empty if every text has its own.
    """

    texts: list[Text]
    answers: list[float]
    documents: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class GlueSetData:
    """The texts of a set.

    Attributes:
        train: GLUE's training set.
        dev: GLUE's development set, in groups that are scored separately.
    """

    train: LabelledTexts
    dev: tuple[LabelledTexts, ...]
