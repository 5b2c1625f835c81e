"""Architectures, search spaces, topologies, layers and models."""

from typing import TYPE_CHECKING

from search_spaces.support.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from search_spaces.architecture.architecture import Architecture
    from search_spaces.architecture.checkpoint import load_weights
    from search_spaces.layers.norm import Norm
    from search_spaces.layers.stack import build_stack
    from search_spaces.models.decoder import build_decoder, count_decoder
    from search_spaces.models.encoder import build_encoder, count_encoder
    from search_spaces.models.vit import build_vit, count_vit
    from search_spaces.spaces.space import Candidate, SearchSpace
    from search_spaces.support.count import Count, Handlers, Shape
    from search_spaces.support.errors import Notice, UserError
    from search_spaces.support.spec import Axes
    from search_spaces.testing.contract import check_topology
    from search_spaces.topologies.base import Site, StackSpec, Topology, sum_tensors

__all__ = [
    "Architecture",
    "Axes",
    "Candidate",
    "Count",
    "Handlers",
    "Norm",
    "Notice",
    "SearchSpace",
    "Shape",
    "Site",
    "StackSpec",
    "Topology",
    "UserError",
    "build_decoder",
    "build_encoder",
    "build_stack",
    "build_vit",
    "check_topology",
    "count_decoder",
    "count_encoder",
    "count_vit",
    "load_weights",
    "sum_tensors",
]

_HOMES = {
    "Architecture": "search_spaces.architecture.architecture",
    "Axes": "search_spaces.support.spec",
    "Candidate": "search_spaces.spaces.space",
    "Count": "search_spaces.support.count",
    "Handlers": "search_spaces.support.count",
    "Norm": "search_spaces.layers.norm",
    "Notice": "search_spaces.support.errors",
    "SearchSpace": "search_spaces.spaces.space",
    "Shape": "search_spaces.support.count",
    "Site": "search_spaces.topologies.base",
    "Topology": "search_spaces.topologies.base",
    "UserError": "search_spaces.support.errors",
    "StackSpec": "search_spaces.topologies.base",
    "build_decoder": "search_spaces.models.decoder",
    "build_encoder": "search_spaces.models.encoder",
    "build_stack": "search_spaces.layers.stack",
    "build_vit": "search_spaces.models.vit",
    "check_topology": "search_spaces.testing.contract",
    "count_decoder": "search_spaces.models.decoder",
    "count_encoder": "search_spaces.models.encoder",
    "count_vit": "search_spaces.models.vit",
    "load_weights": "search_spaces.architecture.checkpoint",
    "sum_tensors": "search_spaces.topologies.base",
}

__getattr__, __dir__ = lazy_exports(__name__, _HOMES)
