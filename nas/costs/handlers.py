"""Handlers that count operators: the built-in ones and those of plug-ins.

fvcore calls a handler with the traced inputs and outputs of an operator. A plug-in's handler takes only their shapes,
see `search_spaces.support.count.Handler`.
"""

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from torch import nn

with warnings.catch_warnings():  # fvcore uses torch.jit, whose deprecation users cannot change
    warnings.simplefilter("ignore")
    from fvcore.nn.jit_handles import get_shape

from nas.costs.einsum import einsum_macs
from search_spaces.support.count import Handler, Handlers, Shape
from search_spaces.support.errors import UserError, cause_fields, reason_of, value_fields
from search_spaces.topologies.base import Topology
from tasks.base import Task

ZERO_FLOP_OPS = frozenset(
    f"aten::{name}"
    for name in (
        "abs add add_ addcmul alias all amax arange argmax avg_pool2d bitwise_not bool clamp clamp_max clamp_min "
        "clone col2im complex contiguous copy_ cos cumprod cumsum detach div div_ dropout dropout_ embedding empty eq "
        "exp expand_as eye fill_ floor_divide full gather ge gelu gt im2col imag index index_put index_select "
        "isfinite le leaky_relu lift_fresh linalg_vector_norm log log_softmax logsumexp lt mT masked_fill "
        "masked_fill_ max maximum mean min minimum mul mul_ ne neg new_empty new_full new_ones new_zeros norm one_hot "
        "ones ones_like pad pow real reciprocal relu relu_ repeat roll rsqrt rsub scalar_tensor scatter "
        "select_scatter sigmoid sigmoid_ silu sin slice_scatter softmax softplus sqrt square sub sub_ sum tanh tanh_ "
        "tensor_split to tril triu type_as unflatten unsafe_chunk view_as view_as_complex view_as_real where zeros "
        "zeros_like"
    ).split()
)
"""Operators without matrix work that fvcore does not know: they count no MACs."""


class Miscount(UserError):
    """An untrustworthy count: an operator without a handler, or two counts that disagree."""


def _attention(inputs: list[Any], outputs: list[Any]) -> Counter[str]:
    """Count scores and values in full; a causal mask halves nothing."""
    query, value = get_shape(inputs[0]), get_shape(inputs[2])
    return Counter(attention=math.prod(query[:-1]) * value[-2] * (query[-1] + value[-1]))


def _matmul(inputs: list[Any], outputs: list[Any]) -> Counter[str]:
    """Count a matmul. fvcore's handler ignores a batch of only the right operand, and fails on a vector."""
    return Counter(matmul=math.prod(get_shape(outputs[0])) * get_shape(inputs[0])[-1])


def _einsum(inputs: list[Any], outputs: list[Any]) -> Counter[str]:
    """Count an einsum. fvcore's count has four digits."""
    places = inputs[2].node() if len(inputs) > 2 else None  # a list, or the constant None
    path = None if places is None else [place.toIValue() for place in places.inputs()]
    return Counter(einsum=einsum_macs(inputs[0].toIValue(), _shapes(inputs[1:2]), path))


def _zero(inputs: list[Any], outputs: list[Any]) -> Counter[str]:
    """Count nothing. fvcore counts five operations an element for a norm, none of them a MAC."""
    return Counter()


FvcoreHandle = Callable[[list[Any], list[Any]], Counter[str]]
"""A function that fvcore calls with the traced inputs and outputs of an operator."""

HANDLERS: Mapping[str, FvcoreHandle] = {
    "aten::scaled_dot_product_attention": _attention,
    "aten::matmul": _matmul,
    "aten::einsum": _einsum,
    "aten::layer_norm": _zero,
    "aten::rms_norm": _zero,
    "aten::batch_norm": _zero,
    "aten::group_norm": _zero,
    "aten::instance_norm": _zero,
    "aten::adaptive_avg_pool2d": _zero,
}

FVCORE_OPS = frozenset(f"aten::{name}" for name in ("_convolution", "addmm", "bmm", "linear", "mm"))
"""Operators for which fvcore's own handlers are used."""


OwnedHandler = tuple[Handler | None, str]


def custom_handlers(model: nn.Module, task: Task | None) -> dict[str, OwnedHandler]:
    """Return operator -> handler and owner, from the task and the model's topologies."""
    kinds = {type(module): None for module in model.modules() if isinstance(module, Topology)}  # an ordered set
    sources: list[tuple[str, Handlers]] = [(f"topology {kind.__name__}", kind.handlers) for kind in kinds]
    if task is not None:
        sources.append((f"task {task.name!r}", task.handlers))
    custom: dict[str, OwnedHandler] = {}
    for owner, handlers in sources:
        for operator, handler in handlers.items():
            if operator in ZERO_FLOP_OPS and handler is None:
                continue
            if operator in HANDLERS or operator in FVCORE_OPS or operator in ZERO_FLOP_OPS:
                message = f"{owner} must not count {operator}, which has a handler. Remove it from `handlers`."
                raise UserError("bad-plugin", message, option="handlers", operator=operator, owner=owner)
            first, other = custom.setdefault(operator, (handler, owner))
            if first is not handler:
                message = f"{other} and {owner} count {operator} differently. Give both the same handler."
                raise UserError("conflict", message, option="handlers", operator=operator, owners=(other, owner))
    return custom


def fvcore_handle(operator: str, handler: Handler, owner: str) -> FvcoreHandle:
    """Wrap a plug-in's handler as a function that fvcore calls."""
    fields = {"operator": operator, "owner": owner}

    def count(inputs: list[Any], outputs: list[Any]) -> Counter[str]:
        try:
            macs = handler(_shapes(inputs), _shapes(outputs))
        except Exception as error:  # a plug-in may fail in any way
            message = f"the handler for {operator} of {owner} failed: {reason_of(error)}"
            raise Miscount("bad-plugin", message, **{**cause_fields(error), **fields}) from error
        if type(macs) is not int or macs < 0:
            message = f"the handler for {operator} of {owner} must return an integer of at least 0, got {macs!r}."
            raise Miscount("bad-plugin", message, **fields, **value_fields(macs))
        return Counter({operator.partition("::")[2]: macs})

    return count


def _shapes(values: Iterable[Any]) -> list[Shape]:
    """Return the shapes of the tensors among traced values, with lists flattened."""
    shapes: list[Shape] = []
    for value in values:
        shape = get_shape(value)
        if shape is not None:
            shapes.append(tuple(shape))
        elif value.node().kind() in ("prim::ListConstruct", "prim::TupleConstruct"):
            shapes += _shapes(value.node().inputs())
    return shapes
