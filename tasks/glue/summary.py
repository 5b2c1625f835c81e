"""What was predicted of the texts of sets, as scores with standard errors: of a set, and of all sets.

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
    """Scores of what is "predicted" of texts with an "answer", a "group" and a "document", each [E], with errors."""
    predictions, answer, group = arrays["predicted"], arrays["answer"], arrays["group"]
    return jackknife(
        lambda indices: glue_set.score(predictions[indices], answer[indices], group[indices]), arrays["document"]
    )


def mean_over_sets(by_set: Mapping[str, Mapping[str, float]]) -> Columns:
    """The mean over sets, as `score`, and each of them, from the scores of each; with standard errors."""
    columns = {"score": float(np.mean([by_set[name][name] for name in by_set]))}
    errors = {f"{name}_se": scores[f"{name}_se"] for name, scores in by_set.items() if f"{name}_se" in scores}
    if len(errors) == len(by_set):
        columns["score_se"] = math.sqrt(sum(error**2 for error in errors.values())) / len(by_set)
    return columns | {name: by_set[name][name] for name in by_set} | errors


def component_scores(by_set: Mapping[str, Mapping[str, float]]) -> Columns:
    """Of sets whose score is a mean of several, each of these."""
    return {
        name: value
        for set_name, scores in by_set.items()
        for name, value in scores.items()
        if name.removesuffix("_se") != set_name
    }


def majority(glue_set: GlueSet, splits: TensorSplits, part: Part, recipe: GlueRecipe) -> Columns:
    """What is reached by always giving the answer that is the most frequent in training, or their mean."""
    learnt = splits.train[1]["answer"]
    usual = learnt.mode().values if glue_set.labels else learnt.mean()
    batches = [targets for _, targets in splits.evaluation_batches(part, recipe, torch.device("cpu"))]
    arrays = {name: torch.cat([targets[name] for targets in batches]).numpy() for name in batches[0]}
    return score_columns(glue_set, {**arrays, "predicted": np.full(len(arrays["answer"]), usual.item())})
