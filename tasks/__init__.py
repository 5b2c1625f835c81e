"""Tasks: data, objectives, training and metrics."""

from typing import TYPE_CHECKING

from search_spaces.support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from tasks.adapters.hugging_face import EvalPrediction, HuggingFaceRecipe, HuggingFaceTask
    from tasks.adapters.lightning_module import LightningRecipe, LightningTask
    from tasks.base import Diverged, FitResult, Metric, Task
    from tasks.data.batches import Batch
    from tasks.data.example_splits import Examples
    from tasks.data.input_files import read_image
    from tasks.data.splits import TensorSplits
    from tasks.input_formats import ImageInputs, TableInputs, TextInputs
    from tasks.recipes.recipe import Recipe
    from tasks.recipes.settings import AtLeastOne, Positive
    from tasks.run import STOP, Run
    from tasks.training.classification import ClassificationTask
    from tasks.training.contract import check_task
    from tasks.training.loop import Training, checkpoint_for, isolated_rng, train
    from tasks.training.supervised import SupervisedTask, means_and_errors

__all__ = [
    "STOP",
    "AtLeastOne",
    "Batch",
    "ClassificationTask",
    "Diverged",
    "EvalPrediction",
    "Examples",
    "FitResult",
    "HuggingFaceRecipe",
    "HuggingFaceTask",
    "ImageInputs",
    "LightningRecipe",
    "LightningTask",
    "Metric",
    "Positive",
    "Recipe",
    "Run",
    "SupervisedTask",
    "TableInputs",
    "Task",
    "TensorSplits",
    "TextInputs",
    "Training",
    "check_task",
    "checkpoint_for",
    "isolated_rng",
    "means_and_errors",
    "read_image",
    "train",
]

_HOMES = {
    "AtLeastOne": "tasks.recipes.settings",
    "Batch": "tasks.data.batches",
    "ClassificationTask": "tasks.training.classification",
    "Diverged": "tasks.base",
    "EvalPrediction": "tasks.adapters.hugging_face",
    "Examples": "tasks.data.example_splits",
    "FitResult": "tasks.base",
    "HuggingFaceRecipe": "tasks.adapters.hugging_face",
    "HuggingFaceTask": "tasks.adapters.hugging_face",
    "ImageInputs": "tasks.input_formats",
    "LightningRecipe": "tasks.adapters.lightning_module",
    "LightningTask": "tasks.adapters.lightning_module",
    "Metric": "tasks.base",
    "Positive": "tasks.recipes.settings",
    "Recipe": "tasks.recipes.recipe",
    "Run": "tasks.run",
    "STOP": "tasks.run",
    "SupervisedTask": "tasks.training.supervised",
    "TableInputs": "tasks.input_formats",
    "Task": "tasks.base",
    "TensorSplits": "tasks.data.splits",
    "TextInputs": "tasks.input_formats",
    "Training": "tasks.training.loop",
    "isolated_rng": "tasks.training.loop",
    "check_task": "tasks.training.contract",
    "checkpoint_for": "tasks.training.loop",
    "means_and_errors": "tasks.training.supervised",
    "read_image": "tasks.data.input_files",
    "train": "tasks.training.loop",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
