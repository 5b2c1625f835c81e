"""The loop over layers, and what it saves when layers, or what topologies make of their states, are computed twice."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from nas.profiling.memory import peak_of
from search_spaces.architecture import Architecture
from search_spaces.models.decoder import Decoder, build_decoder
from search_spaces.topologies.registry import TOPOLOGIES

ARCHITECTURE = Architecture(depth=2, width=16, heads=2, head_dim=8, hidden=64)


def decoder(topology: str, *, recompute: bool) -> Decoder:
    torch.manual_seed(0)
    model = build_decoder(replace(ARCHITECTURE, topology=topology), "llama", 30, 8)
    model.stack.recompute = recompute
    return model


def gradients(model: Decoder) -> tuple[dict[str, Tensor], int]:
    """Of a loss; and how many bytes the forward pass holds for it."""
    saved: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        held = tensor.untyped_storage()
        saved[held.data_ptr()] = held.nbytes()
        return tensor

    with saved_tensors_hooks(note, lambda tensor: tensor):
        loss = model(torch.arange(8).expand(4, -1)).square().mean()
    loss.backward()
    return {name: parameter.grad for name, parameter in model.named_parameters()}, sum(saved.values())


@pytest.mark.parametrize("topology", TOPOLOGIES.names())
def test_layers_that_are_computed_twice_give_the_same_gradients_from_less_memory(topology: str) -> None:
    expected, much = gradients(decoder(topology, recompute=False))
    actual, less = gradients(decoder(topology, recompute=True))
    torch.testing.assert_close(actual, expected)
    assert less < much


@pytest.mark.parametrize(
    "topology",
    "hyper mhc rmt(keys=32) frac dca(k=1) grn-v3 highway depth-lstm aggregation resnet[0:1]+highway[1:4]".split(),
)
def test_mixing_that_is_computed_twice_holds_less(topology: str) -> None:
    wide = replace(ARCHITECTURE, depth=4, width=64, heads=4, head_dim=16)
    x = torch.randn(8, 32, 64)

    def held(recompute_mixing: bool) -> int:
        stack = build_decoder(replace(wide, topology=topology), "llama", 30, 32).stack
        stack.recompute_mixing = recompute_mixing
        return peak_of(lambda: stack(x).square().mean().backward(), torch.device("cpu"))

    assert held(True) < 0.95 * held(False)
