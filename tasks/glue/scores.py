"""GLUE's scores: 1 is perfect; an uninformative prediction has correlation 0.

Shapes: E = examples.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Answers = NDArray[Any]
Score = Callable[[Answers, Answers], float]
"""A function of predictions [E] and true answers [E]."""


def accuracy(predictions: Answers, answers: Answers) -> float:
    """Return the fraction of correct predictions."""
    return float(np.mean(predictions == answers))


def f1(predictions: Answers, answers: Answers) -> float:
    """Return the F1 score of class 1; 0 if it is never predicted."""
    from sklearn.metrics import f1_score

    return float(f1_score(answers, predictions, zero_division=0.0))


def matthews(predictions: Answers, answers: Answers) -> float:
    """Return the Matthews correlation of classes; 0 if predictions or answers are constant."""
    from sklearn.metrics import matthews_corrcoef

    return float(matthews_corrcoef(answers, predictions)) if np.ptp(predictions) and np.ptp(answers) else 0.0


def pearson(predictions: Answers, answers: Answers) -> float:
    """Return the Pearson correlation; 0 if predictions or answers are constant."""
    from scipy.stats import pearsonr

    return float(pearsonr(predictions, answers).statistic) if np.ptp(predictions) and np.ptp(answers) else 0.0


def spearman(predictions: Answers, answers: Answers) -> float:
    """Return the Spearman rank correlation; 0 if predictions or answers are constant."""
    from scipy.stats import spearmanr

    return float(spearmanr(predictions, answers).statistic) if np.ptp(predictions) and np.ptp(answers) else 0.0


SCORES: Mapping[str, Score] = {
    "accuracy": accuracy,
    "f1": f1,
    "matthews": matthews,
    "pearson": pearson,
    "spearman": spearman,
}
