"""Tasks of Hugging Face models: forward(**batch) returns an object with `loss` and `logits`.

Only this convention is needed, not transformers. Training uses the loop of tasks.training.supervised, which reports and
resumes exactly. Hugging Face's Trainer expects no more of a model, and needs accelerate.

Shapes: B = batch, E = examples, ... = one example's axes.
"""

import inspect
from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.support.errors import UserError
from tasks.adapters.topology_support import check_topology_support
from tasks.data.batches import Inputs
from tasks.data.example_splits import Example, Examples, ExampleSplits, stack_examples
from tasks.data.jackknife import jackknife
from tasks.recipes.recipe import Recipe, Schedule
from tasks.recipes.settings import AtLeastOne, NotNegative, Positive, UnitInterval
from tasks.training.supervised import SupervisedTask

_LABELS = ("label", "labels", "label_ids")


class EvalPrediction(NamedTuple):
    """The argument of `compute_metrics`: arrays of all examples, or tuples of several.

    Attributes:
        predictions: Model outputs other than the loss, [E, ...]: logits.
        label_ids: The labels, [E, ...].
    """

    predictions: Any
    label_ids: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class HuggingFaceRecipe(Recipe):
    """A Recipe with the defaults of transformers.TrainingArguments."""

    batch: AtLeastOne = 8
    lr: Positive = 5e-5
    weight_decay: NotNegative = 0.0
    warmup: UnitInterval = 0.0
    schedule: Schedule = "linear"

    def __post_init__(self) -> None:
        Recipe.__post_init__(self)
        if self.label_smoothing:
            message = f"label_smoothing must be 0 because the model computes the loss, got {self.label_smoothing}."
            raise UserError("unsupported", message, option="label_smoothing", value=self.label_smoothing)


class HuggingFaceModelWrapper(nn.Module):
    """A wrapper that calls a model with a batch by name, or with tensors in the order of `names`.

    Args:
        model: forward(**batch) -> an object with `logits`, and with `loss` if the batch has labels.
        names: Names of positional inputs.
    """

    def __init__(self, model: nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        self.model = model
        self.names = names

    def forward(self, *positional: Tensor, **keyword: Tensor) -> dict[str, Tensor]:
        """Return all tensors that the model outputs, without caches and the like."""
        outputs = self.model(**dict(zip(self.names, positional, strict=False)), **keyword)
        tensors = outputs if isinstance(outputs, Mapping) else {name: getattr(outputs, name, None) for name in _OUTPUTS}
        return {name: value for name, value in tensors.items() if isinstance(value, Tensor)}


_OUTPUTS = ("loss", "logits")


class HuggingFaceTask(SupervisedTask):
    """A task of a Hugging Face model, its data sets and its `compute_metrics`. Its presets are HuggingFaceRecipes.

    Training uses the recipe's optimizer and the model's loss; epochs have whole batches. `loss` is the mean over
    batches weighted by examples, with a standard error from the differences between batches. The values of
    `compute_metrics` have jackknife standard errors, from leaving out a twentieth of the examples at a time. As in
    Hugging Face's Trainer, columns that the model's forward does not name are dropped. Callbacks, optimizers and
    compute_loss of a Trainer are not supported; override `loss` instead.

    Attributes:
        input_names: Inputs for counting, profiling and export; without a mask, attention is full.
        label_names: Names of the labels.
    """

    input_names: ClassVar[tuple[str, ...]] = ("input_ids",)
    label_names: ClassVar[tuple[str, ...]] = ("labels",)

    @abstractmethod
    def model(self, architecture: Architecture) -> nn.Module:
        """Build the model on the default device."""

    @abstractmethod
    def datasets(self) -> tuple[Examples, Examples, Examples]:
        """Return training, validation and test data: dicts by index. Raises UserError if they are missing."""

    def collate(self, examples: list[Example]) -> Mapping[str, Any]:
        """Return a batch of examples; by default they are stacked, and `label` is renamed to `labels`."""
        return stack_examples(examples)

    def compute_metrics(self, prediction: EvalPrediction) -> Mapping[str, float]:
        """Return the metrics other than `loss`, from arrays of all examples."""
        return {}

    def preprocess_logits_for_metrics(self, logits: Any, labels: Any) -> Any:
        """Return what to keep of the logits for `compute_metrics`: a tensor [B, ...], or a tuple of them."""
        return logits

    def build(self, architecture: Architecture) -> nn.Module:
        """Build the model with outputs by name. Raises UserError for a topology that it lacks."""
        model = self.model(architecture)
        check_topology_support(model, architecture)
        return HuggingFaceModelWrapper(model, self.input_names)

    def load(self) -> ExampleSplits:
        """Return the data sets with only the columns that the model's forward names."""
        parts = self.datasets()
        return ExampleSplits(*parts, collate=self.collate, columns=self._columns(), labels=self.label_names)

    def example(self) -> Inputs:
        """Return the model's inputs of the first validation example."""
        with torch.device("cpu"):
            inputs = self.inputs(next(iter(self.presets.values())))
        device = torch.get_default_device()
        first: Inputs = tuple(tensor[:1].to(device) for tensor in inputs)
        return first

    def inputs(self, recipe: Any) -> tuple[Tensor, ...]:
        """Return the model's inputs of the first validation batch."""
        batch, _ = next(self.splits_for(recipe).evaluation_batches("validation", recipe, torch.device("cpu")))
        for name in self.input_names:
            if name not in batch:
                raise UserError(
                    "bad-plugin",
                    f"task {self.name!r}: input_names must be among {', '.join(batch)}, got {name!r}. Set it.",
                    task=self.name,
                    option="input_names",
                    value=name,
                    choices=tuple(batch),
                )
        return tuple(batch[name] for name in self.input_names)

    def loss(self, outputs: Mapping[str, Tensor], targets: Any, recipe: Any) -> Tensor:
        """Return the model's own loss, []."""
        if "loss" not in outputs:
            raise UserError(
                "bad-plugin",
                f"task {self.name!r}: the model returned no loss; its labels: {', '.join(targets) or 'none'}. "
                "Set label_names, or override loss.",
                task=self.name,
                option="label_names",
                value=tuple(targets),
            )
        return outputs["loss"]

    def measure(self, outputs: Mapping[str, Tensor], targets: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Return the batch's loss, repeated for each example, and the inputs of `compute_metrics`; each [B, ...]."""
        size = len(next(iter(outputs[name] for name in outputs if name != "loss")))
        loss = self.loss(outputs, targets, None)
        measures = {"loss": loss.expand(size), "opens": torch.arange(size) == 0}
        if type(self).compute_metrics is HuggingFaceTask.compute_metrics:
            return measures
        logits = _one_or_all([value for name, value in outputs.items() if name != "loss"])
        logits_for_metrics = self.preprocess_logits_for_metrics(logits, _one_or_all(list(targets.values())))
        predictions = logits_for_metrics if isinstance(logits_for_metrics, tuple) else (logits_for_metrics,)
        return {
            **measures,
            **{f"prediction {number}": value for number, value in enumerate(predictions)},
            **{f"label {number}": value for number, value in enumerate(targets.values())},
        }

    def summary(self, measures: Mapping[str, Tensor]) -> Mapping[str, float]:
        """Return those of the loss and `compute_metrics` that are the task's metrics, with standard errors."""
        arrays = {name: values.numpy() for name, values in measures.items() if " " in name}
        metrics = _of_batches(measures["loss"], measures["opens"])
        if arrays:
            metrics |= jackknife(lambda indices: self._metrics(arrays, indices), np.arange(len(measures["loss"])))
        metric_names = {metric.name for metric in self.metrics}
        missing = sorted(metric_names - set(metrics))
        if missing:
            names = tuple(name for name in metrics if not name.endswith("_se"))
            raise UserError(
                "bad-plugin",
                f"task {self.name!r}: compute_metrics must return {', '.join(missing)}, got {', '.join(names)}. "
                "Name the metrics after these.",
                task=self.name,
                option="metrics",
                value=tuple(missing),
                choices=names,
            )
        return {name: value for name, value in metrics.items() if name.removesuffix("_se") in metric_names}

    def _metrics(self, arrays: Mapping[str, Any], indices: Any) -> dict[str, float]:
        """Return the metrics of some of the examples."""
        parts = {
            kind: _one_or_all([array[indices] for name, array in arrays.items() if name.startswith(kind)])
            for kind in ("prediction", "label")
        }
        metrics = self.compute_metrics(EvalPrediction(parts["prediction"], parts["label"]))
        return {name: float(value) for name, value in metrics.items()}

    def _columns(self) -> Collection[str] | None:
        """Return the argument names of the model's forward, and labels; None if it names none."""
        with torch.device("meta"):
            forward = inspect.signature(self.model(self.base).forward)
        kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        names = {name for name, parameter in forward.parameters.items() if parameter.kind not in kinds}
        return {*names, *_LABELS, *self.label_names} if names else None


def _of_batches(loss: Tensor, opens: Tensor) -> dict[str, float]:
    """Return the mean over examples, [E], of a loss that is each batch's mean, and its standard error over batches.

    `opens` is True at the first example of a batch. A single batch gives no error.
    """
    batches = int(opens.sum())
    mean = loss.double().mean()
    if batches < 2:
        return {"loss": mean.item()}
    number = opens.cumsum(0) - 1
    weights = torch.bincount(number) / len(loss)
    deviations = (loss[opens].double() - mean) * weights
    return {"loss": mean.item(), "loss_se": (deviations.square().sum() * batches / (batches - 1)).sqrt().item()}


def _one_or_all(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else tuple(values)
