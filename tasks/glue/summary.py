"""Scores of predictions with standard errors: per set, and the mean over sets.

Shapes: E = examples.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from tasks.data.jackknife import jackknife
from tasks.data.splits import Part, TensorSplits
from tasks.glue.recipe import GlueRecipe
from tasks.glue.sets import GlueSet

Columns = dict[str, float]


def score_columns(glue_set: GlueSet, arrays: Mapping[str, np.ndarray[Any, Any]]) -> Columns:
    """Return scores with standard errors of "predicted" against "answer", by "group" and "document", each [E]."""
    predictions, answer, group = arrays["predicted"], arrays["answer"], arrays["group"]
    return jackknife(
        lambda indices: glue_set.score(predictions[indices], answer[indices], group[indices]), arrays["document"]
    )


def mean_over_sets(by_set: Mapping[str, Mapping[str, float]]) -> Columns:
    """Return the mean over sets, as `score`, and the score of each set, with standard errors."""
    columns = {"score": float(np.mean([by_set[name][name] for name in by_set]))}
    errors = {f"{name}_se": scores[f"{name}_se"] for name, scores in by_set.items() if f"{name}_se" in scores}
    if len(errors) == len(by_set):
        columns["score_se"] = math.sqrt(sum(error**2 for error in errors.values())) / len(by_set)
    return columns | {name: by_set[name][name] for name in by_set} | errors


def component_scores(by_set: Mapping[str, Mapping[str, float]]) -> Columns:
    """Return the component scores of sets whose score is a mean of several."""
    return {
        name: value
        for set_name, scores in by_set.items()
        for name, value in scores.items()
        if name.removesuffix("_se") != set_name
    }


def majority(glue_set: GlueSet, splits: TensorSplits, part: Part, recipe: GlueRecipe) -> Columns:
    """Return the scores of the most frequent training answer, or of the mean answer for regression."""
    learned = splits.train[1]["answer"]
    usual = learned.mode().values if glue_set.labels else learned.mean()
    batches = [targets for _, targets in splits.evaluation_batches(part, recipe, torch.device("cpu"))]
    arrays = {name: torch.cat([targets[name] for targets in batches]).numpy() for name in batches[0]}
    return score_columns(glue_set, {**arrays, "predicted": np.full(len(arrays["answer"]), usual.item())})
