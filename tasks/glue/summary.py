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


def scored(of: GlueSet, arrays: Mapping[str, np.ndarray[Any, Any]]) -> Columns:
    """Scores of what is "predicted" of texts with an "answer", a "group" and a "document", each [E], with errors."""
    predicted, answer, group = arrays["predicted"], arrays["answer"], arrays["group"]
    return jackknife(lambda which: of.scored(predicted[which], answer[which], group[which]), arrays["document"])


def mean_over_sets(found: Mapping[str, Mapping[str, float]]) -> Columns:
    """The mean over sets, as `score`, and each of them, from the scores of each; with standard errors."""
    columns = {"score": float(np.mean([found[name][name] for name in found]))}
    errors = {f"{name}_se": scores[f"{name}_se"] for name, scores in found.items() if f"{name}_se" in scores}
    if len(errors) == len(found):
        columns["score_se"] = math.sqrt(sum(error**2 for error in errors.values())) / len(found)
    return columns | {name: found[name][name] for name in found} | errors


def component_scores(found: Mapping[str, Mapping[str, float]]) -> Columns:
    """Of sets whose score is a mean of several, each of these."""
    return {
        name: value for of, scores in found.items() for name, value in scores.items() if name.removesuffix("_se") != of
    }


def majority(of: GlueSet, splits: TensorSplits, part: Part, recipe: GlueRecipe) -> Columns:
    """What is reached by always giving the answer that is the most frequent in training, or their mean."""
    learnt = splits.train[1]["answer"]
    usual = learnt.mode().values if of.labels else learnt.mean()
    batches = [targets for _, targets in splits.measured(part, recipe, torch.device("cpu"))]
    arrays = {name: torch.cat([targets[name] for targets in batches]).numpy() for name in batches[0]}
    return scored(of, {**arrays, "predicted": np.full(len(arrays["answer"]), usual.item())})
