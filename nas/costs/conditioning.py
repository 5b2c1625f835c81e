"""Condition number of attention: the Jacobian of a layer's outputs by its weights (Leaner Transformers, 2025).

J is the Jacobian of vec(y), y = the multi-head output [N, D], by the query, key, value and output weights. The layer's
inputs are fixed; biases and norms are excluded. The paper's condition number is sigma_1 / sigma_min of J. If H*K < N
and H*K < D, J has a null space of (N - H*K)(D - H*K) dimensions for all weights, and that number is infinite. This
module computes sigma_1 / sigma_rank, which is equal where J has no null space.

The paper does not state which tokens and examples it averages over. Here they are EXAMPLES examples and at most TOKENS
tokens of each, evenly spaced, as the layer's whole sequence. Nyström attention with as many landmarks as tokens is
exact, so this measures its projections and not its approximation.

Shapes: N = tokens, D = width, H = heads, K = head dim, P = weights in J, A = H*K.
"""

import copy
import math
import statistics
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse.linalg import LinearOperator, eigsh, lobpcg
from torch import Tensor, nn
from torch.func import functional_call, jvp, vjp, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from search_spaces.layers.attention import Attention, NoProjection
from search_spaces.support.errors import UserError
from search_spaces.topologies.base import Topology
from tasks.data.batches import Inputs, call, select, to_device
from tasks.data.splits import even_indices

TOKENS, EXAMPLES = 16, 4
EXACT = 1024
"""Up to so many outputs N*D all singular values are computed; above, only the first and the last, by iteration."""

TOLERANCE = 1e-10
"""Singular values below this fraction of the first count as zero."""

CONVERGENCE = 0.01
"""The square of the last singular value has converged if a round lowers it by no more than this fraction."""

_ROWS = 128  # of J at a time

Weights = dict[str, Tensor]
Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Conditioning:
    """Conditioning of one layer at one example.

    Attributes:
        number: sigma_1 / sigma_rank of J.
        rank: Number of nonzero singular values. Beyond EXACT outputs, their number for weights in general position.
        max_rank: Number of all singular values.
        heads: sigma_1 / sigma_rank of the concatenated head outputs [N, H*K], the proxy of the paper's theorem.
    """

    number: float
    rank: int
    max_rank: int
    heads: float


class AttentionLayer:
    """An attention layer with recorded inputs, in double precision, as a function of its weights.

    A weight W acts on its inputs x [N, in] only through the span of their rows. J is therefore taken by s in W + s V,
    where the orthonormal rows of V [rank, in] are a basis of that span. J J' is unchanged, and s has at most N columns.
    """

    def __init__(self, module: Attention, inputs: tuple[Tensor, ...]) -> None:
        """Copy the layer; `inputs` is one [1, N, D], or one for each port."""
        self.module, self.inputs = copy.deepcopy(module).cpu().double().eval(), inputs
        maps = {f"{name}.weight": part for name, part in self.module.named_modules() if isinstance(part, nn.Linear)}
        features: dict[nn.Module, Tensor] = {}

        def note(part: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            features[part] = inputs[0][0]

        with ExitStack() as hooks, torch.no_grad():
            for part in maps.values():
                hooks.enter_context(part.register_forward_pre_hook(note))
            self.module(*inputs)
        out = maps["out.weight"]
        self.width = out.out_features
        self.heads = features[out]  # [N, H*K]
        self.weights = {name: part.weight.detach() for name, part in maps.items()}
        self.spans = {name: torch.linalg.svd(features[part], full_matrices=False).Vh for name, part in maps.items()}
        self.zero_shifts = {name: w.new_zeros(len(w), len(self.spans[name])) for name, w in self.weights.items()}

    def outputs(self, shifts: Weights) -> Tensor:
        """Return the layer's outputs with shifted weights, [N*D]."""
        weights = {name: weight + shifts[name] @ self.spans[name] for name, weight in self.weights.items()}
        y: Tensor = functional_call(self.module, weights, self.inputs)
        return y.flatten()


def conditioning_metrics(network: nn.Module, inputs: Inputs) -> dict[str, float]:
    """Return mean condition numbers of J and of the heads, the mean of rank / max_rank, and the number of each block.

    Raises:
        UserError: As `check_attention`.
    """
    blocks = conditioning(network, inputs)
    records = [record for block in blocks for record in block]
    return {
        "condition_number": statistics.mean(record.number for record in records),
        "condition_heads": statistics.mean(record.heads for record in records),
        "condition_rank_share": statistics.mean(record.rank / record.max_rank for record in records),
        **{
            f"condition_number_{b}": statistics.mean(record.number for record in block)
            for b, block in enumerate(blocks, 1)
        },
    }


def conditioning(network: nn.Module, inputs: Inputs) -> list[list[Conditioning]]:
    """Return the conditioning of each attention layer, in order, at each example. The network's mode is restored.

    Raises:
        UserError: As `check_attention`.
    """
    check_attention(network)
    return [[layer_conditioning(layer) for layer in layers] for layers in attention_layers(network, inputs)]


def check_attention(network: nn.Module) -> None:
    """Raise UserError if conditioning is undefined: no attention layers, no projections, or mixed values."""
    layers = _layers(network)
    if not layers:
        message = "conditioning needs attention layers, and the network has none."
        raise UserError("unsupported", message, option="conditioning", needs="attention")
    if any(isinstance(layer.project, NoProjection) for layer in layers):
        message = "conditioning needs attention layers with projections, and those of this topology have none."
        raise UserError("unsupported", message, option="conditioning", needs="projections")
    if any(isinstance(module, Topology) and module.takes_values for module in network.modules()):
        message = "conditioning needs attention over a layer's own values, and this topology mixes values."
        raise UserError("unsupported", message, option="conditioning", needs="values")


def attention_layers(network: nn.Module, inputs: Inputs) -> Iterator[list[AttentionLayer]]:
    """Yield for each attention layer, in order, one AttentionLayer for each example."""
    calls: list[tuple[Attention, tuple[Tensor, ...], Tensor | None]] = []

    def note(module: nn.Module, inputs: tuple[Tensor, ...], kwargs: Mapping[str, Any]) -> None:
        assert isinstance(module, Attention)
        calls.append((module, inputs, kwargs.get("mask")))

    device = next(network.parameters()).device
    with ExitStack() as hooks, _eval_mode(network), torch.compiler.set_stance("force_eager"):
        for layer in _layers(network):
            hooks.enter_context(layer.register_forward_pre_hook(note, with_kwargs=True))
        call(network, to_device(select(inputs, slice(EXAMPLES)), device))
    for module, layer_inputs, mask in calls:
        examples = [example for example in range(len(layer_inputs[0])) if mask is None or mask[example].any()]
        yield [AttentionLayer(module, _sample_tokens(layer_inputs, mask, example)) for example in examples]


def layer_conditioning(layer: AttentionLayer) -> Conditioning:
    """Return the conditioning of one layer at one example."""
    outputs = len(layer.heads) * layer.width
    max_rank = min(outputs, sum(weight.numel() for weight in layer.weights.values()))
    with sdpa_kernel(SDPBackend.MATH), torch.no_grad():
        # A layer with fewer head features than tokens has a null space, and J has few columns.
        exact = outputs <= EXACT or layer.heads.shape[1] < len(layer.heads)
        number, rank = _ratio(torch.linalg.svdvals(_triangle(layer))) if exact else (_extremes(layer), max_rank)
    return Conditioning(number, rank, max_rank, _ratio(torch.linalg.svdvals(layer.heads))[0])


def _triangle(layer: AttentionLayer) -> Tensor:
    """Return R of J' = Q R, weight by weight. It has J's singular values; a Gram matrix would lose half the digits."""
    outputs, vjp_fn, *_ = vjp(layer.outputs, layer.zero_shifts)
    units = torch.eye(len(outputs), dtype=torch.float64)
    rows: Weights = vmap(lambda u: vjp_fn(u)[0], chunk_size=_ROWS)(units)
    triangle: Tensor = outputs.new_zeros(0, len(outputs))
    for jacobian in rows.values():
        triangle = torch.linalg.qr(torch.cat((triangle, jacobian.flatten(1).mT)), mode="r").R
    return triangle


def _ratio(values: Tensor) -> tuple[float, int]:
    """Return the ratio of the first and the last nonzero singular value, and the number of nonzero ones."""
    nonzero = values[values > TOLERANCE * values[0]]
    return (nonzero[0] / nonzero[-1]).item(), len(nonzero)


def _extremes(layer: AttentionLayer) -> float:
    """Return the ratio of the first and last singular value, of a layer whose shape rules out a null space.

    It uses only products with J J': Lanczos for the first value, LOBPCG for the last. LOBPCG stops when a round lowers
    the value's square by less than CONVERGENCE. It approaches it from above, so the ratio from below. Beyond 1e6 the
    square is lost in double precision, and the ratio is too low. The preconditioner is the output map's part of J J':
    the heads' Gram matrix (x) I.
    """
    heads = layer.heads
    _, vjp_fn, *_ = vjp(layer.outputs, layer.zero_shifts)

    def gram(u: Tensor) -> Tensor:
        product: Tensor = jvp(layer.outputs, (layer.zero_shifts,), vjp_fn(u))[1]
        return product

    def products(block: Array) -> Array:
        columns = torch.from_numpy(np.ascontiguousarray(block)).view(len(block), -1)
        columns_out: Array = vmap(gram, in_dims=1, out_dims=1)(columns).view(block.shape).numpy()
        return columns_out

    def precondition(block: Array) -> Array:
        solution: Array = inverse @ block.reshape(len(inverse), -1)
        return solution.reshape(block.shape)

    size = len(heads) * layer.width
    draw = np.random.default_rng(0).standard_normal
    operator = LinearOperator((size, size), products, matmat=products, dtype=float)
    first = float(eigsh(operator, k=1, v0=draw(size), return_eigenvectors=False)[0])
    inverse = torch.linalg.inv(heads @ heads.mT + 1e-12 * first * torch.eye(len(heads)).double()).numpy()
    preconditioner = LinearOperator((size, size), precondition, matmat=precondition, dtype=float)
    start = np.linalg.qr(precondition(draw((size, 4)))).Q
    return math.sqrt(first / max(_smallest(operator, preconditioner, start), 1e-16 * first))


def _smallest(operator: LinearOperator, preconditioner: LinearOperator, block: Array) -> float:
    """Return the smallest eigenvalue, approached from above, starting from the span of a block [N*D, few]."""
    smallest = math.inf
    for _ in range(20):
        with warnings.catch_warnings():  # a round may end before it converges
            warnings.simplefilter("ignore")
            values, block = lobpcg(operator, block, M=preconditioner, largest=False, maxiter=50, tol=1e-14)
        before, smallest = smallest, min(smallest, float(values.min()))
        if smallest > (1 - CONVERGENCE) * before:
            break
    return smallest


def _layers(network: nn.Module) -> list[Attention]:
    return [module for module in network.modules() if isinstance(module, Attention)]


@contextmanager
def _eval_mode(network: nn.Module) -> Iterator[None]:
    training = network.training
    network.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        network.train(training)


def _sample_tokens(inputs: Sequence[Tensor], mask: Tensor | None, example: int) -> tuple[Tensor, ...]:
    """Return at most TOKENS evenly spaced tokens of an example that are not padding, [1, TOKENS, D] for each port."""
    tokens = torch.arange(inputs[0].shape[1]) if mask is None else mask[example].cpu().nonzero()[:, 0]
    sample = tokens[even_indices(len(tokens), min(TOKENS, len(tokens)))]
    return tuple(x[example : example + 1].cpu().double()[:, sample] for x in inputs)
