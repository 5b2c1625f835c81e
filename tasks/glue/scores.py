"""How GLUE scores answers: 1 is perfect, and a correlation with what tells nothing is 0.

Shapes: E = examples.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Answers = NDArray[Any]
Score = Callable[[Answers, Answers], float]
"""Of what a network says [E] and of the true answers [E]."""


def accuracy(predictions: Answers, answers: Answers) -> float:
    """The share that is right."""
    return float(np.mean(predictions == answers))


def f1(predictions: Answers, answers: Answers) -> float:
    """Of class 1; 0 where it is never said."""
    from sklearn.metrics import f1_score

    return float(f1_score(answers, predictions, zero_division=0.0))


def matthews(predictions: Answers, answers: Answers) -> float:
    """Matthews' correlation of classes; 0 where always the same is said."""
    from sklearn.metrics import matthews_corrcoef

    return float(matthews_corrcoef(answers, predictions)) if np.ptp(predictions) and np.ptp(answers) else 0.0


def pearson(predictions: Answers, answers: Answers) -> float:
    """The correlation of numbers; 0 where one of both does not vary."""
    from scipy.stats import pearsonr

    return float(pearsonr(predictions, answers).statistic) if np.ptp(predictions) and np.ptp(answers) else 0.0


def spearman(predictions: Answers, answers: Answers) -> float:
    """The correlation of their ranks; 0 where one of both does not vary."""
    from scipy.stats import spearmanr

    return float(spearmanr(predictions, answers).statistic) if np.ptp(predictions) and np.ptp(answers) else 0.0


SCORES: Mapping[str, Score] = {
    "accuracy": accuracy,
    "f1": f1,
    "matthews": matthews,
    "pearson": pearson,
    "spearman": spearman,
}
