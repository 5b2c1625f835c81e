"""Batches of tensors, tuples or mappings: called, moved, shared and repeated alike.

What a network reads is a tensor, a tuple of tensors or a mapping of names to tensors, each with the examples along its
first axis: it is called as net(x), net(*xs) or net(**xs). What it should answer has one of these forms as well.

Shapes: B = batch, ... = one example's axes.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

Inputs = Tensor | tuple[Tensor, ...] | Mapping[str, Tensor]
Targets = Tensor | tuple[Tensor, ...] | Mapping[str, Tensor]

Batch = tuple[Any, Any]
"""Inputs and targets. A task knows which forms its own have: to the rest they are Inputs and Targets."""

Form = TypeVar("Form")


def call(network: Callable[..., Any], inputs: Inputs) -> Any:
    """What a network makes of these inputs."""
    if isinstance(inputs, Mapping):
        return network(**inputs)
    return network(inputs) if isinstance(inputs, Tensor) else network(*inputs)


def positional(network: nn.Module, inputs: Inputs) -> tuple[Tensor, ...]:
    """The same inputs by position, for what can pass no names (tracing): by the signature of the network's forward."""
    if isinstance(inputs, Tensor):
        return (inputs,)
    if isinstance(inputs, Mapping):
        return inspect.signature(network.forward).bind(**inputs).args
    return tuple(inputs)


def tensors(parts: Any) -> list[Tensor]:
    """All tensors of inputs, targets or outputs, in their order."""
    if isinstance(parts, Tensor):
        return [parts]
    return [tensor for part in (parts.values() if isinstance(parts, Mapping) else parts) for tensor in tensors(part)]


def names(parts: Any) -> list[str]:
    """All names in mappings, in the order of `tensors`; [] where there is no mapping."""
    if isinstance(parts, Tensor):
        return []
    if isinstance(parts, Mapping):
        return [name for key, part in parts.items() for name in (key, *names(part))]
    return [name for part in parts for name in names(part)]


def map_tensors(parts: Form, change: Callable[[Tensor], Tensor]) -> Form:
    """The same form with every tensor changed."""
    form: Any
    if isinstance(parts, Tensor):
        form = change(parts)
    elif isinstance(parts, Mapping):
        form = {name: map_tensors(part, change) for name, part in parts.items()}
    else:
        assert isinstance(parts, tuple)
        form = tuple(map_tensors(part, change) for part in parts)
    return form  # type: ignore[no-any-return]


def examples(parts: Any) -> int:
    """How many examples there are, B."""
    return len(tensors(parts)[0])


def select(parts: Form, indices: Tensor | slice) -> Form:
    """Some of the examples: those of these indices [B], or of a slice."""
    return map_tensors(parts, lambda tensor: tensor[indices])


def concatenate(batches: list[Tensor]) -> Tensor:
    """Examples [B, ...] of several batches one after another, [E, ...].

    Where further axes are of other lengths, as those of texts, the short are filled up with -100: torch's losses leave
    that out, and so do metrics written for Hugging Face's Trainer.
    """
    longest = [max(sizes) for sizes in zip(*(batch.shape[1:] for batch in batches), strict=True)]
    return torch.cat([_pad(batch, longest) for batch in batches])


def _pad(batch: Tensor, longest: list[int]) -> Tensor:
    if list(batch.shape[1:]) == longest:
        return batch
    rows = batch.new_full((len(batch), *longest), -100)
    rows[tuple(slice(size) for size in batch.shape)] = batch
    return rows


def to_device(parts: Form, device: torch.device) -> Form:
    """The same on a device; the copy is not waited for."""
    return map_tensors(parts, lambda tensor: tensor.to(device, non_blocking=True))


def repeat(parts: Form, times: int) -> Form:
    """Each example that many times."""
    return map_tensors(parts, lambda tensor: tensor.repeat(times, *[1] * (tensor.dim() - 1)))
