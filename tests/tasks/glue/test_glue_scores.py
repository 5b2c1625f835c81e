"""GLUE's scores against hand-computed values, and their means."""

import math

import numpy as np
import pytest

from tasks.glue.scores import accuracy, f1, matthews, pearson, spearman
from tasks.glue.sets import GlueSet
from tasks.glue.summary import component_scores, mean_over_sets, score_columns

DRAW = np.random.default_rng(0)
PREDICTIONS, ANSWERS = DRAW.integers(2, size=200), DRAW.integers(2, size=200)
ANSWERS = np.where(DRAW.random(200) < 0.4, PREDICTIONS, ANSWERS)
TRUE_YES = sum(1 for guess, answer in zip(PREDICTIONS, ANSWERS, strict=True) if guess == answer == 1)
TRUE_NO = sum(1 for guess, answer in zip(PREDICTIONS, ANSWERS, strict=True) if guess == answer == 0)
FALSE_YES = sum(1 for guess, answer in zip(PREDICTIONS, ANSWERS, strict=True) if guess > answer)
FALSE_NO = sum(1 for guess, answer in zip(PREDICTIONS, ANSWERS, strict=True) if guess < answer)


def correlation(first: list[float], second: list[float]) -> float:
    """Pearson's correlation."""
    mean, other_mean = sum(first) / len(first), sum(second) / len(second)
    products = sum((a - mean) * (b - other_mean) for a, b in zip(first, second, strict=True))
    return products / math.sqrt(sum((a - mean) ** 2 for a in first) * sum((b - other_mean) ** 2 for b in second))


def test_classification_scores_match_the_confusion_matrix() -> None:
    assert accuracy(PREDICTIONS, ANSWERS) == pytest.approx((TRUE_YES + TRUE_NO) / 200)
    assert f1(PREDICTIONS, ANSWERS) == pytest.approx(2 * TRUE_YES / (2 * TRUE_YES + FALSE_YES + FALSE_NO))
    under = (TRUE_YES + FALSE_YES) * (TRUE_YES + FALSE_NO) * (TRUE_NO + FALSE_YES) * (TRUE_NO + FALSE_NO)
    expected = (TRUE_YES * TRUE_NO - FALSE_YES * FALSE_NO) / math.sqrt(under)
    assert matthews(PREDICTIONS, ANSWERS) == pytest.approx(expected)


def test_correlations_match_the_textbook_formula() -> None:
    predictions, answers = DRAW.normal(size=50), DRAW.normal(size=50)
    assert pearson(predictions, answers) == pytest.approx(correlation(list(predictions), list(answers)))
    ranks = [[sum(other < value for other in values) for value in values] for values in (predictions, answers)]
    assert spearman(predictions, answers) == pytest.approx(correlation(*ranks))
    assert pearson(2 * answers + 1, answers) == pytest.approx(1)
    assert spearman(np.exp(answers), answers) == pytest.approx(1)


def test_constant_predictions_have_no_correlation() -> None:
    scores = {
        (score.__name__, always): score(np.full(200, always), ANSWERS)
        for score in (matthews, pearson, spearman)
        for always in (0.0, 1.0)
    }
    assert set(scores.values()) == {0}, scores


def test_f1_of_constant_predictions() -> None:
    assert f1(np.zeros(200), ANSWERS) == 0
    share = ANSWERS.mean()
    assert f1(np.ones(200), ANSWERS) == pytest.approx(2 * share / (1 + share))


def test_a_sets_score_is_the_mean_over_scores_and_groups() -> None:
    of = GlueSet(name="twice", labels=("0", "1"), scores=("accuracy", "f1"))
    group = np.arange(200) >= 150
    metrics = of.score(PREDICTIONS, ANSWERS, group)
    each = [accuracy(PREDICTIONS[:150], ANSWERS[:150]), accuracy(PREDICTIONS[150:], ANSWERS[150:])]
    assert metrics["twice_accuracy"] == pytest.approx(sum(each) / 2)
    assert metrics["twice"] == pytest.approx((metrics["twice_accuracy"] + metrics["twice_f1"]) / 2)
    glue_set = GlueSet(name="one", labels=("0", "1"), scores=("accuracy",))
    assert glue_set.score(PREDICTIONS, ANSWERS, group) == {"one": pytest.approx(sum(each) / 2)}


def test_standard_error_of_accuracy_is_the_binomial_one() -> None:
    of = GlueSet(name="one", labels=("0", "1"), scores=("accuracy",))
    draw = np.random.default_rng(0)
    answer = draw.integers(2, size=4000)
    predictions = np.where(draw.random(4000) < 0.5, answer, draw.integers(2, size=4000))
    metrics = score_columns(
        of, {"predicted": predictions, "answer": answer, "group": np.zeros(4000), "document": np.arange(4000)}
    )
    assert metrics["one_se"] == pytest.approx(math.sqrt(metrics["one"] * (1 - metrics["one"]) / 4000), rel=0.5)


def test_standard_errors_are_over_documents() -> None:
    of = GlueSet(name="one", labels=("0", "1"), scores=("accuracy",))
    group, document = np.zeros(200), np.arange(200)
    once = score_columns(of, {"predicted": PREDICTIONS, "answer": ANSWERS, "group": group, "document": document})
    four = {"predicted": PREDICTIONS, "answer": ANSWERS, "group": group, "document": document}
    order = np.random.default_rng(3).permutation(800)
    assert score_columns(of, {name: np.tile(values, 4)[order] for name, values in four.items()}) == {
        "one": pytest.approx(once["one"]),
        "one_se": pytest.approx(once["one_se"], rel=1e-6),
    }


def test_overall_score_is_the_mean_over_sets() -> None:
    sets = {"one": {"one": 0.5, "one_se": 0.03}, "two": {"two": 0.7, "two_se": 0.04, "two_f1": 0.9, "two_f1_se": 0.1}}
    assert mean_over_sets(sets) == {
        "score": pytest.approx(0.6),
        "score_se": pytest.approx(0.025),
        "one": 0.5,
        "one_se": 0.03,
        "two": 0.7,
        "two_se": 0.04,
    }
    assert component_scores(sets) == {"two_f1": 0.9, "two_f1_se": 0.1}
    assert "score_se" not in mean_over_sets({"one": {"one": 0.5}, "two": sets["two"]})
