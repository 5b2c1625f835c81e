"""Block granularity: a topology applied to whole blocks instead of single layers."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, final

from torch import Tensor, nn

from search_spaces.support.count import Count
from search_spaces.support.errors import UserError
from search_spaces.topologies.base import WITHOUT_LAYER_NORM, StackSpec, Topology


@dataclass(frozen=True, slots=True)
class BlockTopology:
    """The topology that connects the blocks.

    Attributes:
        topology: The class; it sees one site per block, that of the block's first layer.
        options: Its options.
    """

    topology: type[Topology]
    options: Any


@final
class PerBlock(Topology):
    """Blocks connected by an inner topology, with the ordinary pre-norm skip inside each block.

    l_1 .. l_n are the layers of a block, and x is the input of l_1 from the inner topology (that of the queries, if
    ports differ):

        a_1 = l_1(x ...),  a_i = l_i(x + a_1 + ... + a_{i-1}),  output of the block = a_1 + ... + a_n

    The block's input is in the inputs of all its layers but not in its output (DeepCrossAttention, section 3.2 and
    figure 4). So an inner topology that sums everything gives the standard pre-norm transformer.

    The state is (inner state, x, a_1 + ...); the last two are None where no later layer of the block needs them.

    Raises:
        ValueError: The first layer does not start a block.
        UserError: The inner topology's input mode is one of WITHOUT_LAYER_NORM: x must be added to outputs in the
            stream's space, and the sum is not normed.
    """

    Options: ClassVar[type] = BlockTopology

    def __init__(self, spec: StackSpec, options: BlockTopology) -> None:
        super().__init__()
        sites = spec.sites
        if not sites or not sites[0].starts_block:
            raise ValueError("the first layer must start a block.")
        self.input_mode = options.topology.input_mode_of(options.options)
        if self.input_mode in WITHOUT_LAYER_NORM:
            how = f'has input mode "{self.input_mode}" and cannot connect whole blocks'
            name = options.topology.__name__
            raise UserError("bad-plugin", f"{name} {how}.", topology=name, input_mode=self.input_mode)
        self.starts_block, self.ends_block = spec.starts_block, spec.ends_block
        self.block = [sum(self.starts_block[: t + 1]) - 1 for t in range(len(sites))]
        self.copies = [len(site.ports) if self.input_mode == "per-port" else 1 for site in sites]
        self.inner = options.topology(block_spec(spec), options.options)
        self.takes_values = self.inner.takes_values  # type: ignore[misc]  # of this network

    @classmethod
    def count(cls, spec: StackSpec, options: BlockTopology) -> Count:
        """Count the inner topology; each further layer of a block adds to its input and to the block's output."""
        further = sum(not site.starts_block for site in spec.sites)
        return options.topology.count(block_spec(spec), options.options) + Count(elementwise=2 * further * spec.width)

    def recomputes(self, t: int) -> Literal["read", "write"]:
        return self.inner.recomputes(self.block[t])

    def coefficients(self) -> dict[str, Tensor]:
        return self.inner.coefficients()

    def open(self, *embeddings: Tensor) -> Any:
        return self.inner.open(*embeddings), None, None

    def read(self, t: int, state: Any) -> tuple[tuple[Tensor, ...], Any]:
        """Read from the inner topology at the start of a block; inside it, return x plus the outputs so far."""
        inner, base, partial = state
        if self.starts_block[t]:
            inputs, inner = self.inner.read(self.block[t], inner)
            base = inputs[0]
        else:
            inputs = (base + partial,) * self.copies[t]
        return inputs, (inner, None if self.ends_block[t] else base, partial)

    def values(self, t: int, state: Any, v: Tensor | None) -> tuple[Tensor | None, Any]:
        """Apply the inner topology's `values` if the layer starts a block."""
        if not self.starts_block[t]:
            return v, state
        v, inner = self.inner.values(self.block[t], state[0], v)
        return v, (inner, *state[1:])

    def init_layers(self, layers: nn.ModuleList) -> None:
        self.inner.init_layers(layers)

    def write(self, t: int, state: Any, y: Tensor) -> Any:
        """Add to the block's output; at the end of the block, write it to the inner topology."""
        inner, base, partial = state
        output = y if partial is None else partial + y
        if self.ends_block[t]:
            return self.inner.write(self.block[t], inner, output), None, None
        return inner, base, output

    def close(self, state: Any) -> Tensor:
        return self.inner.close(state[0])


def block_spec(spec: StackSpec) -> StackSpec:
    """Return the network as the inner topology sees it: one site per block."""
    return replace(spec, sites=tuple(site for site in spec.sites if site.starts_block))
