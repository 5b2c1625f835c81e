"""The loop over layers, and what it saves when layers, or what topologies hand them, are computed twice."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from search_spaces.architecture import Architecture
from search_spaces.models.decoder import Decoder, build_decoder
from search_spaces.topologies.registry import TOPOLOGIES

ARCHITECTURE = Architecture(depth=2, width=16, heads=2, head_dim=8, hidden=64)


def decoder(topology: str, *, recompute: bool = False, recompute_mixing: bool = False) -> Decoder:
    torch.manual_seed(0)
    model = build_decoder(replace(ARCHITECTURE, topology=topology), "llama", 30, 8)
    model.stack.recompute, model.stack.recompute_mixing = recompute, recompute_mixing
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


@pytest.mark.parametrize("topology", ["hyper", "mhc", "rmt(keys=32)", "frac", "dca(k=1)", "grn-v3"])
def test_mixing_that_is_computed_twice_holds_less(topology: str) -> None:
    _, much = gradients(decoder(topology))
    _, less = gradients(decoder(topology, recompute_mixing=True))
    assert less < much


@pytest.mark.parametrize("topology", ["hyper", "dca(k=1)"])
def test_it_compiles_with_mixing_that_is_computed_twice(topology: str) -> None:
    torch.compiler.reset()
    model = decoder(topology, recompute_mixing=True)
    compiled = torch.compile(model.stack, fullgraph=True, backend="aot_eager")
    once = torch.randn(4, 8, 16, requires_grad=True)
    twice = once.detach().clone().requires_grad_()
    compiled(once).sum().backward()
    model.stack.recompute_mixing = False
    model.stack(twice).sum().backward()
    torch.testing.assert_close(once.grad, twice.grad)
