"""Costs of an architecture by counting."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Parameters and FLOPs of an architecture. None means not measured; unmeasured costs are never 0.

    Attributes:
        params: All parameters.
        topology_params: Parameters of the topology.
        embedding_params: Parameters of the embedding.
        non_embedding_params: All other parameters, including the output projection unless it is tied to the embedding.
        macs: Multiply-accumulates of matrix work (linear maps, convolutions, attention), forward, one example.
            Projections to a vocabulary and the masked half of causal attention count in full.
        flops: 2 * macs.
        train_flops: 3 * flops, the convention for a training step: the backward pass costs two forward passes.
        elementwise_flops: Elementwise multiplications and additions of the topology, forward, one example; in no other
            count. By closed form; None for a network without one.
        counter: Name and version of the MAC counter.
        uncounted: Operators in the network that do no matrix work and are not in `macs`.
    """

    params: int | None = None
    topology_params: int | None = None
    embedding_params: int | None = None
    non_embedding_params: int | None = None
    macs: int | None = None
    flops: int | None = None
    train_flops: int | None = None
    elementwise_flops: int | None = None
    counter: str | None = None
    uncounted: tuple[str, ...] = ()
