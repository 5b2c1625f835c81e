"""How what each layer of a stack reads depends on the outputs of earlier layers.

The measurement works from outside, for any topology. One forward pass detaches every layer's output. What a layer reads
is then a function of the network's input e_0 and of the outputs e_1, e_2 ... of earlier layers, computed by the
topology alone. With its Jacobian J by one of them, [D, D] at each position:

    weight = the mean of the diagonal of J        gain = |J| / sqrt(D), Frobenius norm

For a weighted sum, the weight is the coefficient (its mean, if features or positions have their own) and the gain is
its absolute value. Topologies work position by position. So one product with random signs z for each reader estimates
both: E[z'J z] is the trace and E[|J'z|^2] the squared norm, without error if J is diagonal, as in a weighted sum.
Weights that depend on the input count as constants (see DetachNonlinearities).

Shapes: B = batch, N = tokens, ... = [B, N] or [B], P = positions, D = width, R = readers (one for each port of a layer,
then the head), S = sources (the network's input, and each layer's output).
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Generator, Tensor, nn

from nas.report.wiring.fixed_weights import DetachNonlinearities
from search_spaces.layers.stack import Stack
from search_spaces.topologies.base import sum_tensors

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Influence:
    """Measurements of one stack.

    Attributes:
        weights: [R, S], 0 where a source comes after its reader.
        gains: [R, S], likewise.
        layers: Number of the layer of each reader from 1, the head's being S.
        input_rms: Root mean square of what each reader reads, [R].
        output_rms: Root mean square of each source, [S].
        gradient: Norm of the loss's gradient by each source, over the whole batch, [S]; None without a loss.
        fixed: Whether weights that depend on the input count as constants; False if that leaves some reader no source.
        reads_head_space: Whether any layer reads in head space, where no weight is defined, as features differ.
    """

    weights: Array
    gains: Array
    layers: tuple[int, ...]
    input_rms: Array
    output_rms: Array
    gradient: Array | None
    fixed: bool
    reads_head_space: bool

    @property
    def shares(self) -> Array:
        """The share of each source in what a reader reads, [R, S]: gain times RMS, divided by the reader's sum."""
        parts: Array = self.gains * self.output_rms
        sums: Array = parts.sum(axis=1, keepdims=True)
        return parts / np.where(sums > 0, sums, 1.0)

    @property
    def layer_input_rms(self) -> Array:
        """Root mean square over the ports of each layer, and of the head, [S]."""
        return np.array(
            [np.sqrt(np.mean(self.input_rms[np.equal(self.layers, t)] ** 2)) for t in sorted({*self.layers})]
        )


@dataclass
class StackRecording:
    """What passed through a stack in its last forward pass.

    Attributes:
        sources: Zeros added to the network's input and to each layer's output, to differentiate by: [..., D].
        outputs: The tensors that they were added to.
        inputs: What each layer read, one tensor for each port, and then what the head read.
        token_mask: False where a token is padding, [B, N], or None.
    """

    sources: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    inputs: list[tuple[Tensor, ...]] = field(default_factory=list)
    token_mask: Tensor | None = None


class RecordingTopology(nn.Module):
    """A wrapper of a topology that records what passes; `detach` detaches each layer's output."""

    def __init__(self, topology: Any, flow: StackRecording, *, detach: bool) -> None:
        super().__init__()
        self.topology, self.flow, self.detach = topology, flow, detach
        self.takes_values = topology.takes_values

    def open(self, *embeddings: Tensor) -> Any:
        """Open the topology and clear the records: if a stack is called twice, the last call counts."""
        for tensors in (self.flow.sources, self.flow.outputs, self.flow.inputs):
            tensors.clear()
        first, *rest = embeddings
        return self.topology.open(first + self._source(sum_tensors(embeddings)), *rest)

    def read(self, t: int, state: Any) -> Any:
        """Record what the layer reads."""
        inputs, state = self.topology.read(t, state)
        self.flow.inputs.append(inputs)
        return inputs, state

    def values(self, t: int, state: Any, v: Tensor | None) -> Any:
        """Pass values on unrecorded: they are inside a layer."""
        return self.topology.values(t, state, v)

    def write(self, t: int, state: Any, y: Tensor) -> Any:
        """Record the layer's output."""
        return self.topology.write(t, state, (y.detach() if self.detach else y) + self._source(y))

    def close(self, state: Any) -> Tensor:
        """Record what the head reads."""
        y: Tensor = self.topology.close(state)
        self.flow.inputs.append((y,))
        return y

    def _source(self, output: Tensor) -> Tensor:
        source = torch.zeros_like(output).requires_grad_()
        self.flow.outputs.append(output.detach())
        self.flow.sources.append(source)
        return source


def influences(network: nn.Module, forward: Callable[[], Tensor | None]) -> dict[str, Influence]:
    """Measure each stack of a network, by module name; `forward` calls the network and returns a loss or None."""
    stacks = {name: module for name, module in network.named_modules() if isinstance(module, Stack)}
    with _record_flows(stacks, detach=False) as flows:
        loss = forward()
        gradients = {name: _gradient(loss, flow) for name, flow in flows.items()}
    measurements = {name: _measure_stack(name, stack, forward) for name, stack in stacks.items()}
    return {
        name: Influence(
            *measurements[name][0],
            layers=tuple(t for t, inputs in enumerate(flow.inputs, start=1) for _ in inputs),
            input_rms=np.array([_rms(_select_unpadded(x, flow.token_mask)) for inputs in flow.inputs for x in inputs]),
            output_rms=np.array([_rms(_select_unpadded(x, flow.token_mask)) for x in flow.outputs]),
            gradient=gradients[name],
            fixed=measurements[name][1],
            reads_head_space=_reads_head_space(stacks[name]),
        )
        for name, flow in flows.items()
    }


def _reads_head_space(stack: Stack) -> bool:
    return any(stack.topology.input_mode_at(t) == "heads" for t in range(len(stack.layers)))


def _measure_stack(name: str, stack: Stack, forward: Callable[[], Any]) -> tuple[tuple[Array, Array], bool]:
    """Return weights and gains of a stack, and whether input-dependent weights were constants."""
    flow = _detached_flow(name, stack, forward, DetachNonlinearities())
    if all(x.requires_grad for inputs in flow.inputs for x in inputs):
        pair = _weights_and_gains(flow)
        if pair[1].any(axis=1).all():
            return pair, True
    return _weights_and_gains(_detached_flow(name, stack, forward, nullcontext())), False


def _detached_flow(
    name: str, stack: Stack, forward: Callable[[], Any], mode: AbstractContextManager[Any]
) -> StackRecording:
    """Return what passes through a stack whose layers' outputs are detached."""
    with _record_flows({name: stack}, detach=True) as flows, mode:
        forward()
    return flows[name]


def _weights_and_gains(flow: StackRecording) -> tuple[Array, Array]:
    """Return the weights and the gains, [R, S] each."""
    generator = Generator().manual_seed(0)
    weights, gains = [], []
    for x in (x for inputs in flow.inputs for x in inputs):
        signs = torch.randint(0, 2, x.shape, generator=generator).to(x) * 2 - 1
        vjps = torch.autograd.grad(x, flow.sources, signs, allow_unused=True, retain_graph=True)
        rows = [_weight_and_gain(g, signs, flow.token_mask) for g in vjps]
        weights.append([weight for weight, _ in rows])
        gains.append([gain for _, gain in rows])
    return np.array(weights), np.array(gains)


def _weight_and_gain(vjp: Tensor | None, signs: Tensor, token_mask: Tensor | None) -> tuple[float, float]:
    """Return weight and gain of a source; without a gradient both are 0, for other widths the weight is."""
    if vjp is None:
        return 0.0, 0.0
    vjp, signs = _select_unpadded(vjp, token_mask), _select_unpadded(signs, token_mask)
    weight = (signs * vjp).mean().item() if signs.shape == vjp.shape else 0.0
    return weight, (vjp.square().sum() / signs.numel()).sqrt().item()


def _gradient(loss: Tensor | None, flow: StackRecording) -> Array | None:
    if loss is None:
        return None
    gradients = torch.autograd.grad(loss, flow.sources, allow_unused=True, retain_graph=True)
    return np.array([0.0 if gradient is None else gradient.norm().item() for gradient in gradients])


def _select_unpadded(x: Tensor, token_mask: Tensor | None) -> Tensor:
    """Return the positions that are not padding, [P, D]."""
    return x.flatten(0, -2) if token_mask is None else x[token_mask]


def _rms(x: Tensor) -> float:
    return x.detach().square().mean().sqrt().item()


@contextmanager
def _record_flows(stacks: Mapping[str, Stack], *, detach: bool) -> Iterator[dict[str, StackRecording]]:
    """Record what passes through stacks; restore their topologies at the end."""
    flows = {name: StackRecording() for name in stacks}
    with ExitStack() as ends:
        for name, stack in stacks.items():
            ends.enter_context(_record_mask(stack, flows[name]))
            ends.callback(setattr, stack, "topology", stack.topology)
            stack.topology = RecordingTopology(stack.topology, flows[name], detach=detach)  # type: ignore[assignment]
        yield flows


def _record_mask(stack: Stack, flow: StackRecording) -> Any:
    def note(stack: nn.Module, embeddings: tuple[Tensor, ...], kwargs: Mapping[str, Any]) -> None:
        flow.token_mask = kwargs.get("mask")

    return stack.register_forward_pre_hook(note, with_kwargs=True)
