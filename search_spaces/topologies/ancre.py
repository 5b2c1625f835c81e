"""ANCRe: the weights of all shortcuts between blocks are learned under a softmax.

Legend: K = blocks, h_0 = the network's input, h_j = what is known after block j, f_j = block j without its input.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

import torch
from torch import Tensor, nn

from search_spaces.count import Count
from search_spaces.errors import UserError
from search_spaces.spec import Axes
from search_spaces.topologies.base import Topology, Wiring, total

Direction = Literal["ingoing", "outgoing"]
State = tuple[list[list[Tensor]], tuple[Tensor, ...]]


@dataclass(frozen=True, slots=True)
class ANCReOptions:
    """How the shortcuts are normalised.

    Attributes:
        temperature: tau, what logits are divided by.
        direction: Whether the weights of all shortcuts into a block sum to 1, or those of all shortcuts out of one.
        cascaded: Whether the ordinary skip around each block is kept beside the shortcuts.
    """

    temperature: float = 0.01
    direction: Direction = "ingoing"
    cascaded: bool = True

    def __post_init__(self) -> None:
        if self.temperature <= 0:
            raise UserError(f"temperature must be more than 0, got {self.temperature}.")


@final
class ANCRe(Topology):
    """h_j = [h_{j-1} +] f_j(h_{j-1}) + sum_{i<j} p_ij h_i, and the head reads h_K.

    Ingoing: p_.j = softmax(c_.j / tau) over the sources i = 0 .. j-1. Outgoing: p_i. = softmax(c_i. / tau) over the
    targets j = i+1 .. K. The logits c are zeros at the start, so all shortcuts begin alike; the network does not begin
    as the residual network. A softmax over one candidate is 1 whatever its logit: that logit (block 1's, or source
    K-1's) is no parameter here. It is one of the K(K+1)/2 of the official code, which freezes it.

    Source: Zhang et al., ANCRe (2026), equations 6 to 8, and the official code (yilangzhang's ANCRe). Readings taken:

    * tau is 0.01, the code's default and appendix C's for language models and most of RL; section 4.1 prints 0.1.
    * `cascaded` is true: the code keeps each block's own skip, in brackets above. The text's formula has none
      (`cascaded=false`); a block's feed-forward layer reads the attention layer's input in either case.
    * Equation 8 starts its denominator at k = 1; the sum runs from 0, as equation 7 does.
    * The paper counts K(K-1)/2 parameters, the code K(K+1)/2 with the frozen one.

    The state is (weights into each block, (h_0 .. h_j)); after the last block h_K alone is kept.

    Parameters: `blocks * (blocks + 1) // 2 - 1`
    """

    Options: ClassVar[type] = ANCReOptions
    axes: ClassVar[Axes] = {"temperature": (0.01, 0.1)}
    granularity: ClassVar[Literal["layer", "block"]] = "block"

    def __init__(self, wiring: Wiring, options: ANCReOptions) -> None:
        super().__init__()
        self.blocks = len(wiring.sites)
        self.options = options
        # Candidates of one softmax, most to least in either direction; the one with a single candidate is fixed.
        self.c = nn.ParameterList(nn.Parameter(torch.zeros(n)) for n in range(self.blocks, 1, -1))

    @classmethod
    def count(cls, wiring: Wiring, options: ANCReOptions) -> Count:
        """The logits; block j adds j weighted states to its output and, cascaded, the one before it."""
        blocks = range(1, len(wiring.sites) + 1)
        return Count(params=sum(blocks[1:]), elementwise=sum((2 * j + options.cascaded) * wiring.width for j in blocks))

    def open(self, *parts: Tensor) -> State:
        """Compute all weights, and start the history with h_0."""
        x = total(parts)
        shares = [torch.softmax(c / self.options.temperature, dim=0).unbind() for c in self.c]
        shares.append((x.new_ones(()),))
        if self.options.direction == "ingoing":  # shares[K - j][i] is p_ij
            weights = [list(into) for into in reversed(shares)]
        else:  # shares[i][j - i - 1] is p_ij
            weights = [[shares[i][j - i - 1] for i in range(j)] for j in range(1, self.blocks + 1)]
        return weights, (x,)

    def read(self, t: int, state: State) -> tuple[tuple[Tensor, ...], State]:
        """Give the latest state h_t."""
        return (state[1][-1],), state

    def write(self, t: int, state: State, y: Tensor) -> State:
        """Form h_{t+1} from the block's output and all earlier states."""
        weights, history = state
        h = history[-1] + y if self.options.cascaded else y
        for p, earlier in zip(weights[t], history, strict=True):
            h = torch.addcmul(h, earlier, p)
        return weights, (h,) if t + 1 == self.blocks else (*history, h)

    def close(self, state: Any) -> Tensor:
        """Return h_K."""
        return state[1][-1]  # type: ignore[no-any-return]  # the state is opaque
