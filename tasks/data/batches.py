"""Operations on batches of tensors, tuples or mappings.

Network inputs are a tensor, a tuple of tensors or a mapping of names to tensors, each with the examples along its first
axis. The network is called as net(x), net(*xs) or net(**xs). Targets have one of these forms as well.

Shapes: B = batch, ... = one example's axes.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

Inputs = Tensor | tuple[Tensor, ...] | Mapping[str, Tensor]
Targets = Tensor | tuple[Tensor, ...] | Mapping[str, Tensor]

Batch = tuple[Any, Any]
"""Inputs and targets. A task knows their exact forms; all other code treats them as Inputs and Targets."""

Form = TypeVar("Form")


def call(network: Callable[..., Any], inputs: Inputs) -> Any:
    """Call a network with inputs of any form."""
    if isinstance(inputs, Mapping):
        return network(**inputs)
    return network(inputs) if isinstance(inputs, Tensor) else network(*inputs)


def positional(network: nn.Module, inputs: Inputs) -> tuple[Tensor, ...]:
    """Return the inputs by position, in the order of the network's forward, for tracing, which takes no names."""
    if isinstance(inputs, Tensor):
        return (inputs,)
    if isinstance(inputs, Mapping):
        return inspect.signature(network.forward).bind(**inputs).args
    return tuple(inputs)


def tensors(parts: Any) -> list[Tensor]:
    """Return all tensors of inputs, targets or outputs, in order."""
    if isinstance(parts, Tensor):
        return [parts]
    return [tensor for part in (parts.values() if isinstance(parts, Mapping) else parts) for tensor in tensors(part)]


def leaves(values: Any) -> Iterator[Any]:
    """Yield the tensors of inputs or targets, and whatever stands in their place."""
    if isinstance(values, tuple | list | Mapping):
        for value in values.values() if isinstance(values, Mapping) else values:
            yield from leaves(value)
    else:
        yield values


def describe(parts: Any, axes: Sequence[str] = ()) -> str:
    """Return type and shape of each tensor, such as "float32 [batch, 3, 32, 32]"; `axes` names the first axes."""
    texts = []
    for tensor in tensors(parts):
        sizes = [*map(str, tensor.shape)]
        for place, axis in enumerate(("batch", "tokens")):
            if axis in axes and place < len(sizes):
                sizes[place] = axis
        texts.append(f"{str(tensor.dtype).removeprefix('torch.')} [{', '.join(sizes)}]")
    return "; ".join(texts)


def names(parts: Any) -> list[str]:
    """Return all names in mappings, in the order of `tensors`; [] without a mapping."""
    if isinstance(parts, Tensor):
        return []
    if isinstance(parts, Mapping):
        return [name for key, part in parts.items() for name in (key, *names(part))]
    return [name for part in parts for name in names(part)]


def map_tensors(parts: Form, change: Callable[[Tensor], Tensor]) -> Form:
    """Return the same form with `change` applied to every tensor."""
    form: Any
    if isinstance(parts, Tensor):
        form = change(parts)
    elif isinstance(parts, Mapping):
        form = {name: map_tensors(part, change) for name, part in parts.items()}
    else:
        assert isinstance(parts, tuple)
        form = tuple(map_tensors(part, change) for part in parts)
    return form  # type: ignore[no-any-return]


def num_examples(parts: Any) -> int:
    """Return the number of examples, B."""
    return len(tensors(parts)[0])


def select(parts: Form, indices: Tensor | slice) -> Form:
    """Return the examples at these indices [B], or in a slice."""
    return map_tensors(parts, lambda tensor: tensor[indices])


def concatenate(batches: list[Tensor]) -> Tensor:
    """Concatenate batches [B, ...] along the examples, [E, ...].

    Other axes of different lengths, such as texts, are padded with -100, which torch's losses and metrics for the
    Hugging Face Trainer ignore.
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
    """Copy to a device without waiting for the copy."""
    return map_tensors(parts, lambda tensor: tensor.to(device, non_blocking=True))


def repeat(parts: Form, times: int) -> Form:
    """Repeat all examples `times` times along the first axis."""
    return map_tensors(parts, lambda tensor: tensor.repeat(times, *[1] * (tensor.dim() - 1)))
