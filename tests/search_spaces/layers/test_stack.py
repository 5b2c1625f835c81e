"""The loop over layers, and memory saved by recomputing layers or mixing."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from grouped import grouped
from nas.costs.profile.memory import peak_of
from search_spaces.architecture.architecture import Architecture
from search_spaces.models.decoder import Decoder, build_decoder
from search_spaces.topologies.registry import TOPOLOGIES

ARCHITECTURE = Architecture(depth=2, width=16, heads=2, head_dim=8, hidden=64)


def decoder(topology: str, *, recompute: bool) -> Decoder:
    torch.manual_seed(0)
    model = build_decoder(replace(ARCHITECTURE, topology=topology), "llama", 30, 8)
    model.stack.recompute = recompute
    return model


def gradients(model: Decoder) -> tuple[dict[str, Tensor], int]:
    """Gradients of a loss, and bytes held by the forward pass."""
    bytes_by_storage: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        bytes_by_storage[storage.data_ptr()] = storage.nbytes()
        return tensor

    with saved_tensors_hooks(note, lambda tensor: tensor):
        loss = model(torch.arange(8).expand(4, -1)).square().mean()
    loss.backward()
    return {name: parameter.grad for name, parameter in model.named_parameters()}, sum(bytes_by_storage.values())


def test_recomputed_layers_give_the_same_gradients_from_less_memory() -> None:
    with grouped() as case:
        for topology in TOPOLOGIES.names():
            with case(topology):
                expected, much = gradients(decoder(topology, recompute=False))
                actual, less = gradients(decoder(topology, recompute=True))
                torch.testing.assert_close(actual, expected)
                assert less < much


MIXING = {
    **dict.fromkeys(("hyper", "mhc", "rmt(keys=32)", "frac", "dca(k=1)", "grn-v3", "highway", "depth-lstm"), 2),
    **dict.fromkeys(("aggregation", "resnet[0:1]+highway[1:3]"), 3),
}
"""Topologies, and the depth from which recomputing saves memory."""


SHORT = ("hyper", "dca(k=1)", "depth-lstm", "resnet[0:1]+highway[1:3]")
"""Topologies of the default run; each takes 0.1 s."""


@pytest.mark.parametrize("topologies", [SHORT, pytest.param(tuple(MIXING), marks=pytest.mark.slow)], ids=["few", "all"])
def test_recomputed_mixing_holds_less_memory(topologies: tuple[str, ...]) -> None:
    wide = replace(ARCHITECTURE, width=64, heads=4, head_dim=16)
    x = torch.randn(4, 32, 64)

    def peak(topology: str, depth: int, recompute_mixing: bool) -> int:
        stack = build_decoder(replace(wide, topology=topology, depth=depth), "llama", 30, 32).stack
        stack.recompute_mixing = recompute_mixing
        return peak_of(lambda: stack(x).square().mean().backward(), torch.device("cpu"))

    with grouped() as case:
        for topology in topologies:
            with case(topology):
                assert peak(topology, MIXING[topology], True) < 0.95 * peak(topology, MIXING[topology], False)
