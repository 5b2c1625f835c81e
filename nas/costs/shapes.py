"""Shapes of what operators give on the meta device, without torch's own rules for them.

Those are written in Python for most operators: they load torch's compiler, which takes as long as torch itself, and
are slower than what they describe. Operators that have no rule here, and views, go to torch as they are.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
META = torch.device("meta")

Rule = Callable[..., Any]
"""What an operator was given -> tensors of the shapes and types of what it gives."""


class Shapes(TorchDispatchMode):
    """Gives meta tensors by the rules here."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: to have the compiler leave this mode alone, torch would load it."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        rule = RULES.get(func)
        return (func if rule is None or not _is_plain(args, named) else rule)(*args, **named)


def _is_plain(given: Sequence[Any], named: Mapping[str, Any]) -> bool:
    """Whether it is all of real numbers on the meta device."""
    tensors = [one for each in given for one in (each if isinstance(each, list) else [each]) if isinstance(one, Tensor)]
    devices: set[Any] = {one.device for one in tensors} or {named.get("device")}
    elsewhere = named.get("device") not in (None, META) or named.get("memory_format") is not None
    return devices == {META} and not elsewhere and not any(one.is_complex() for one in tensors)


def _of_elements(tensors: Sequence[Tensor], dtype: torch.dtype) -> Tensor:
    """What is worked out element by element, broadcast, and laid out as the tensors that it is made of."""
    shape = np.broadcast_shapes(*(one.shape for one in tensors))  # torch's own loads what its rules do
    if all(one.is_contiguous() for one in tensors):
        return tensors[0].new_empty(shape, dtype=dtype)
    strides, step = [0] * len(shape), 1
    for dim in _fastest_first(shape, [one.expand(shape).stride() for one in tensors]):
        strides[dim] = step
        step *= max(1, shape[dim])
    return tensors[0].new_empty_strided(shape, strides, dtype=dtype)


def _fastest_first(shape: Sequence[int], layouts: Sequence[Sequence[int]]) -> list[int]:
    """The dimensions, that along which memory is read in order first: the first tensor decides that tells two apart.

    As torch's TensorIterator sorts them (ATen/TensorIterator.cpp, reorder_dimensions).
    """

    def order(one: int, other: int) -> int:
        for strides in layouts:
            if strides[one] and strides[other]:  # along a broadcast dimension nothing is read
                if strides[one] != strides[other]:
                    return 1 if strides[one] > strides[other] else -1
                if shape[one] > shape[other]:
                    return 1
        return 0

    dims = [*reversed(range(len(shape)))]
    for last in range(1, len(dims)):
        here = last
        for before in reversed(range(last)):
            sign = order(dims[before], dims[here])
            if sign < 0:
                break
            if sign > 0:
                dims[before], dims[here] = dims[here], dims[before]
                here = before
    return dims


def _same(x: Tensor, *_: Any, **__: Any) -> Tensor:
    return _of_elements([x], x.dtype)


def _clamped(x: Tensor, least: float | None = None, most: float | None = None) -> Tensor:
    kinds = [torch.result_type(x, bound) for bound in (least, most) if bound is not None]
    return _of_elements([x], functools.reduce(torch.promote_types, kinds, x.dtype))


def _in_order(x: Tensor, *_: Any, **__: Any) -> Tensor:
    return x.new_empty(x.shape)


def _like(x: Tensor, *, dtype: Any = None, **_: Any) -> Tensor:
    return _of_elements([x], dtype or x.dtype)


def _real(x: Tensor, *_: Any, **__: Any) -> Tensor:
    """As x, or of the default type where x holds whole numbers."""
    return _of_elements([x], _of_reals(x.dtype))


def _of_reals(dtype: torch.dtype) -> torch.dtype:
    return dtype if dtype.is_floating_point else torch.get_default_dtype()


def _itself(x: Tensor, *_: Any, **__: Any) -> Tensor:
    return x


def _tensors(*given: Any) -> list[Tensor]:
    return [one for one in given if isinstance(one, Tensor)]


def _together(x: Any, y: Any, **_: Any) -> Tensor:
    return _of_elements(_tensors(x, y), torch.result_type(x, y))


def _raised(x: Any, y: Tensor) -> Tensor:
    """A number to the power of each element."""
    return y.new_empty(y.shape, dtype=torch.result_type(x, y))


def _divided(x: Tensor, y: Any) -> Tensor:
    return _of_elements(_tensors(x, y), _of_reals(torch.result_type(x, y)))


def _compared(x: Tensor, y: Any) -> Tensor:
    return _of_elements(_tensors(x, y), torch.bool)


def _added(x: Tensor, y: Tensor, z: Tensor, **_: Any) -> Tensor:
    return _of_elements([x, y, z], torch.result_type(x, _together(y, z)))


def _chosen(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    if condition.dtype != torch.bool:
        raise RuntimeError(f"a condition is of truths, got {condition.dtype}")
    return _of_elements([condition, x, y], torch.result_type(x, y))


def _filled(x: Tensor, mask: Tensor, _: float) -> Tensor:
    return x.new_empty(np.broadcast_shapes(x.shape, mask.shape))


def _reduced(x: Tensor, dims: int | Sequence[int] | None = None, keep: bool = False, *, dtype: Any = None) -> Tensor:
    asked = [dims] if isinstance(dims, int) else dims or range(x.dim())
    most = max(1, x.dim())  # a number alone has its only one
    if any(not -most <= dim < most for dim in asked):
        raise IndexError(f"dimensions {list(asked)} are not all among those of a tensor of shape {tuple(x.shape)}")
    along = {dim % most for dim in asked}
    shape = [1 if i in along else size for i, size in enumerate(x.shape) if keep or i not in along]
    return x.new_empty(shape, dtype=dtype or x.dtype)


def _log_summed(x: Tensor, dims: Sequence[int], keep: bool = False) -> Tensor:
    return _reduced(x, dims, keep, dtype=_of_reals(x.dtype))


def _averaged(x: Tensor, dims: Sequence[int] | None, keep: bool = False, *, dtype: Any = None) -> Tensor:
    if not (dtype or x.dtype).is_floating_point:
        raise RuntimeError(f"a mean is of floats, got {dtype or x.dtype}")
    return _reduced(x, dims, keep, dtype=dtype)


def _summed(x: Tensor, dims: Sequence[int] | None, keep: bool = False, *, dtype: Any = None) -> Tensor:
    """Whole numbers and truths add up to whole numbers of the largest type."""
    return _reduced(x, dims, keep, dtype=dtype or (x.dtype if x.is_floating_point() else torch.int64))


def _product(x: Tensor, y: Tensor) -> Tensor:
    *rows, inner = x.shape
    *several, of_y, columns = y.shape
    if inner != of_y or rows[:-1] != several or x.dtype != y.dtype:
        kinds = " and ".join(f"{tuple(one.shape)} of {one.dtype}" for one in (x, y))
        raise RuntimeError(f"matrices of shapes {kinds} cannot be multiplied")
    return x.new_empty(*rows, columns)


def _product_onto(bias: Tensor, x: Tensor, y: Tensor, **_: Any) -> Tensor:
    product = _product(x, y)
    return product.new_empty(np.broadcast_shapes(bias.shape, product.shape))


def _normed(x: Tensor, shape: Sequence[int], *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    if [*x.shape[x.dim() - len(shape) :]] != [*shape]:
        raise RuntimeError(f"a norm over {tuple(shape)} cannot have a tensor of shape {tuple(x.shape)}")
    of_each = x.new_empty([*x.shape[: x.dim() - len(shape)], *(1 for _ in shape)])
    return _in_order(x), of_each, _in_order(of_each)


def _embedded(weight: Tensor, indices: Tensor, *_: Any) -> Tensor:
    if indices.is_floating_point():
        raise RuntimeError(f"indices are whole numbers, got {indices.dtype}")
    return weight.new_empty(*indices.shape, weight.shape[1])


def _joined(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    parts = [one for one in tensors if one.shape != (0,)] or tensors  # of these torch makes nothing, whatever the rest
    shape = list(parts[0].shape)
    shape[dim] = sum(one.shape[dim] for one in parts)
    if len({tuple(one.shape[i] for i in range(one.dim()) if i != dim % one.dim()) for one in parts}) > 1:
        raise RuntimeError(f"tensors of shapes {[tuple(one.shape) for one in parts]} cannot be joined along {dim}")
    return parts[0].new_empty(shape, dtype=functools.reduce(torch.promote_types, (one.dtype for one in tensors)))


def _stacked(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    return _joined([one.unsqueeze(dim) for one in tensors], dim)


def _steps(*given: float, dtype: Any = None, device: Any, **_: Any) -> Tensor:
    start, end, step = (0, *given, 1) if len(given) == 1 else (*given, 1)[:3]
    kind = dtype or (torch.int64 if all(isinstance(one, int) for one in given) else torch.get_default_dtype())
    return torch.empty(math.ceil((end - start) / step), dtype=kind, device=device)


def _drawn(shape: Sequence[int], *, dtype: Any = None, device: Any, **_: Any) -> Tensor:
    return torch.empty(shape, dtype=dtype, device=device)


def _diagonal(rows: int, columns: int | None = None, *, dtype: Any = None, device: Any, **_: Any) -> Tensor:
    return torch.empty(rows, rows if columns is None else columns, dtype=dtype, device=device)


def _repeated(x: Tensor, times: Sequence[int]) -> Tensor:
    sizes = [1] * (len(times) - x.dim()) + list(x.shape)
    return x.new_empty([size * often for size, often in zip(sizes, times, strict=True)])


RULES: dict[Any, Rule] = {
    aten.addmm.default: _product_onto,
    aten.baddbmm.default: _product_onto,
    aten.mm.default: _product,
    aten.bmm.default: _product,
    aten.native_layer_norm.default: _normed,
    aten.embedding.default: _embedded,
    aten.addcmul.default: _added,
    aten.where.self: _chosen,
    aten.add_.Scalar: _itself,
    aten.masked_fill.Scalar: _filled,
    aten.div.Tensor: _divided,
    aten.logsumexp.default: _log_summed,
    aten.sum.dim_IntList: _summed,
    aten.cat.default: _joined,
    aten.stack.default: _stacked,
    aten.repeat.default: _repeated,
    aten.eye.default: _diagonal,
    aten.eye.m: _diagonal,
    aten.randn.default: _drawn,
    aten.floor_divide.default: _together,
    **dict.fromkeys((aten.ones_like.default, aten.zeros_like.default), _like),
    **dict.fromkeys((aten.arange.default, aten.arange.start, aten.arange.start_step), _steps),
    aten.mean.dim: _averaged,
    aten.amax.default: _reduced,
    **dict.fromkeys((aten.ne.Scalar, aten.le.Scalar, aten.gt.Scalar, aten.lt.Scalar), _compared),
    **dict.fromkeys((aten.lt.Tensor, aten.eq.Tensor), _compared),
    **dict.fromkeys((aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.mul.Scalar), _together),
    **dict.fromkeys((aten.pow.Tensor_Scalar, aten.remainder.Scalar), _together),
    **dict.fromkeys((aten.gelu.default, aten.silu.default, aten.relu.default, aten.neg.default), _same),
    **dict.fromkeys((aten._softmax.default, aten._safe_softmax.default, aten.tril.default), _in_order),
    aten.clamp.default: _clamped,
    aten.pow.Scalar: _raised,
    **dict.fromkeys((aten.exp.default, aten.sin.default, aten.cos.default, aten.rsqrt.default), _real),
    **dict.fromkeys((aten.tanh.default, aten.sigmoid.default, aten.sqrt.default), _real),
}
