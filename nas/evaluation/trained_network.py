"""A trained network as users call it: in evaluation mode, with the task's preprocessing and checked inputs."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, final

import torch
from torch import Tensor, nn

from search_spaces.support.errors import UserError
from tasks.base import Task
from tasks.data.batches import Inputs, call, describe, leaves, map_tensors, tensors
from tasks.input_formats import InputFormat, TextInputs

_CONVERSIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    ".movedim(-1, 1)": lambda x: x.movedim(-1, 1),
    "[None]": lambda x: x[None],
    ".movedim(-1, 0)[None]": lambda x: x.movedim(-1, 0)[None],
    ".float()": Tensor.float,
}
"""Code -> what it does: channels that are last, no axis of the batch, both, other numbers."""


@final
class TrainedNetwork(nn.Module):
    """A trained network in evaluation mode. It takes inputs as users have them, such as bytes of images.

    Attributes:
        network: The network that was trained, which takes preprocessed inputs.
        input_format: What `forward` takes; None if it takes what the network takes.
        class_names: Class names in the order of the scores; empty if unknown.
        preprocess: Maps inputs of the format to those of `network`.
    """

    network: nn.Module
    input_format: InputFormat | None
    class_names: tuple[str, ...]
    preprocess: Callable[[Any], Any]

    def __init__(self, network: nn.Module, task: Task) -> None:
        super().__init__()
        self.network = network
        self.input_format = task.input_format()
        self.class_names = task.class_names()
        self.preprocess = _Shared(task.preprocess)
        self._example = map_tensors(
            task.example() if self.input_format is None else self.input_format.example(), lambda x: x.cpu()
        )
        self.eval().requires_grad_(False)

    def example(self) -> Inputs:
        """Return inputs of one example."""
        return self._example

    def forward(self, *inputs: Tensor, **named: Tensor) -> Any:
        """Return the network's outputs for these inputs.

        Raises:
            UserError: Inputs of another type or size than the network takes.
        """
        values: Inputs = named or (inputs[0] if len(inputs) == 1 else inputs)
        if not torch.compiler.is_compiling():  # an exported graph checks for itself
            self._check(values)
        return call(self.network, self.preprocess(values))

    def _check(self, values: Inputs) -> None:
        takes = str(self.input_format or describe(self._example, ("batch",)))
        others = {type(leaf).__name__ for leaf in leaves(values) if not isinstance(leaf, Tensor)}
        if others:
            got = ", ".join(sorted(others))
            message = f"this network takes tensors, {takes}, got {got}. Convert by torch.as_tensor."
            raise UserError("mismatch", message, option="inputs", value=got, expected=takes)
        inputs, examples = tensors(values), tensors(self._example)
        if len(inputs) != len(examples) or not all(map(self._fits, inputs, examples)):
            got = describe(values)
            conversion = self._conversion(inputs, examples)
            remedy = "" if conversion is None else f" Give x{conversion}."
            message = f"this network takes {takes}, got {got or 'nothing'}.{remedy}"
            fields = {"value": got, "expected": takes, "conversion": conversion}
            raise UserError("mismatch", message, option="inputs", **fields)

    def _conversion(self, inputs: list[Tensor], examples: list[Tensor]) -> str | None:
        """Return the code that makes all inputs fit; None if none is known."""
        for code, convert in _CONVERSIONS.items() if len(inputs) == len(examples) else ():
            with suppress(IndexError):  # too few axes
                if all(map(self._fits, map(convert, inputs), examples)):
                    return code
        return None

    def _fits(self, x: Tensor, example: Tensor) -> bool:
        """Return whether a tensor has the example's type and axes, but for the batch; texts may be shorter."""
        if x.dtype != example.dtype or x.dim() != example.dim():
            return False
        if isinstance(self.input_format, TextInputs):
            return 0 < x.shape[1] <= example.shape[1]
        return x.shape[1:] == example.shape[1:]


class _Shared:
    """A function that copies of a network share: a method of a task would be copied with its data."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __call__(self, inputs: Any) -> Any:
        return self._function(inputs)

    def __deepcopy__(self, memo: Any) -> "_Shared":
        return self
