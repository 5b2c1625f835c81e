"""What was said to the texts of sets, as scores with standard errors: of a set, and of all together.

Shapes: E = examples.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tasks.glue.sets import GlueSet
from tasks.jackknife import jackknife
from tasks.splits import Part, TensorSplits

Columns = dict[str, float]


def scored(of: GlueSet, arrays: Mapping[str, np.ndarray[Any, Any]]) -> Columns:
    """Scores of what is "said" to texts with an "answer" and a "group", each [E], with standard errors."""
    said, answer, group = arrays["said"], arrays["answer"], arrays["group"]
    return jackknife(lambda which: of.scored(said[which], answer[which], group[which]), len(said))


def together(found: Mapping[str, Mapping[str, float]]) -> Columns:
    """The mean over sets, as `score`, and each of them, from the scores of each; with standard errors."""
    columns = {"score": float(np.mean([found[name][name] for name in found]))}
    errors = {f"{name}_se": scores[f"{name}_se"] for name, scores in found.items() if f"{name}_se" in scores}
    if len(errors) == len(found):
        columns["score_se"] = math.sqrt(sum(error**2 for error in errors.values())) / len(found)
    return columns | {name: found[name][name] for name in found} | errors


def parts_of(found: Mapping[str, Mapping[str, float]]) -> Columns:
    """Of sets whose score is a mean of several, each of these."""
    return {
        name: value for of, scores in found.items() for name, value in scores.items() if name.removesuffix("_se") != of
    }


def majority(of: GlueSet, splits: TensorSplits, part: Part) -> Columns:
    """What is reached by always giving the answer that is the most frequent in training, or their mean."""
    learnt = splits.train[1]["answer"]
    targets = (splits.validation if part == "validation" else splits.test)[1]
    arrays = {name: values.numpy() for name, values in targets.items()}
    usual = learnt.mode().values if of.labels else learnt.mean()
    return scored(of, {**arrays, "said": np.full(len(arrays["answer"]), usual.item())})
