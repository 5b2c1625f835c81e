"""Generalised residual networks and DeepCrossAttention: every input is a weighted sum of all earlier outputs.

With e_0 the network's input and e_j the output of block j without that block's input, block t = 1 .. T reads a
weighted sum g_t of the stack e_0 .. e_{t-1}, and the head reads y, a weighted sum of e_0 .. e_T. All weights 1 is the
residual network.

Source: Heddes et al., DeepCrossAttention (2025), sections 3.1 and 3.2. Readings taken:

* The sum for the head has its own weights, as y is printed, for all topologies of the family.
* One sum for each block and port: the paper's T counts decoder blocks. Entries are not normed.
* sigma is ReLU. See GRNv3 for where it stands.

Shapes: ... = any leading axes, D = width, S = entries of the stack, P = sums over the same stack.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from search_spaces.support.count import Count, weighted_sum
from search_spaces.support.errors import check_at_least
from search_spaces.support.spec import Axes
from search_spaces.topologies.base import InputMode, Topology, Wiring, sum_tensors

Entries = tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class GRNOptions:
    """What the stack holds.

    Attributes:
        k: Only the input and the last k outputs stand alone in the stack; those between are one entry, their plain
            sum. So it has at most k + 2 entries, first to last e_0, e_1 + ... + e_{t-k-1}, e_{t-k}, ..., e_{t-1},
            and a weight belongs to a position. Without k every output stands alone.
    """

    k: int | None = None

    def __post_init__(self) -> None:
        check_at_least("k", self.k, 1, "Without k the whole stack is read.")


@dataclass(frozen=True, slots=True)
class GatedOptions(GRNOptions):
    """What the stack holds, and how its weights depend on the input.

    Attributes:
        form: "inside" is relu(b + w.e), "printed" is b + relu(w.e), whose w never trains; see GRNv3.
        per_entry: One w for each entry of the stack, instead of one that they share.
    """

    form: Literal["inside", "printed"] = "inside"
    per_entry: bool = False


class StaticSum(nn.Module):
    """sum_s b_s * e_s with learned b, ones at the start: one number an entry, or one for each feature."""

    def __init__(self, entries: int, *features: int) -> None:
        super().__init__()
        self.b = nn.Parameter(torch.ones(entries, *features))

    def forward(self, stack: Entries) -> Entries:
        """Sum S tensors [..., D] to one."""
        return (mixture(self.b.unbind(), stack),)


class GatedSum(nn.Module):
    """P sums over one stack, each sum_s relu(b_s + w_s . e_s) * e_s, with b = 1 and w = 0 at the start."""

    def __init__(self, sums: int, entries: int, width: int, options: GatedOptions) -> None:
        super().__init__()
        self.inside = options.form == "inside"
        self.b = nn.Parameter(torch.ones(sums, entries, width))
        self.w = nn.Parameter(torch.zeros(entries if options.per_entry else 1, sums, width))

    def forward(self, stack: Entries) -> Entries:
        """Sum S tensors [..., D] to P of them."""
        w = self.w.expand(len(stack), -1, -1)
        # One product an entry serves all sums: it is read once.
        scores = [
            torch.split(F.linear(e, w_s), 1, dim=-1) for e, w_s in zip(stack, w.unbind(), strict=True)
        ]  # P x [..., 1]
        return tuple(
            mixture((self._weight(b_s, score[p]) for b_s, score in zip(b.unbind(), scores, strict=True)), stack)
            for p, b in enumerate(self.b.unbind())
        )

    def _weight(self, b: Tensor, score: Tensor) -> Tensor:
        return torch.relu(b + score) if self.inside else b + torch.relu(score)


class GeneralisedResidual(Topology):
    """What GRN-v1, -v2, -v3 and DCA share. The state is the stack, oldest first, a tuple of [..., D]."""

    Options: ClassVar[type] = GRNOptions
    granularity: ClassVar[Literal["layer", "block"]] = "block"

    @classmethod
    def equals_resnet(cls, options: Any) -> bool:
        """Always."""
        return True

    def __init__(self, wiring: Wiring, options: Any) -> None:
        super().__init__()
        self.k = options.k
        self.sums = nn.ModuleList(
            self.build_sum(sums, entries, wiring.width, options) for sums, entries in self._shapes(wiring, options)
        )

    @classmethod
    def count(cls, wiring: Wiring, options: Any) -> Count:
        """The sums; and an addition where an output joins the middle of the stack."""
        counts = (cls.count_sum(*shape, wiring.width, options) for shape in cls._shapes(wiring, options))
        merges = 0 if options.k is None else max(0, len(wiring.sites) - options.k - 1)
        return sum(counts, start=Count(elementwise=merges * wiring.width))

    @staticmethod
    @abstractmethod
    def build_sum(sums: int, entries: int, width: int, options: Any) -> nn.Module:
        """Build so many sums over one stack."""

    @staticmethod
    @abstractmethod
    def count_sum(sums: int, entries: int, width: int, options: Any) -> Count:
        """Closed form of `build_sum`."""

    @classmethod
    def _shapes(cls, wiring: Wiring, options: GRNOptions) -> Iterator[tuple[int, int]]:
        """Sums and entries where each layer reads, and last where the head does."""
        most = len(wiring.sites) + 1 if options.k is None else options.k + 2
        for t, site in enumerate(wiring.sites, start=1):
            yield len(site.ports) if cls.input_mode == "per-port" else 1, min(t, most)
        yield 1, min(len(wiring.sites) + 1, most)

    def open(self, *parts: Tensor) -> Entries:
        """Start the stack with e_0, the sum of the embeddings."""
        return (sum_tensors(parts),)

    def read(self, t: int, state: Entries) -> tuple[Entries, Entries]:
        """Give the sums of the stack."""
        return self.sums[t](state), state

    def write(self, t: int, state: Entries, y: Tensor) -> Entries:
        """Put the output on the stack; beyond k + 2 entries the oldest that stands alone joins the middle."""
        stack = (*state, y)
        if self.k is not None and len(stack) > self.k + 2:
            first, middle, oldest, *recent = stack
            stack = (first, middle + oldest, *recent)
        return stack

    def close(self, state: Entries) -> Tensor:
        """Return y."""
        y: Tensor
        (y,) = self.sums[-1](state)
        return y


@final
class GRNv1(GeneralisedResidual):
    """GRN-v1 (Heddes et al., 2025): a learned weight for each earlier output.

    One weight for each entry: g_t = sum_j b_j e_j, with b in R^t, ones at the start.

    Parameters: `sum(min(t, (k or blocks) + 2) for t in range(1, blocks + 2))`
    """

    @staticmethod
    def build_sum(sums: int, entries: int, width: int, options: GRNOptions) -> nn.Module:
        """One StaticSum with a number for each entry."""
        return StaticSum(entries)

    @staticmethod
    def count_sum(sums: int, entries: int, width: int, options: GRNOptions) -> Count:
        """One number an entry."""
        return Count(params=entries, elementwise=weighted_sum(entries, width))


@final
class GRNv2(GeneralisedResidual):
    """GRN-v2 (Heddes et al., 2025): a learned weight for each earlier output and feature.

    One weight for each entry and feature: g_t = sum_j b_j * e_j, with b in R^{D x t}, ones at the start.

    Parameters: `width * sum(min(t, (k or blocks) + 2) for t in range(1, blocks + 2))`
    """

    @staticmethod
    def build_sum(sums: int, entries: int, width: int, options: GRNOptions) -> nn.Module:
        """One StaticSum with a number for each entry and feature."""
        return StaticSum(entries, width)

    @staticmethod
    def count_sum(sums: int, entries: int, width: int, options: GRNOptions) -> Count:
        """One number an entry and feature."""
        return Count(params=entries * width, elementwise=weighted_sum(entries, width))


class InputDependent(GeneralisedResidual):
    """What GRN-v3 and DCA share: weights that depend on the input."""

    Options: ClassVar[type] = GatedOptions

    @staticmethod
    def build_sum(sums: int, entries: int, width: int, options: GatedOptions) -> nn.Module:
        """So many sums with gates."""
        return GatedSum(sums, entries, width, options)

    @staticmethod
    def count_sum(sums: int, entries: int, width: int, options: GatedOptions) -> Count:
        """b and w of each sum; for each entry a product w . e, which is added to b, and its place in the sum."""
        gates = entries if options.per_entry else 1
        one_sum = Count((entries + gates) * width, entries * width, entries * width + weighted_sum(entries, width))
        return one_sum.repeat(sums)


@final
class GRNv3(InputDependent):
    """GRN-v3 (Heddes et al., 2025): weights of earlier outputs that depend on these outputs.

    Weights that depend on the input too: g_t = sum_j relu(b_j + w . e_j) * e_j, with b in R^{D x t}, w in R^D.

    b is ones and w zeros at the start. The number w . e_j is one for each position and entry, shared by the features.

    The paper prints b_j + relu(w . e_j). There w has a gradient of exactly zero at w = 0, where it starts, and so for
    ever: the printed form is GRN-v2. Its appendix H says that a negative b filters an entry out "as a result of the
    ReLU", which holds for relu(b + w . e) alone; that is the form taken, and it starts as the residual network as
    well. `form=printed` is the equation to the letter.

    The paper's parameter counts (table 6) are larger than one w in R^D a sum can give on flax's network, which is taken
    for its own; `per_entry=true`, a w for each entry, is a reading that fits them cut to two digits (fitted, not
    stated).

    Parameters: `sum(
        width * (min(t, (k or blocks) + 2) + (min(t, (k or blocks) + 2) if per_entry else 1))
        for t in range(1, blocks + 2)
    )`
    """


@final
class DCA(InputDependent):
    """DeepCrossAttention (Heddes et al., 2025): a GRN-v3 sum each for queries, keys and values.

    DeepCrossAttention: three GRN-v3 sums for each block, one for queries, one for keys, one for values.

    The block is the paper's figure 4: a = attention(norm(g_q), norm(g_k), norm(g_v)), each with its own norm;
    e_t = a + ffn(norm(a + g_q)). The query's sum alone is carried over to the feed-forward layer, and none to the
    output. The head reads a single GRN-v3 sum. A block whose first layer has one port has one sum, and is GRN-v3.

    "k-DCA" of the paper's tables is `k`; its full stack is no k. For `form` and `per_entry` see GRNv3.

    Parameters: `sum(
        (ports if t <= blocks else 1)
        * width * (min(t, (k or blocks) + 2) + (min(t, (k or blocks) + 2) if per_entry else 1))
        for t in range(1, blocks + 2)
    )`
    """

    input_mode: InputMode = "per-port"
    axes: ClassVar[Axes] = {"k": (1, 2, 4)}


def mixture(weights: Iterable[Tensor], stack: Iterable[Tensor]) -> Tensor:
    """sum_s weight_s * e_s, one entry after the other: torch.stack would write the whole stack out first."""
    mix: Tensor | None = None
    for weight, e in zip(weights, stack, strict=True):
        mix = weight * e if mix is None else torch.addcmul(mix, weight, e)
    assert mix is not None
    return mix
