"""Shapes of operators' outputs on the meta device, without torch's own rules.

Most of torch's rules are written in Python. They load torch's compiler, which takes as long as torch itself, and are
slower than the operators. Operators without a rule here, and views, are passed on to torch.
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
"""Maps an operator's arguments to meta tensors with the shapes and types of its outputs."""


class Shapes(TorchDispatchMode):
    """A mode that runs operators on the meta device by the rules of this module."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: to keep the compiler out of this mode, torch would load it."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        rule = RULES.get(func)
        return (func if rule is None or not _has_rule_for(args, kwargs) else rule)(*args, **kwargs)


def _has_rule_for(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether a rule applies: all tensors are real and on the meta device."""
    tensors = [x for arg in args for x in (arg if isinstance(arg, list) else [arg]) if isinstance(x, Tensor)]
    devices: set[Any] = {x.device for x in tensors} or {kwargs.get("device")}
    elsewhere = kwargs.get("device") not in (None, META) or kwargs.get("memory_format") is not None
    return devices == {META} and not elsewhere and not any(x.is_complex() for x in tensors)


def _elementwise(tensors: Sequence[Tensor], dtype: torch.dtype) -> Tensor:
    """Return the output of an elementwise operator: shapes broadcast, strides in the order of the inputs'."""
    shape = np.broadcast_shapes(*(x.shape for x in tensors))  # torch.broadcast_shapes loads torch's compiler
    if all(x.is_contiguous() for x in tensors):
        return tensors[0].new_empty(shape, dtype=dtype)
    strides, step = [0] * len(shape), 1
    for dim in _memory_order(shape, [x.expand(shape).stride() for x in tensors]):
        strides[dim] = step
        step *= max(1, shape[dim])
    return tensors[0].new_empty_strided(shape, strides, dtype=dtype)


def _memory_order(shape: Sequence[int], layouts: Sequence[Sequence[int]]) -> list[int]:
    """Return the dimensions by stride, smallest first; the first tensor whose strides differ decides.

    Sorts like torch's TensorIterator (ATen/TensorIterator.cpp, reorder_dimensions).
    """

    def order(a: int, b: int) -> int:
        for strides in layouts:
            if strides[a] and strides[b]:  # a stride of 0 is of a broadcast dimension
                if strides[a] != strides[b]:
                    return 1 if strides[a] > strides[b] else -1
                if shape[a] > shape[b]:
                    return 1
        return 0

    dims = [*reversed(range(len(shape)))]
    for last in range(1, len(dims)):
        position = last
        for before in reversed(range(last)):
            sign = order(dims[before], dims[position])
            if sign < 0:
                break
            if sign > 0:
                dims[before], dims[position] = dims[position], dims[before]
                position = before
    return dims


def _unary(x: Tensor, *_: Any, **__: Any) -> Tensor:
    return _elementwise([x], x.dtype)


def _clamp(x: Tensor, least: float | None = None, most: float | None = None) -> Tensor:
    kinds = [torch.result_type(x, bound) for bound in (least, most) if bound is not None]
    return _elementwise([x], functools.reduce(torch.promote_types, kinds, x.dtype))


def _contiguous(x: Tensor, *_: Any, **__: Any) -> Tensor:
    return x.new_empty(x.shape)


def _like(x: Tensor, *, dtype: Any = None, **_: Any) -> Tensor:
    return _elementwise([x], dtype or x.dtype)


def _float_unary(x: Tensor, *_: Any, **__: Any) -> Tensor:
    """Keep a floating-point type; integers become the default type."""
    return _elementwise([x], _float_dtype(x.dtype))


def _float_dtype(dtype: torch.dtype) -> torch.dtype:
    return dtype if dtype.is_floating_point else torch.get_default_dtype()


def _in_place(x: Tensor, *_: Any, **__: Any) -> Tensor:
    return x


def _tensors(*args: Any) -> list[Tensor]:
    return [arg for arg in args if isinstance(arg, Tensor)]


def _binary(x: Any, y: Any, **_: Any) -> Tensor:
    return _elementwise(_tensors(x, y), torch.result_type(x, y))


def _power(x: Any, y: Tensor) -> Tensor:
    """Return the shape of a number raised to each element."""
    return y.new_empty(y.shape, dtype=torch.result_type(x, y))


def _divide(x: Tensor, y: Any) -> Tensor:
    return _elementwise(_tensors(x, y), _float_dtype(torch.result_type(x, y)))


def _compare(x: Tensor, y: Any) -> Tensor:
    return _elementwise(_tensors(x, y), torch.bool)


def _addcmul(x: Tensor, y: Tensor, z: Tensor, **_: Any) -> Tensor:
    return _elementwise([x, y, z], torch.result_type(x, _binary(y, z)))


def _where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    if condition.dtype != torch.bool:
        raise RuntimeError(f"a condition must be boolean, got {condition.dtype}")
    return _elementwise([condition, x, y], torch.result_type(x, y))


def _masked_fill(x: Tensor, mask: Tensor, _: float) -> Tensor:
    return x.new_empty(np.broadcast_shapes(x.shape, mask.shape))


def _reduce(x: Tensor, dims: int | Sequence[int] | None = None, keep: bool = False, *, dtype: Any = None) -> Tensor:
    axes = [dims] if isinstance(dims, int) else dims or range(x.dim())
    rank = max(1, x.dim())  # a scalar has dimension 0 as well
    if any(not -rank <= dim < rank for dim in axes):
        raise IndexError(f"dimensions {list(axes)} are out of range for a tensor of shape {tuple(x.shape)}")
    reduced_axes = {dim % rank for dim in axes}
    shape = [1 if i in reduced_axes else size for i, size in enumerate(x.shape) if keep or i not in reduced_axes]
    return x.new_empty(shape, dtype=dtype or x.dtype)


def _logsumexp(x: Tensor, dims: Sequence[int], keep: bool = False) -> Tensor:
    return _reduce(x, dims, keep, dtype=_float_dtype(x.dtype))


def _mean(x: Tensor, dims: Sequence[int] | None, keep: bool = False, *, dtype: Any = None) -> Tensor:
    if not (dtype or x.dtype).is_floating_point:
        raise RuntimeError(f"a mean needs floating-point values, got {dtype or x.dtype}")
    return _reduce(x, dims, keep, dtype=dtype)


def _sum(x: Tensor, dims: Sequence[int] | None, keep: bool = False, *, dtype: Any = None) -> Tensor:
    """Sum; integers and booleans add up to int64."""
    return _reduce(x, dims, keep, dtype=dtype or (x.dtype if x.is_floating_point() else torch.int64))


def _matmul(x: Tensor, y: Tensor) -> Tensor:
    *rows, inner = x.shape
    *batch, inner_y, columns = y.shape
    if inner != inner_y or rows[:-1] != batch or x.dtype != y.dtype:
        kinds = " and ".join(f"{tuple(z.shape)} of {z.dtype}" for z in (x, y))
        raise RuntimeError(f"matrices of shapes {kinds} cannot be multiplied")
    return x.new_empty(*rows, columns)


def _addmm(bias: Tensor, x: Tensor, y: Tensor, **_: Any) -> Tensor:
    product = _matmul(x, y)
    return product.new_empty(np.broadcast_shapes(bias.shape, product.shape))


def _layer_norm(x: Tensor, shape: Sequence[int], *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    if [*x.shape[x.dim() - len(shape) :]] != [*shape]:
        raise RuntimeError(f"a norm over {tuple(shape)} does not fit a tensor of shape {tuple(x.shape)}")
    statistic = x.new_empty([*x.shape[: x.dim() - len(shape)], *(1 for _ in shape)])
    return _contiguous(x), statistic, _contiguous(statistic)


def _embedding(weight: Tensor, indices: Tensor, *_: Any) -> Tensor:
    if indices.is_floating_point():
        raise RuntimeError(f"indices must be integers, got {indices.dtype}")
    return weight.new_empty(*indices.shape, weight.shape[1])


def _cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    parts = [x for x in tensors if x.shape != (0,)] or tensors  # torch ignores empty 1-D tensors
    shape = list(parts[0].shape)
    shape[dim] = sum(x.shape[dim] for x in parts)
    if len({tuple(x.shape[i] for i in range(x.dim()) if i != dim % x.dim()) for x in parts}) > 1:
        raise RuntimeError(f"tensors of shapes {[tuple(x.shape) for x in parts]} cannot be joined along {dim}")
    return parts[0].new_empty(shape, dtype=functools.reduce(torch.promote_types, (x.dtype for x in tensors)))


def _stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    return _cat([x.unsqueeze(dim) for x in tensors], dim)


def _arange(*bounds: float, dtype: Any = None, device: Any, **_: Any) -> Tensor:
    start, end, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    kind = dtype or (torch.int64 if all(isinstance(bound, int) for bound in bounds) else torch.get_default_dtype())
    return torch.empty(math.ceil((end - start) / step), dtype=kind, device=device)


def _randn(shape: Sequence[int], *, dtype: Any = None, device: Any, **_: Any) -> Tensor:
    return torch.empty(shape, dtype=dtype, device=device)


def _eye(rows: int, columns: int | None = None, *, dtype: Any = None, device: Any, **_: Any) -> Tensor:
    return torch.empty(rows, rows if columns is None else columns, dtype=dtype, device=device)


def _repeat(x: Tensor, times: Sequence[int]) -> Tensor:
    sizes = [1] * (len(times) - x.dim()) + list(x.shape)
    return x.new_empty([size * often for size, often in zip(sizes, times, strict=True)])


RULES: dict[Any, Rule] = {
    aten.addmm.default: _addmm,
    aten.baddbmm.default: _addmm,
    aten.mm.default: _matmul,
    aten.bmm.default: _matmul,
    aten.native_layer_norm.default: _layer_norm,
    aten.embedding.default: _embedding,
    aten.addcmul.default: _addcmul,
    aten.where.self: _where,
    aten.add_.Scalar: _in_place,
    aten.masked_fill.Scalar: _masked_fill,
    aten.div.Tensor: _divide,
    aten.logsumexp.default: _logsumexp,
    aten.sum.dim_IntList: _sum,
    aten.cat.default: _cat,
    aten.stack.default: _stack,
    aten.repeat.default: _repeat,
    aten.eye.default: _eye,
    aten.eye.m: _eye,
    aten.randn.default: _randn,
    aten.floor_divide.default: _binary,
    **dict.fromkeys((aten.ones_like.default, aten.zeros_like.default), _like),
    **dict.fromkeys((aten.arange.default, aten.arange.start, aten.arange.start_step), _arange),
    aten.mean.dim: _mean,
    aten.amax.default: _reduce,
    **dict.fromkeys((aten.ne.Scalar, aten.le.Scalar, aten.gt.Scalar, aten.lt.Scalar), _compare),
    **dict.fromkeys((aten.lt.Tensor, aten.eq.Tensor), _compare),
    **dict.fromkeys((aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.mul.Scalar), _binary),
    **dict.fromkeys((aten.pow.Tensor_Scalar, aten.remainder.Scalar), _binary),
    **dict.fromkeys((aten.gelu.default, aten.silu.default, aten.relu.default, aten.neg.default), _unary),
    **dict.fromkeys((aten._softmax.default, aten._safe_softmax.default, aten.tril.default), _contiguous),
    aten.clamp.default: _clamp,
    aten.pow.Scalar: _power,
    **dict.fromkeys((aten.exp.default, aten.sin.default, aten.cos.default, aten.rsqrt.default), _float_unary),
    **dict.fromkeys((aten.tanh.default, aten.sigmoid.default, aten.sqrt.default), _float_unary),
}
