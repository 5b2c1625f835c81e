"""The residual stream: what a topology owns and the moves on it.

A network is a run of layers f_0 .. f_{L-1} between an embedding and a head. The topology owns the
memory between them, its *state*:

    state = topology.open(x)                        # embedding        -> state
    inputs, state = topology.read(t, state)         # state            -> the inputs of layer t
    state = topology.write(t, state, f_t(*inputs))  # layer t's output -> state
    y = topology.close(state)                       # state            -> what the head reads

A fifth move, `values`, reaches into attention layers, between what they project and what attends; few topologies have
anything to do there.

State is passed, never kept on the module: two forwards are equal, checkpointing and torch.compile work.

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
"""What a topology norms itself, and what `close` returns."""

PRENORMED: frozenset[InputMode] = NORMED | {"bare"}
"""What layers take without a norm of their own, and the head what `close` returns."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where one layer meets the stream.

    Attributes:
        ports: Names of the layer's inputs, in call order: ("q", "k", "v") or ("x",).
        inner: Features of each input, and of the output, in head space: heads * head_dim for attention, D else.
        starts_block: Whether the layer is the first of its block (attention is, its feed-forward layer is not).
        takes_condition: Whether the layer takes a `condition` beside its inputs; topologies leave that alone.
        norms_input: Whether the layer norms what it reads before all else: a factor of that changes nothing then.
    """

    ports: tuple[str, ...]
    inner: int
    starts_block: bool
    takes_condition: bool = False
    norms_input: bool = False

    @property
    def attends(self) -> bool:
        """Whether the layer looks at other positions than its own, and so has to know which of them are padding."""
        return "k" in self.ports


@dataclass(frozen=True, slots=True)
class Wiring:
    """What a topology is built for.

    Attributes:
        sites: One for each layer, in order.
        width: Features of the stream, D.
        head_dim: Features of one head; 0 in a network without heads.
        parts: How many embeddings make the network's input (2: tokens and positions).
        hidden: For each block, the features inside its feed-forward layer, or between its dense layers.
    """

    sites: tuple[Site, ...]
    width: int
    head_dim: int
    parts: int = 1
    hidden: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class NoOptions:
    """The options of a topology that has none."""


class Topology(nn.Module, ABC):
    """How a run of layers is wired. One instance wires one network.

    A subclass takes `(wiring, options)`, is final, and says in its docstring the equation, the source, the reading
    taken of it and, after "Parameters:", how many it adds: a Python expression in `blocks`, `layers`, `sites` (one for
    each layer), `ports` (inputs of a block's first layer), `width`, `head_dim`, `parts`, `hidden` (one for
    each block) and the options by their names.

    Linear maps are held as nn.Linear and mixing weights as bare parameters: weight decay goes by that (see decay.py).
    """

    Options: ClassVar[type] = NoOptions
    """A frozen dataclass: the options that stand in brackets behind the name. Raises UserError for bad values.

    Where an option has its default the text leaves it out (see canonical_text.py), so rows rest on defaults that stay.
    """

    input_mode: InputMode = "shared"
    """What `read` hands a layer, and so what is left for the layer to do:

    "shared"    one tensor [..., D] for all ports: the layer norms it once and projects it;
    "per-port"  one tensor [..., D] for each port: the layer norms and projects each;
    "bare"      one tensor [..., D] for all ports, that the layer projects as it is, as the head does, and none norms;
    "normed"    the same, normed by the topology. What `close` returns is normed too;
    "heads"     one tensor [..., inner] for each port, normed and in head space: the layer does neither, and its
                output stays in head space. What `close` returns is normed too.
    """

    granularity: ClassVar[Literal["layer", "block"]] = "layer"
    """Whether the topology wires every layer, or whole blocks that keep their inner skip (see PerBlock)."""

    replaces_feed_forward: ClassVar[bool] = False
    """Whether it stands in the place of the feed-forward layers: a block is then its attention layer alone, and
    `wiring.hidden` says how many features what stands there has inside."""

    axes: ClassVar[Axes] = {}
    """Option -> the values that the spaces `joint` and `topology` search, each accepted by `Options`; numbers in
    increasing order. Options that are not named keep their defaults."""

    in_joint_spaces: ClassVar[bool] = True
    """Whether the spaces `joint` and `per-block` have it; `topology` has all, and any can be asked for by name."""

    takes_values: ClassVar[bool] = False
    """Whether `values` is called. Attention layers are then asked for their projections and for the rest apart."""

    compiled_with: ClassVar[dict[str, Any]] = {}
    """Options of torch's compiler (`torch._inductor.list_options`) for a network that is wired so."""

    handlers: ClassVar[Handlers] = {}
    """How operators of this topology are counted that `nas cost` does not know; None for those without matrix work."""

    @classmethod
    def input_mode_of(cls, options: Any) -> InputMode:
        """What `read` hands layers with these options: `input_mode`, but where an option says otherwise.

        A network's topology has it as its own `input_mode`.
        """
        return cls.input_mode

    def input_mode_at(self, t: int) -> InputMode:
        """What is delivered to layer t: `input_mode`, but where runs of layers are wired differently."""
        return self.input_mode

    def recomputes(self, t: int) -> Literal["read", "write"]:
        """The move at layer t that holds most for the backward pass beyond what it is given, and draws nothing.

        A network with `recompute_mixing` computes it again there.
        """
        return "read"

    @classmethod
    def refusal(cls, architecture: Architecture, options: Any) -> str | None:
        """Why this architecture cannot be wired so, or None where it can."""
        return None

    @classmethod
    def equals_resnet(cls, options: Any) -> bool:
        """Whether the network computes what the plain residual network with the same layers does, before training."""
        return False

    @classmethod
    def equals_resnet_behind_norms(cls, options: Any) -> bool:
        """Whether it does so where all layers norm what they read, but for the norms' epsilon."""
        return cls.equals_resnet(options)

    @classmethod
    def projects_values(cls, wiring: Wiring, options: Any, t: int) -> bool:
        """Whether layer t, which attends, has a projection to values of its own; else `values` is given None."""
        return True

    @classmethod
    @abstractmethod
    def count(cls, wiring: Wiring, options: Any) -> Count:
        """Closed form: the topology's own parameters, and at one position its MACs and its elementwise mixing work.

        Mixing is what `read`, `write` and `close` multiply and add, as the equations have it and not as the code
        spells it; a running sum takes one addition a step. `open`, which sums the embeddings, is not in it.
        """

    @abstractmethod
    def open(self, *parts: Tensor) -> Any:
        """Start a state from the embeddings, each [..., D], whose sum is the network's input."""

    @abstractmethod
    def read(self, t: int, state: Any) -> tuple[tuple[Tensor, ...], Any]:
        """Return layer t's inputs (one for all ports, or one for each) and the state."""

    def start(self, layers: nn.ModuleList) -> None:
        """Change freshly drawn layers, where the topology has a start of its own for them; its own are drawn already.

        Called once a stack is built, and by networks that then draw all maps of its layers anew.
        """

    def values(self, t: int, state: Any, v: Tensor | None) -> tuple[Tensor | None, Any]:
        """Return what is attended over at layer t in place of the values [..., inner] that it projected; and the state.

        Called after `read`, and only where `takes_values` is set.
        """
        return v, state

    def coefficients(self) -> dict[str, Tensor]:
        """Weights of sums by the name that the equations give them, where what layers read does not show them.

        A row for each layer, block or state, NaN where it has none: [rows, columns], or [rows, columns, columns] where
        it has a matrix. What the input adds to them is left out. A tensor without columns is not shown.
        """
        return {}

    @abstractmethod
    def write(self, t: int, state: Any, y: Tensor) -> Any:
        """Store layer t's output and return the new state."""

    @abstractmethod
    def close(self, state: Any) -> Tensor:
        """Return what the head reads, [..., D]."""


def pad_rows(rows: Iterable[Tensor]) -> Tensor:
    """Rows of unequal lengths as one tensor, NaN where a row has nothing."""
    return pad_sequence([row.double() for row in rows], batch_first=True, padding_value=nan)


def largest_divisor(number: int, below: int) -> int:
    """The largest divisor of a number that is below a bound."""
    return max(divisor for divisor in range(1, below) if number % divisor == 0)


def sum_tensors(parts: tuple[Tensor, ...]) -> Tensor:
    """The network's input x_0, where a topology keeps the embeddings as their sum."""
    return reduce(torch.add, parts)
