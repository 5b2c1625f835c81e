"""Generalized residual networks and DeepCrossAttention: each input is a weighted sum of all earlier outputs.

e_0 is the network's input, and e_j the output of block j without its skip. Block t = 1 .. T reads a weighted sum g_t of
the stack e_0 .. e_{t-1}. The output head reads y, a weighted sum of e_0 .. e_T. With all weights 1 this is the residual
network.

Source: Heddes et al., DeepCrossAttention (2025), sections 3.1 and 3.2. Differences and choices:

* The sum for the output head has its own weights in all topologies of the family, as y is printed.
* There is one sum per block and port: the paper's T counts decoder blocks. Entries are not normed.
* sigma is ReLU. GRNv3 describes where it is applied.

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
from search_spaces.topologies.base import InputMode, StackSpec, Topology, sum_tensors

Entries = tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class GRNOptions:
    """The contents of the stack.

    Attributes:
        k: The input and the last k outputs are separate entries; the outputs between are one entry, their plain sum. So
            the stack has at most k + 2 entries, e_0, e_1 + ... + e_{t-k-1}, e_{t-k}, ..., e_{t-1}, and weights belong
            to positions in it. Without k every output is an entry.
    """

    k: int | None = None

    def __post_init__(self) -> None:
        check_at_least("k", self.k, 1, "Leave k out to read the whole stack.")


@dataclass(frozen=True, slots=True)
class GatedOptions(GRNOptions):
    """The contents of the stack, and how its weights depend on the input.

    Attributes:
        form: "inside" is relu(b + w.e), "printed" is b + relu(w.e), whose w never trains; see GRNv3.
        per_entry: Whether each entry of the stack has its own w instead of a shared one.
    """

    form: Literal["inside", "printed"] = "inside"
    per_entry: bool = False


class StaticSum(nn.Module):
    """The sum sum_s b_s * e_s with learned b, initialized to 1: one number per entry, or one per entry and feature."""

    def __init__(self, entries: int, *features: int) -> None:
        super().__init__()
        self.b = nn.Parameter(torch.ones(entries, *features))

    def forward(self, stack: Entries) -> Entries:
        """Sum S tensors [..., D] to one."""
        return (mixture(self.b.unbind(), stack),)


class GatedSum(nn.Module):
    """P sums over one stack, each sum_s relu(b_s + w_s . e_s) * e_s, initialized to b = 1 and w = 0."""

    def __init__(self, sums: int, entries: int, width: int, options: GatedOptions) -> None:
        super().__init__()
        self.inside = options.form == "inside"
        self.b = nn.Parameter(torch.ones(sums, entries, width))
        self.w = nn.Parameter(torch.zeros(entries if options.per_entry else 1, sums, width))

    def forward(self, stack: Entries) -> Entries:
        """Sum S tensors [..., D] to P of them."""
        w = self.w.expand(len(stack), -1, -1)
        # One product per entry serves all sums, so each entry is read once.
        scores = [
            torch.split(F.linear(e, w_s), 1, dim=-1) for e, w_s in zip(stack, w.unbind(), strict=True)
        ]  # P x [..., 1]
        return tuple(
            mixture((self._weight(b_s, score[p]) for b_s, score in zip(b.unbind(), scores, strict=True)), stack)
            for p, b in enumerate(self.b.unbind())
        )

    def _weight(self, b: Tensor, score: Tensor) -> Tensor:
        return torch.relu(b + score) if self.inside else b + torch.relu(score)


class GeneralizedResidual(Topology):
    """The common part of GRN-v1, -v2, -v3 and DCA. The state is the stack, a tuple of [..., D], oldest first."""

    Options: ClassVar[type] = GRNOptions
    granularity: ClassVar[Literal["layer", "block"]] = "block"

    @classmethod
    def equals_resnet(cls, options: Any) -> bool:
        return True

    def __init__(self, spec: StackSpec, options: Any) -> None:
        super().__init__()
        self.k = options.k
        self.sums = nn.ModuleList(
            self.build_sum(sums, entries, spec.width, options) for sums, entries in self._shapes(spec, options)
        )

    @classmethod
    def count(cls, spec: StackSpec, options: Any) -> Count:
        """Count the sums, and the additions that merge outputs into the middle of the stack."""
        counts = (cls.count_sum(*shape, spec.width, options) for shape in cls._shapes(spec, options))
        merges = 0 if options.k is None else max(0, len(spec.sites) - options.k - 1)
        return sum(counts, start=Count(elementwise=merges * spec.width))

    @staticmethod
    @abstractmethod
    def build_sum(sums: int, entries: int, width: int, options: Any) -> nn.Module:
        """Build this many sums over one stack."""

    @staticmethod
    @abstractmethod
    def count_sum(sums: int, entries: int, width: int, options: Any) -> Count:
        """Count `build_sum` in closed form."""

    @classmethod
    def _shapes(cls, spec: StackSpec, options: GRNOptions) -> Iterator[tuple[int, int]]:
        """Yield (sums, entries) for the input of each layer, and last for the output head."""
        most = len(spec.sites) + 1 if options.k is None else options.k + 2
        for t, site in enumerate(spec.sites, start=1):
            yield len(site.ports) if cls.input_mode == "per-port" else 1, min(t, most)
        yield 1, min(len(spec.sites) + 1, most)

    def open(self, *embeddings: Tensor) -> Entries:
        return (sum_tensors(embeddings),)

    def read(self, t: int, state: Entries) -> tuple[Entries, Entries]:
        return self.sums[t](state), state

    def write(self, t: int, state: Entries, y: Tensor) -> Entries:
        """Append the output; beyond k + 2 entries, merge the oldest separate output into the middle one."""
        stack = (*state, y)
        if self.k is not None and len(stack) > self.k + 2:
            first, middle, oldest, *recent = stack
            stack = (first, middle + oldest, *recent)
        return stack

    def close(self, state: Entries) -> Tensor:
        y: Tensor
        (y,) = self.sums[-1](state)
        return y


@final
class GRNv1(GeneralizedResidual):
    """GRN-v1 (Heddes et al., 2025): a learned weight for each earlier output.

    One weight per entry: g_t = sum_j b_j e_j, with b in R^t, initialized to 1.

    Parameters: `sum(min(t, (k or blocks) + 2) for t in range(1, blocks + 2))`
    """

    @staticmethod
    def build_sum(sums: int, entries: int, width: int, options: GRNOptions) -> nn.Module:
        return StaticSum(entries)

    @staticmethod
    def count_sum(sums: int, entries: int, width: int, options: GRNOptions) -> Count:
        return Count(params=entries, elementwise=weighted_sum(entries, width))


@final
class GRNv2(GeneralizedResidual):
    """GRN-v2 (Heddes et al., 2025): a learned weight for each earlier output and feature.

    One weight per entry and feature: g_t = sum_j b_j * e_j, with b in R^{D x t}, initialized to 1.

    Parameters: `width * sum(min(t, (k or blocks) + 2) for t in range(1, blocks + 2))`
    """

    @staticmethod
    def build_sum(sums: int, entries: int, width: int, options: GRNOptions) -> nn.Module:
        return StaticSum(entries, width)

    @staticmethod
    def count_sum(sums: int, entries: int, width: int, options: GRNOptions) -> Count:
        return Count(params=entries * width, elementwise=weighted_sum(entries, width))


class InputDependent(GeneralizedResidual):
    """The common part of GRN-v3 and DCA: weights that depend on the input."""

    Options: ClassVar[type] = GatedOptions

    @staticmethod
    def build_sum(sums: int, entries: int, width: int, options: GatedOptions) -> nn.Module:
        return GatedSum(sums, entries, width, options)

    @staticmethod
    def count_sum(sums: int, entries: int, width: int, options: GatedOptions) -> Count:
        """Count b and w of each sum; per entry a product w . e, its addition to b, and the weighted sum."""
        gates = entries if options.per_entry else 1
        one_sum = Count((entries + gates) * width, entries * width, entries * width + weighted_sum(entries, width))
        return one_sum.copies(sums)


@final
class GRNv3(InputDependent):
    """GRN-v3 (Heddes et al., 2025): weights of earlier outputs that depend on these outputs.

    Weights depend on the input: g_t = sum_j relu(b_j + w . e_j) * e_j, with b in R^{D x t}, w in R^D.

    b is initialized to 1 and w to 0. The number w . e_j is one per position and entry, shared by all features.

    The paper prints b_j + relu(w . e_j). There the gradient of w is exactly zero at its initial value 0, so w never
    trains, and the form equals GRN-v2. In its appendix H a negative b filters an entry out "as a result of the ReLU".
    This holds only for relu(b + w . e), the default, which starts as the residual network too. `form=printed` is the
    printed equation.

    The paper's network is assumed to be flax's. There the paper's parameter counts (table 6) exceed those of one w in
    R^D per sum. `per_entry=true`, with a w per entry, matches the counts when cut to two digits. It is fitted; the
    paper does not state it.

    Parameters: `sum(
        width * (min(t, (k or blocks) + 2) + (min(t, (k or blocks) + 2) if per_entry else 1))
        for t in range(1, blocks + 2)
    )`
    """


@final
class DCA(InputDependent):
    """DeepCrossAttention (Heddes et al., 2025): a GRN-v3 sum each for queries, keys and values.

    Each block has three GRN-v3 sums, for queries, keys and values.

    The block is that of the paper's figure 4: a = attention(norm(g_q), norm(g_k), norm(g_v)), each with its own norm;
    e_t = a + ffn(norm(a + g_q)). Only the query's sum is carried over to the feed-forward layer, and none to the
    output. The output head reads a single GRN-v3 sum. A block whose first layer has one port has one sum, and is
    GRN-v3.

    "k-DCA" in the paper's tables is option `k`; the full stack is no k. For `form` and `per_entry` see GRNv3.

    Parameters: `sum(
        (ports if t <= blocks else 1)
        * width * (min(t, (k or blocks) + 2) + (min(t, (k or blocks) + 2) if per_entry else 1))
        for t in range(1, blocks + 2)
    )`
    """

    input_mode: InputMode = "per-port"
    axes: ClassVar[Axes] = {"k": (1, 2, 4)}


def mixture(weights: Iterable[Tensor], stack: Iterable[Tensor]) -> Tensor:
    """Return sum_s weight_s * e_s, accumulated per entry, since torch.stack would copy the whole stack."""
    mix: Tensor | None = None
    for weight, e in zip(weights, stack, strict=True):
        mix = weight * e if mix is None else torch.addcmul(mix, weight, e)
    assert mix is not None
    return mix
