"""What counting says of an architecture."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What an architecture costs. None where it was not measured, never a silent zero.

    Attributes:
        params: All parameters.
        topology_params: Those of the residual wiring.
        embedding_params: Those of the embedding.
        non_embedding_params: All others; the map to the vocabulary is among them, unless it is the embedding's own.
        macs: Multiply-accumulates of matrix work (linear maps, convolutions, attention), forward, one example. Maps to
            a vocabulary and the half of attention that a causal mask throws away are counted in full.
        flops: 2 * macs.
        train_flops: 3 * flops, the convention for a training step: its backward pass takes two forward passes.
        elementwise_flops: Multiplications and additions by which the residual wiring mixes, in no other count; forward,
            one example. By closed form; None for a network without one.
        counter: Name and version of what counted the MACs.
        uncounted: Operators in the network that do no matrix work and are therefore not in `macs`.
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
