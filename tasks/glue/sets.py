"""What a set of GLUE is: texts, one or two of them at a time, with an answer.

Shapes: E = examples.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tasks.glue.scores import SCORES, Answers

Text = tuple[str, ...]
"""A sentence, or two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GlueSet:
    """A set by its form.

    Attributes:
        name: What its metric is called.
        labels: What the classes are called, by number; () where the answer is a number.
        scores: Of SCORES; their mean is what the set counts with.
    """

    name: str
    labels: tuple[str, ...]
    scores: tuple[str, ...]

    @property
    def outputs(self) -> int:
        """How many numbers a network gives: one for each class, or the answer."""
        return len(self.labels) or 1

    def score(self, predictions: Answers, answers: Answers, group: Answers) -> Mapping[str, float]:
        """The set's score by its name and, where it is a mean, each by NAME_SCORE: of all that is predicted, each [E].

        Each is the mean over groups, as GLUE's of MNLI is over the two that its development set has.
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
    """Texts and their answers: numbers of classes, or numbers.

    Attributes:
        texts: Each of one sentence, or each of two, E.
        answers: As many.
        documents: What each is from; none where each is by itself.
    """

    texts: list[Text]
    answers: list[float]
    documents: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SetTexts:
    """What a set holds.

    Attributes:
        train: What GLUE gives to train on.
        dev: Its development set, in the groups that are scored apart.
    """

    train: LabelledTexts
    dev: tuple[LabelledTexts, ...]
