"""One stack of a network with its layers' names, and its measurements as records.

Shapes: R = readers, S = sources; see `nas.report.wiring.influence`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from torch import nn

from nas.report.wiring.influence import Array, Influence
from search_spaces.layers.stack import Stack
from search_spaces.topologies.base import Site

EMBEDDING, HEAD = "embedding", "head"


@dataclass(frozen=True)
class StackWiring:
    """One stack of a network; most networks have one.

    Attributes:
        name: Its module name in the network.
        sources: Names of the network's input and its layers, S.
        readers: Names of its layers, one for each port, and of the head, R.
        influence: The measurements.
        coefficients: The topology's own weights of sums, where what layers read does not show them: see
            `Topology.coefficients`.
    """

    name: str
    sources: tuple[str, ...]
    readers: tuple[str, ...]
    influence: Influence
    coefficients: Mapping[str, Array]

    @property
    def quantity(self) -> str:
        """The name of `matrix`: weight, or gain if the stack works in head space."""
        return "gain" if self.influence.reads_head_space else "weight"

    @property
    def matrix(self) -> Array:
        """The weights, or the gains if the stack works in head space, [R, S]."""
        return self.influence.gains if self.influence.reads_head_space else self.influence.weights


def name_stack(name: str, stack: Stack, influence: Influence) -> StackWiring:
    """Name the layers of a measured stack by block number and layer type: "2 attention"."""
    sites: list[Site] = [layer.site for layer in stack.layers]  # type: ignore[misc]  # each layer of a stack has one
    blocks = accumulate(int(site.starts_block) for site in sites)
    names = [f"{block} {_kebab_case(layer)}" for block, layer in zip(blocks, stack.layers, strict=True)]
    readers = []
    for number, reader in enumerate((*names, HEAD), start=1):
        several = influence.layers.count(number) > 1
        readers += [f"{reader} {port}" for port in sites[number - 1].ports] if several else [reader]
    coefficients = {
        parameter: weights.detach().double().cpu().numpy()
        for parameter, weights in stack.topology.coefficients().items()
        if weights.numel()
    }
    return StackWiring(name, (EMBEDDING, *names), tuple(readers), influence, coefficients)


def matrix_records(stack: StackWiring) -> list[dict[str, Any]]:
    """Return one record for each reader, with one column for each source that it can read."""
    rows = zip(stack.influence.layers, stack.readers, stack.matrix, strict=True)
    return [{"reader": name, **{str(i): float(row[i]) for i in range(layer)}} for layer, name, row in rows]


def depth_records(stack: StackWiring) -> list[dict[str, Any]]:
    """Return one record for each source and the head: RMS of what it reads and makes, and the gradient's norm."""
    influence = stack.influence
    records: list[dict[str, Any]] = [
        {"number": number, "layer": name, "made": float(size)}
        for number, (name, size) in enumerate(zip(stack.sources, influence.output_rms, strict=True))
    ]
    records.append({"number": len(records), "layer": HEAD})
    for record, read in zip(records[1:], influence.layer_input_rms, strict=True):
        record["read"] = float(read)
    for record, gradient in zip(records, () if influence.gradient is None else influence.gradient, strict=False):
        record["gradient"] = float(gradient)
    return records


def coefficient_records(coefficients: Array) -> list[dict[str, Any]]:
    """Return one record for each row; columns count from 1, as "row,column" for a matrix; NaN becomes None."""
    columns = [",".join(str(i + 1) for i in at) for at in np.ndindex(*coefficients.shape[1:])]
    return [
        {"row": number, **{name: None if np.isnan(c) else float(c) for name, c in zip(columns, row.flat, strict=True)}}
        for number, row in enumerate(coefficients, start=1)
    ]


def pair_records(stack: StackWiring) -> list[dict[str, Any]]:
    """Return one record for each reader and each source that it can read: see `WiringReport.records`."""
    influence = stack.influence
    return [
        {
            **({"stack": stack.name} if stack.name else {}),
            "layer": layer,
            "reader": reader,
            "source": i,
            "of": stack.sources[i],
            "weight": None if influence.reads_head_space else float(influence.weights[r, i]),
            "gain": float(influence.gains[r, i]),
            "share": float(influence.shares[r, i]),
            "read": float(influence.input_rms[r]),
            "made": float(influence.output_rms[i]),
            "gradient": None if influence.gradient is None else float(influence.gradient[i]),
        }
        for r, (layer, reader) in enumerate(zip(influence.layers, stack.readers, strict=True))
        for i in range(layer)
    ]


def _kebab_case(layer: nn.Module) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", type(layer).__name__).lower()
