"""ANCRe: learned weights of all shortcuts between blocks, under a softmax.

Legend: K = blocks, h_0 = the network's input, h_j = the state after block j, f_j = block j without its skip. m_j is the
input of the last layer of block j, its feed-forward layer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, final

import torch
from torch import Tensor, nn

from search_spaces.architecture.architecture import Architecture
from search_spaces.support.count import Count
from search_spaces.support.errors import UserError
from search_spaces.support.spec import Axes
from search_spaces.topologies.base import StackSpec, Topology, pad_rows, sum_tensors

Direction = Literal["ingoing", "outgoing", "none"]
Form = Literal["softmax", "constant", "latest"]
Inputs = Literal["blocks", "feed-forward", "both"]
Shortcuts = Sequence[Sequence[tuple[int, Tensor]]]
"""For each target its sources, by index, with their weights."""


@dataclass(frozen=True, slots=True)
class ANCReOptions:
    """The shortcuts and their normalization.

    Attributes:
        temperature: tau, the divisor of the logits.
        direction: "ingoing" weights sum to 1 over the shortcuts into each target, "outgoing" weights over those out of
            each source. "none" leaves weights unconstrained; they start at 1 / j.
        cascaded: Whether the ordinary skip around each block is kept besides the shortcuts.
        form: "softmax" learns the weights, "constant" keeps their initial values. "latest" has one learned weight per
            block from the second on, for the state before it, and no other shortcut.
        inputs: The inputs that shortcuts connect: those of blocks (of attention layers), of feed-forward layers, or
            both.
    """

    temperature: float = 0.01
    direction: Direction = "ingoing"
    cascaded: bool = True
    form: Form = "softmax"
    inputs: Inputs = "blocks"

    def __post_init__(self) -> None:
        if self.temperature <= 0:
            rule = f"temperature must be more than 0, got {self.temperature}."
            raise UserError("out-of-range", rule, option="temperature", value=self.temperature, above=0)
        if self.form != "softmax" and self.direction != "ingoing":
            rule = f"form={self.form} does not normalize and takes no direction, got {self.direction}."
            raise UserError("conflict", rule, option="direction", value=self.direction, form=self.form)
        if self.form == "latest" and self.inputs != "blocks":
            rule = f"form=latest needs inputs=blocks, got inputs={self.inputs}."
            raise UserError("conflict", rule, option="inputs", value=self.inputs, form=self.form)
        if self.form == "latest" and not self.cascaded:
            rule = "form=latest needs cascaded=true: block 1 keeps its own skip."
            raise UserError("conflict", rule, option="cascaded", value=False, form=self.form)
        if self.inputs == "feed-forward" and not self.cascaded:
            rule = "inputs=feed-forward needs cascaded=true: it has no shortcut around blocks."
            raise UserError("conflict", rule, option="cascaded", value=False, inputs=self.inputs)


class LayerHistory(NamedTuple):
    """The state between layers: earlier states, and of the current block its input and its output so far."""

    into_states: Shortcuts
    into_inputs: Shortcuts
    states: tuple[Tensor, ...]
    inputs: tuple[Tensor, ...] = ()
    block_input: Tensor | None = None
    output: Tensor | None = None


@final
class ANCRe(Topology):
    """ANCRe (Zhang et al., 2026): learned shortcuts between all blocks, under a softmax.

    h_j = [h_{j-1} +] f_j(h_{j-1}) + sum_{i<j} p_ij h_i, and the output head reads h_K.

    Ingoing: p_.j = softmax(c_.j / tau) over the sources i = 0 .. j-1. Outgoing: p_i. = softmax(c_i. / tau) over the
    targets j = i+1 .. K. All logits c start at 0, so all shortcuts start alike; this is not the residual network. A
    softmax over one candidate is 1 for any logit. That logit (block 1's, or source K-1's) is no parameter here; the
    official code freezes it, as one of its K(K+1)/2.

    The paper's other forms are options. `form=constant` fixes p_ij = 1 / j. `form=latest` replaces the sum by a_j
    h_{j-1}, with a_j = 1 at initialization and none in block 1 (table 5). `direction=none` has unconstrained weights
    (table 4). `inputs=feed-forward` or `both` adds shortcuts m_j += sum_{i<j} p_ij m_i, j = 2 .. K (table 1).

    Source: Zhang et al., ANCRe (2026), equations 6 to 8, and the official code (yilangzhang's ANCRe). Differences and
    choices:

    * tau is 0.01, the default of the code and of appendix C for language models and most of RL; section 4.1 prints 0.1.
    * `cascaded` is true: the code keeps each block's own skip, in brackets above. The paper's formula has none
      (`cascaded=false`). In either case the input of a block's attention layer is part of its feed-forward layer's
      input.
    * Equation 8 starts its denominator at k = 1; here the sum starts at 0, as in equation 7.
    * The paper counts K(K-1)/2 parameters, the code K(K+1)/2 with the frozen one.
    * The code's "Hadamard" form starts its logits at 1: the same weights and gradients as from 0.
    * Unconstrained weights start at the softmax's values. The paper does not state its own start, which diverged.
    * No code has shortcuts between inputs of feed-forward layers. Here m_K is no source, and each source m_i includes
      its own shortcuts, as h_i does.

    Parameters: `(inputs != "feed-forward") * {
        "softmax": blocks * (blocks + 1) // 2 - (direction != "none"), "constant": 0, "latest": blocks - 1
    }[form] + (inputs != "blocks") * (form == "softmax") * (
        blocks * (blocks - 1) // 2 - (direction != "none" and blocks > 1)
    )`
    """

    Options: ClassVar[type] = ANCReOptions
    axes: ClassVar[Axes] = {"temperature": (0.01, 0.1)}
    # The backward pass adds to the gradients of all earlier states. 64 sums in one kernel, torch's limit, exceed a
    # GPU's registers. On an H200, with 24 blocks of width 512, such kernels took 17 of the 72 ms of a step.
    compile_options: ClassVar[dict[str, Any]] = {"max_fusion_size": 16}

    def __init__(self, spec: StackSpec, options: ANCReOptions) -> None:
        super().__init__()
        self.starts_block, self.ends_block = spec.starts_block, spec.ends_block
        self.options = options
        states, inputs = _targets(sum(self.starts_block), options)
        self.c = _weights(states, options)
        self.c_inputs = _weights(inputs, options)

    @classmethod
    def incompatibility_reason(cls, architecture: Architecture, options: ANCReOptions) -> str | None:
        """Refuse feed-forward shortcuts in networks without attention, whose blocks are one layer."""
        if options.inputs == "blocks" or architecture.head_dim:
            return None
        rule = f"inputs={options.inputs} needs both attention and feed-forward layers"
        return f"{rule}, got a network without heads. Use inputs=blocks."

    @classmethod
    def count(cls, spec: StackSpec, options: ANCReOptions) -> Count:
        """Count the weights; additions of skips and layers, and a weighted state per shortcut."""
        blocks = spec.num_blocks
        states, inputs = _targets(blocks, options)
        params = sum(sum(_candidates(targets, options)) for targets in (states, inputs))
        shortcuts = blocks - 1 if options.form == "latest" else sum(range(states + 1)) + sum(range(inputs + 1))
        additions = 2 * (len(spec.sites) - blocks) + options.cascaded * blocks
        return Count(params, elementwise=(2 * shortcuts + additions) * spec.width)

    def coefficients(self) -> dict[str, Tensor]:
        """Return p_ij (or a_j) into each state j, and p_ij into m_j, with sources in columns, from 0 and from 1."""
        states, inputs = _targets(sum(self.starts_block), self.options)
        unit = torch.ones(())
        tables = {
            "a" if self.options.form == "latest" else "p": self._into(self.c, states, unit),
            "p of m": [[], *self._into(self.c_inputs, inputs, unit)],
        }
        return {
            name: pad_rows(_in_columns(into) for into in targets) for name, targets in tables.items() if any(targets)
        }

    def open(self, *embeddings: Tensor) -> LayerHistory:
        """Compute all weights, and start the history with h_0."""
        x = sum_tensors(embeddings)
        states, inputs = _targets(sum(self.starts_block), self.options)
        return LayerHistory(self._into(self.c, states, x), self._into(self.c_inputs, inputs, x), (x,))

    def read(self, t: int, state: LayerHistory) -> tuple[tuple[Tensor, ...], LayerHistory]:
        """Return the block's input, inside a block plus the outputs of its layers, with shortcuts of m."""
        block_input = state.states[-1] if self.starts_block[t] else state.block_input
        assert block_input is not None
        if state.output is None:
            return (block_input,), state._replace(block_input=block_input)
        if self.ends_block[t] and self.options.inputs != "blocks":
            output = state.output
            if state.inputs:
                output = _add_shortcuts(output, state.inputs, state.into_inputs[len(state.inputs) - 1])
            m = block_input + output
            return (m,), state._replace(output=output, inputs=(*state.inputs, m))
        return (block_input + state.output,), state

    def write(self, t: int, state: LayerHistory, y: Tensor) -> LayerHistory:
        """Add to the block's output; at its end, compute h_j."""
        output = y if state.output is None else state.output + y
        if not self.ends_block[t]:
            return state._replace(output=output)
        block_input, into, states = state.block_input, state.into_states, state.states
        assert block_input is not None
        h = block_input + output if self.options.cascaded else output
        if into:
            h = _add_shortcuts(h, states, into[len(states) - 1])
        return state._replace(
            states=(*states, h) if t + 1 < len(self.ends_block) else (h,), block_input=None, output=None
        )

    def close(self, state: LayerHistory) -> Tensor:
        return state.states[-1]

    def _into(self, c: nn.ParameterList, targets: int, x: Tensor) -> Shortcuts:
        """Return the shortcuts into each target; target n = 1 .. has the sources 0 .. n-1."""
        options, unit = self.options, x.new_ones(())
        if options.form == "latest":
            return [[], *([(source, a)] for source, a in enumerate(c, start=1))]
        if options.form == "constant":
            return [[(i, unit / n) for i in range(n)] for n in range(1, targets + 1)]
        if options.direction == "none":
            return [list(enumerate(weights.unbind())) for weights in c]
        shares = [torch.softmax(logits / options.temperature, dim=0).unbind() for logits in c]
        shares += [(unit,)] * (targets > 0)
        if options.direction == "ingoing":  # shares[targets - n][i] is p_in
            return [list(enumerate(into)) for into in reversed(shares)]
        # shares[i][n - i - 1] is p_in
        return [[(i, shares[i][n - i - 1]) for i in range(n)] for n in range(1, targets + 1)]


def _targets(blocks: int, options: ANCReOptions) -> tuple[int, int]:
    """Return the numbers of states and of feed-forward inputs that have shortcuts from all earlier ones."""
    return blocks * (options.inputs != "feed-forward"), (blocks - 1) * (options.inputs != "blocks")


def _candidates(targets: int, options: ANCReOptions) -> list[int]:
    """Return the lengths of the learned vectors; a softmax over one candidate has none."""
    if options.form == "constant":
        return []
    if options.form == "latest":
        return [1] * max(0, targets - 1)
    return [*range(1, targets + 1)] if options.direction == "none" else [*range(targets, 1, -1)]


def _weights(targets: int, options: ANCReOptions) -> nn.ParameterList:
    """Return logits at 0, the longest first; unconstrained weights at 1 / n; weights of the latest states at 1."""
    numbers = _candidates(targets, options)
    if options.form == "latest":
        return nn.ParameterList(nn.Parameter(torch.ones(())) for _ in numbers)
    starts = [1 / n if options.direction == "none" else 0.0 for n in numbers]
    return nn.ParameterList(nn.Parameter(torch.full((n,), start)) for n, start in zip(numbers, starts, strict=True))


def _in_columns(shortcuts: Sequence[tuple[int, Tensor]]) -> Tensor:
    row = torch.full((max((source for source, _ in shortcuts), default=-1) + 1,), torch.nan, dtype=torch.float64)
    for source, weight in shortcuts:
        row[source] = weight
    return row


def _add_shortcuts(x: Tensor, earlier: Sequence[Tensor], shortcuts: Sequence[tuple[int, Tensor]]) -> Tensor:
    for source, weight in shortcuts:
        x = torch.addcmul(x, earlier[source], weight)
    return x
