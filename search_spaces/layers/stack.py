"""The loop over layers: every model is an embedding, a Stack and an output head."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from search_spaces.architecture.architecture import Architecture
from search_spaces.layers.norm import Norm
from search_spaces.support.count import Count
from search_spaces.support.errors import UserError
from search_spaces.topologies import build as topologies
from search_spaces.topologies.base import WITHOUT_LAYER_NORM, Site, Topology
from search_spaces.topologies.registry import incompatibility_reason, resolve_topology


class Stack(nn.Module):
    """Layers connected by a topology, and a final norm: embeddings to the input of the output head.

    Attributes:
        recompute: Whether layers are recomputed in the backward pass, which saves most of their memory.
        recompute_mixing: Whether the topology's `recomputes` method is recomputed, which saves its intermediate
            results.
    """

    def __init__(self, layers: Sequence[nn.Module], topology: Topology, norm: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.topology = topology
        self.norm = norm
        self.recompute = False
        self.recompute_mixing = False

    def forward(self, *embeddings: Tensor, mask: Tensor | None = None, condition: Tensor | None = None) -> Tensor:
        """Map embeddings [..., D], whose sum is the network's input, to normed features [..., D].

        A mask [B, N] is False for padding. Topologies treat positions independently, so only attention layers receive
        it. A condition [B, C] (a diffusion's time and class) goes to layers whose site takes one.
        """
        state = self.topology.open(*embeddings)
        for t in range(len(self.layers)):
            y, state = self.output(t, state, mask, condition)
            state = self._move("write", t, state, y)
        return self.norm(self.topology.close(state))  # type: ignore[no-any-return]  # nn.Module returns Any

    def output(
        self, t: int, state: Any, mask: Tensor | None = None, condition: Tensor | None = None
    ) -> tuple[Tensor, Any]:
        """Return layer t's output, and the topology's state before that output is written."""
        layer: Any = self.layers[t]
        site = site_of(layer)
        kwargs = _layer_kwargs(site, mask, condition)
        inputs, state = self._move("read", t, state)
        if self.topology.takes_values and site.attends:
            condition_only = {name: tensor for name, tensor in kwargs.items() if name == "condition"}
            q, k, v = self._run(partial(layer.project, **condition_only), *inputs)
            v, state = self.topology.values(t, state, v)
            return self._run(partial(layer.mix, **kwargs), q, k, v), state
        return self._run(partial(layer, **kwargs), *inputs), state

    def _move(self, name: Literal["read", "write"], t: int, *args: Any) -> Any:
        move = getattr(self.topology, name)
        if self.recompute_mixing and name == self.topology.recomputes(t) and torch.is_grad_enabled():
            return checkpoint(move, t, *args, use_reentrant=False, preserve_rng_state=False)
        return move(t, *args)

    def _run(self, call: Any, *inputs: Any) -> Any:
        return checkpoint(call, *inputs, use_reentrant=False) if self.recompute else call(*inputs)


def build_stack(
    architecture: Architecture, layers: Sequence[nn.Module], norm: Norm | None, *, num_embeddings: int
) -> Stack:
    """Connect layers, each with a `site`, by the architecture's topology; `norm` is the final norm, if any.

    Raises:
        UserError: The topology cannot be used with this architecture.
    """
    reason = incompatibility_reason(architecture)
    if reason is not None:
        raise UserError("unsupported", reason, option="topology", value=architecture.topology)
    topology = topologies.topology_for(architecture, [site_of(layer) for layer in layers], num_embeddings)
    final = nn.Identity() if norm is None or _ends_with_norm(architecture) else norm.build(architecture.width)
    stack = Stack(layers, topology, final)
    topology.init_layers(stack.layers)
    return stack


def count_stack(
    architecture: Architecture,
    sites: Sequence[Site],
    layers: Count,
    norm: Norm | None,
    *,
    positions: int,
    num_embeddings: int,
) -> Count:
    """Count a Stack in closed form; `layers` is the count of all its layers at all positions."""
    final = Count(params=0 if norm is None or _ends_with_norm(architecture) else norm.params(architecture.width))
    return layers + topologies.count(architecture, sites, num_embeddings).at_positions(positions) + final


def _ends_with_norm(architecture: Architecture) -> bool:
    topology, options = resolve_topology(architecture.segments[-1].topology)
    return topology.input_mode_of(options) in WITHOUT_LAYER_NORM


def _layer_kwargs(site: Site, mask: Tensor | None, condition: Tensor | None) -> dict[str, Tensor]:
    candidates = {"mask": mask if site.attends else None, "condition": condition if site.takes_condition else None}
    return {name: tensor for name, tensor in candidates.items() if tensor is not None}


def site_of(layer: nn.Module) -> Site:
    """Return a layer's site."""
    site = layer.site
    assert isinstance(site, Site)
    return site
