"""The topology interface: the residual stream as a state, with methods that read and write it.

A network is a sequence of layers f_0 .. f_{L-1} between an embedding and an output head. The topology owns the memory
between them, its *state*:

    state = topology.open(x)                        # embedding        -> state
    inputs, state = topology.read(t, state)         # state            -> the inputs of layer t
    state = topology.write(t, state, f_t(*inputs))  # layer t's output -> state
    y = topology.close(state)                       # state            -> the input of the output head

Few topologies also use `values`, which is called inside attention layers, between projections and attention.

State is passed, never stored on the module. Two forwards are independent, and checkpointing and torch.compile work.

Shapes: ... = any leading axes ([B, N] for tokens, [B] without a token axis), D = width.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from math import nan
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from search_spaces.architecture.architecture import Architecture
from search_spaces.support.count import Count, Handlers
from search_spaces.support.spec import Axes

InputMode = Literal["shared", "per-port", "bare", "normed", "heads"]

NORMED: frozenset[InputMode] = frozenset({"heads", "normed"})
"""Input modes in which the topology applies norms, also to the output of `close`."""

WITHOUT_LAYER_NORM: frozenset[InputMode] = NORMED | {"bare"}
"""Input modes in which layers do not norm their input, nor the network the output of `close`."""


@dataclass(frozen=True, slots=True)
class Site:
    """The interface between one layer and the stream.

    Attributes:
        ports: Names of the layer's inputs, in call order: ("q", "k", "v") or ("x",).
        features: Features of each input and of the output in head space: heads * head_dim for attention, else D.
        starts_block: Whether the layer is the first of its block: true for attention, false for its feed-forward layer.
        takes_condition: Whether the layer takes a `condition` besides its inputs; topologies ignore it.
        norms_input: Whether the layer first norms its input, which makes the input's scale irrelevant.
    """

    ports: tuple[str, ...]
    features: int
    starts_block: bool
    takes_condition: bool = False
    norms_input: bool = False

    @property
    def attends(self) -> bool:
        """Whether the layer attends to other positions, and so needs the padding mask."""
        return "k" in self.ports


@dataclass(frozen=True, slots=True)
class StackSpec:
    """The network that a topology is built for.

    Attributes:
        sites: One per layer, in order.
        width: Features of the stream, D.
        head_dim: Features of one head; 0 in a network without heads.
        num_embeddings: Number of embeddings that make up the network's input (2: tokens and positions).
        hidden: For each block, the hidden features of its feed-forward layer, or between its dense layers.
    """

    sites: tuple[Site, ...]
    width: int
    head_dim: int
    num_embeddings: int = 1
    hidden: tuple[int, ...] = ()

    @property
    def starts_block(self) -> list[bool]:
        """For each layer, whether it is the first of its block."""
        return [site.starts_block for site in self.sites]

    @property
    def ends_block(self) -> list[bool]:
        """For each layer, whether it is the last of its block."""
        return [*self.starts_block[1:], True]

    @property
    def num_blocks(self) -> int:
        """The number of blocks."""
        return sum(self.starts_block)


@dataclass(frozen=True, slots=True)
class NoOptions:
    """The options of a topology without options."""


class Topology(nn.Module, ABC):
    """Base class of topologies. One instance connects the layers of one network.

    A subclass takes `(spec, options)` and is final. Its docstring gives the equation, the source and its
    interpretation. After "Parameters:" it gives the number of added parameters as a Python expression of:

    * `blocks`, `layers`, `sites` (one per layer) and `ports` (inputs of a block's first layer)
    * `width`, `head_dim`, `num_embeddings` and `hidden` (one per block)
    * the options

    Hold linear maps as nn.Linear and mixing weights as bare parameters: weight decay depends on it (see decay.py).
    """

    Options: ClassVar[type] = NoOptions
    """A frozen dataclass of the options in parentheses after the name. Raises UserError for invalid values.

    Texts leave out options with their default (see canonical_text.py), so defaults must never change.
    """

    input_mode: InputMode = "shared"
    """What `read` returns for a layer, and what the layer still has to do.

    "shared"    one tensor [..., D] for all ports: the layer norms and projects it once;
    "per-port"  one tensor [..., D] per port: the layer norms and projects each;
    "bare"      one tensor [..., D] for all ports: nothing norms it, neither before layers nor before the output head;
    "normed"    one tensor [..., D] for all ports, normed by the topology, as is the output of `close`;
    "heads"     one tensor [..., features] per port, normed and in head space: the layer neither norms nor projects, and
                its output stays in head space. The output of `close` is normed too.
    """

    granularity: ClassVar[Literal["layer", "block"]] = "layer"
    """Whether the topology connects layers, or whole blocks that keep their inner skip (see PerBlock)."""

    replaces_feed_forward: ClassVar[bool] = False
    """Whether it replaces the feed-forward layers; `spec.hidden` then gives its own hidden features."""

    axes: ClassVar[Axes] = {}
    """Option -> values that the spaces `joint` and `topology` search, in increasing order; others keep defaults."""

    in_joint_spaces: ClassVar[bool] = True
    """Whether the spaces `joint` and `per-block` include it; `topology` includes all, and any can be named."""

    takes_values: ClassVar[bool] = False
    """Whether `values` is called. Attention layers then run in two steps: projections, and the rest."""

    compile_options: ClassVar[dict[str, Any]] = {}
    """torch.compile options (`torch._inductor.list_options`) for networks with this topology."""

    handlers: ClassVar[Handlers] = {}
    """Handlers for operators that `nas cost` does not know; None for those without matrix work."""

    @classmethod
    def input_mode_of(cls, options: Any) -> InputMode:
        """Return the input mode with these options, which an instance also has as `input_mode`."""
        return cls.input_mode

    def input_mode_at(self, t: int) -> InputMode:
        """Return the input mode of layer t; it varies only between segments of blocks."""
        return self.input_mode

    def recomputes(self, t: int) -> Literal["read", "write"]:
        """Return the method to recompute at layer t in the backward pass of a network with `recompute_mixing`.

        It is the one that stores most activations besides its inputs. It must not draw random numbers.
        """
        return "read"

    @classmethod
    def incompatibility_reason(cls, architecture: Architecture, options: Any) -> str | None:
        """Return why the topology cannot be used with this architecture, or None."""
        return None

    @classmethod
    def equals_resnet(cls, options: Any) -> bool:
        """Return whether the untrained network computes what the residual network with the same layers does."""
        return False

    @classmethod
    def equals_resnet_with_norms(cls, options: Any) -> bool:
        """Return whether it does so if all layers norm their inputs, up to the norms' epsilon."""
        return cls.equals_resnet(options)

    @classmethod
    def projects_values(cls, spec: StackSpec, options: Any, t: int) -> bool:
        """Return whether attention layer t projects its own values; otherwise `values` receives None."""
        return True

    @classmethod
    @abstractmethod
    def count(cls, spec: StackSpec, options: Any) -> Count:
        """Count the topology's parameters, and its MACs and elementwise mixing work at one position, in closed form.

        Mixing is all that `read`, `write` and `close` multiply and add according to the equations, not to the code. A
        running sum is one addition per step. `open`, which sums the embeddings, is not counted.
        """

    @abstractmethod
    def open(self, *embeddings: Tensor) -> Any:
        """Create the state from the embeddings, each [..., D], whose sum is the network's input."""

    @abstractmethod
    def read(self, t: int, state: Any) -> tuple[tuple[Tensor, ...], Any]:
        """Return layer t's inputs (one for all ports, or one per port) and the state."""

    def init_layers(self, layers: nn.ModuleList) -> None:
        """Change the initialization of layers, if the topology requires it; its own parameters are initialized already.

        Called when a stack is built, and again by networks that reinitialize the layers afterwards.
        """

    def values(self, t: int, state: Any, v: Tensor | None) -> tuple[Tensor | None, Any]:
        """Return the values [..., features] that layer t attends over, given those it projected, and the state.

        Called after `read`, only if `takes_values` is set.
        """
        return v, state

    def coefficients(self) -> dict[str, Tensor]:
        """Return mixing weights that are not visible in the layers' inputs, by their names in the equations.

        Each table has a row per layer, block or state, with NaN for missing entries: [rows, columns], or [rows,
        columns, columns] for matrices. Input-dependent terms are left out. A tensor without columns is not shown.
        """
        return {}

    @abstractmethod
    def write(self, t: int, state: Any, y: Tensor) -> Any:
        """Store layer t's output and return the new state."""

    @abstractmethod
    def close(self, state: Any) -> Tensor:
        """Return the input of the output head, [..., D]."""


def pad_rows(rows: Iterable[Tensor]) -> Tensor:
    """Stack rows of unequal lengths into one tensor, padded with NaN."""
    return pad_sequence([row.double() for row in rows], batch_first=True, padding_value=nan)


def largest_divisor(number: int, below: int) -> int:
    """Return the largest divisor of a number below a bound."""
    return max(divisor for divisor in range(1, below) if number % divisor == 0)


def sum_tensors(tensors: tuple[Tensor, ...]) -> Tensor:
    """Return the network's input x_0, the sum of the embeddings."""
    return reduce(torch.add, tensors)
