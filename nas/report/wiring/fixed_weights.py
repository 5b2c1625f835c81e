"""Derivatives that treat weights that depend on the input as constants.

A topology may compute its mixing weights from the same tensors: by a softmax, a relu, a tanh. The weights say who reads
what; how they would change does not. So derivatives stop at such functions here.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

_NONLINEAR = frozenset(
    "softmax log_softmax softmin relu relu6 leaky_relu elu celu selu gelu silu mish sigmoid logsigmoid hardsigmoid "
    "hardswish hardtanh tanh softplus softsign exp exp2 expm1 log log1p log2 log10 logsumexp logaddexp sqrt rsqrt "
    "square pow float_power __pow__ __rpow__ reciprocal __rdiv__ __rtruediv__ abs __abs__ sin cos norm vector_norm var "
    "std clamp clamp_min clamp_max clip".split()
)
"""Names of nonlinear functions; methods, functions of torch and of torch.nn.functional share a name."""


class DetachNonlinearities(TorchFunctionMode):
    """A mode in which the outputs of nonlinear functions are detached.

    Layer norm and RMS norm are followed at a fixed scale, since detaching them would hide everything that they
    normalize. Products are followed in both factors, and so is any function that is not listed.
    """

    def __torch_function__(
        self, function: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        output = _AT_FIXED_SCALE.get(function, function)(*args, **(kwargs or {}))
        is_nonlinear = getattr(function, "__name__", "") in _NONLINEAR
        return output.detach() if is_nonlinear and isinstance(output, Tensor) else output


def _layer_norm(
    x: Tensor, shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    axes = tuple(range(-len(shape), 0))
    y = _scale(x - x.mean(axes, keepdim=True), axes, weight, eps)
    return y if bias is None else y + bias


def _rms_norm(x: Tensor, shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    return _scale(x, tuple(range(-len(shape), 0)), weight, torch.finfo(x.dtype).eps if eps is None else eps)


def _scale(x: Tensor, axes: tuple[int, ...], weight: Tensor | None, eps: float) -> Tensor:
    scale = (x.detach().square().mean(axes, keepdim=True) + eps).rsqrt()
    return x * scale if weight is None else x * scale * weight


_AT_FIXED_SCALE: Mapping[Any, Callable[..., Tensor]] = {F.layer_norm: _layer_norm, F.rms_norm: _rms_norm}
