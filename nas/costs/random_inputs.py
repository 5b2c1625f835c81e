"""Random inputs shaped like an example, to compare the outputs of two forms of a network."""

from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from tasks.data.batches import Inputs, call, map_tensors, num_examples, tensors


class RandomInputs:
    """Random inputs of one network; the first axis of each tensor is the batch.

    Token ids are drawn below the length of the embedding table that the network looks them up in, which a forward pass
    of the example reveals. Other integers and booleans are drawn from the example's values, since their range is
    unknown. Floating-point numbers are normal.

    Attributes:
        example: The example, on the CPU.
    """

    def __init__(self, network: nn.Module, example: Inputs) -> None:
        """Find out which inputs are ids, by one call of the network on the CPU."""
        self.example = map_tensors(example, lambda x: x.detach().cpu().clone())
        with torch.no_grad(), _Lookups() as lookups:
            call(network, self.example)
        self._rows = lookups.rows
        shapes = {x.shape for x in tensors(self.example) if x.dim() > 1 and _storage_address(x) in self._rows}
        self._texts = shapes.pop() if len(shapes) == 1 else None
        self._examples = num_examples(self.example)
        self._generator = Generator().manual_seed(0)

    @property
    def sequences(self) -> bool:
        """Whether ids have an axis of tokens, the last; other inputs of their shape then have it as well."""
        return self._texts is not None

    @property
    def tokens(self) -> int:
        """Length of the axis of tokens, or 0."""
        return self._texts[-1] if self._texts is not None else 0

    def draw(self, size: int | None = None, tokens: int | None = None) -> Inputs:
        """Return inputs of `size` examples and `tokens` tokens; None keeps the example's length."""
        return map_tensors(self.example, lambda x: self._like(x, size, tokens))

    def axes(self, x: Tensor) -> dict[int, str]:
        """Return the axes of an input whose length may change, with their names."""
        names = {0: "batch"} if x.dim() and len(x) == self._examples else {}
        return names | ({x.dim() - 1: "tokens"} if self._texts is not None and x.shape[1:] == self._texts[1:] else {})

    def _like(self, x: Tensor, size: int | None, tokens: int | None) -> Tensor:
        new = {"batch": size, "tokens": tokens}
        shape = list(x.shape)
        for axis, name in self.axes(x).items():
            shape[axis] = new[name] or shape[axis]
        rows = self._rows.get(_storage_address(x))
        if rows is not None:
            return torch.randint(rows, shape, generator=self._generator).to(x.dtype)
        if x.is_floating_point() or x.is_complex():
            return torch.randn(shape, generator=self._generator, dtype=x.dtype)
        count = int(torch.Size(shape).numel())
        order = torch.randint(max(1, x.numel()), (count,), generator=self._generator)
        return x.flatten()[order].view(shape) if x.numel() else x


class _Lookups(TorchDispatchMode):
    """A mode that records the length of the shortest table that each tensor of ids, views included, is looked up in."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.rows: dict[int, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.embedding.default:
            table, ids = args[:2]
            self.rows[_storage_address(ids)] = min(len(table), self.rows.get(_storage_address(ids), len(table)))
        return func(*args, **(kwargs or {}))


def _storage_address(x: Tensor) -> int:
    return x.untyped_storage().data_ptr()
