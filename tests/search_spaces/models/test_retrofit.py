"""A retrofitted network computes the residual network's function and can be trained."""

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from expect import raises
from grouped import grouped
from search_spaces.architecture.architecture import Architecture
from search_spaces.architecture.checkpoint import Record, save_checkpoint, weights_of
from search_spaces.layers.norm import Norm
from search_spaces.layers.stack import Stack, build_stack
from search_spaces.models.decoder import build_decoder
from search_spaces.models.retrofit import refusal, retrofit, retrofit_checkpoint
from search_spaces.models.vit import build_vit
from search_spaces.topologies.base import Site
from search_spaces.topologies.registry import TOPOLOGIES, resolve_topology
from tasks.load import load_task

RESNET = Architecture(depth=4, width=24, heads=4, head_dim=8, hidden=20)
CASES = [
    *TOPOLOGIES.names(),
    "dca(k=1)",
    "dca(k=2)",
    "dca(k=2,per_entry=true)",
    "dca(form=printed)",
    "denseformer(dilation=2,period=2)",
    "grn-v1(k=2)",
    "grn-v2(k=2)",
    "grn-v3(k=2)",
    "grn-v3(form=printed)",
    "hyper(dynamic=false)",
    "hyper(streams=1)",
    "hyper(streams=2)",
    "attnres(every=3)",
    "attnres(scaled=false)",
    "laurel(reach=3)",
    "layerscale(start=1)",
    "mhc(streams=2)",
    "mhc(streams=3)",
    "mhc(streams=2,mixing=permutations)",
    "attnres-delta(gated=false)",
    "value-residual(first=0,own=1,learned=true)",
]
CAN = [case for case in CASES for kind, options in [resolve_topology(case)] if kind.equals_resnet_with_norms(options)]
BEHIND_NORMS = [case for case in CAN for kind, options in [resolve_topology(case)] if not kind.equals_resnet(options)]
RUNS = ["dca(k=1)/hyper", "resnet/denseformer", "mhc/attnres-delta(gated=false)"]  # each starts as a residual network
FORMS = ["dca", "hyper(dynamic=false)", "value-residual(first=0,own=1,learned=true)", *RUNS]
"""One topology per way of changing layers, tried with every model."""
WITHOUT_NORMS = [*((case, "dense") for case in BEHIND_NORMS), ("resnet/mhc", "dense"), (RUNS[-1], "dense")]
CANNOT = [
    *(case for case in CASES if case not in CAN),
    "dca/rmt/resnet",
    "resnet/ancre/dca",
    "attnres(scaled=false)/dca",
]


class Dense(nn.Module):
    """A block of one layer without attention."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.site = Site(("x",), width, starts_block=True)
        self.map = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.map(x))


def dense(architecture: Architecture) -> Stack:
    layers = [Dense(architecture.width) for _ in range(architecture.depth)]
    return build_stack(architecture, layers, Norm("layer", 1e-6), num_embeddings=1)


BUILD: dict[str, Callable[[Architecture], nn.Module]] = {
    "dense": dense,
    "gpt2": lambda architecture: build_decoder(architecture, "gpt2", 50, 12),
    "gpt2-tied": lambda architecture: build_decoder(architecture, "gpt2", 50, 12, tied=True),
    "llama": lambda architecture: build_decoder(architecture, "llama", 50, 12),
    "vit": lambda architecture: build_vit(architecture, (1, 8, 8), 2, 10),
    "vit-dropping-paths": lambda architecture: build_vit(architecture, (1, 8, 8), 2, 10, drop_path=0.1),
}


def example(model: str) -> Tensor:
    torch.manual_seed(2)
    if model == "dense":
        return torch.randn(3, RESNET.width)
    return torch.randn(3, 1, 8, 8) if model.startswith("vit") else torch.randint(50, (3, 12))


@cache
def perturbed_network(model: str) -> nn.Module:
    """A residual network with perturbed weights."""
    torch.manual_seed(1)
    network = BUILD[model](RESNET)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return network.eval()


def computes_the_same(topology: str, model: str) -> None:
    """Assert that a retrofitted network has the outputs of its residual network."""
    before = perturbed_network(model)
    after = retrofit(weights_of(before), RESNET, topology, BUILD[model]).eval()
    if topology in (*BEHIND_NORMS, RUNS[-1]):
        before = copy.deepcopy(before)
        for module in (*before.modules(), *after.modules()):
            if hasattr(module, "eps"):
                module.eps = 1e-30  # norms must ignore scale
    with torch.no_grad():
        difference = (after(example(model)) - before(example(model))).abs().max()
    assert difference <= 1e-5


@pytest.mark.parametrize("topology", [*CAN, *RUNS])
def test_a_retrofitted_network_computes_the_same(topology: str) -> None:
    with grouped() as case:
        for model in BUILD if topology in FORMS else ("dense", "llama"):
            if (topology, model) not in WITHOUT_NORMS:
                with case(model):
                    computes_the_same(topology, model)


@pytest.mark.slow
def test_a_retrofitted_network_computes_the_same_in_every_model() -> None:
    with grouped() as case:
        for topology, model in product((*CAN, *RUNS), BUILD):
            if (topology, model) not in WITHOUT_NORMS:
                with case(f"{topology} in {model}"):
                    computes_the_same(topology, model)


@pytest.mark.parametrize("topology", [case for case in CAN if case != "resnet" and "printed" not in case])
def test_a_retrofitted_network_trains_what_its_topology_adds(topology: str) -> None:
    after = retrofit(weights_of(perturbed_network("llama")), RESNET, topology, BUILD["llama"]).double()
    start = {name: tensor.clone() for name, tensor in weights_of(after).items()}
    optimizer = torch.optim.SGD(after.parameters(), lr=0.1)
    ids = example("llama")
    for _ in range(3):
        optimizer.zero_grad()
        nn.functional.cross_entropy(after(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()).backward()
        optimizer.step()
    assert [name for name, tensor in weights_of(after).items() if torch.equal(tensor, start[name])] == []


def test_topologies_equal_behind_norms_need_layers_with_norms() -> None:
    with grouped() as case:
        for topology, model in WITHOUT_NORMS:
            with case(topology):
                with raises("unsupported", option="topology", value=topology, needs="norms") as caught:
                    retrofit(weights_of(perturbed_network(model)), RESNET, topology, BUILD[model])
                assert "dca" in caught.value.fields["choices"]


def test_a_retrofitted_network_shares_no_memory_with_the_first() -> None:
    before = perturbed_network("gpt2")
    copies = {name: tensor.clone() for name, tensor in weights_of(before).items()}
    after = retrofit(weights_of(before), RESNET, "dca", BUILD["gpt2"])
    with torch.no_grad():
        for parameter in after.parameters():
            parameter.zero_()
    assert all(torch.equal(tensor, copies[name]) for name, tensor in weights_of(before).items())


def test_topologies_that_do_not_start_as_a_residual_network_are_refused() -> None:
    weights = weights_of(perturbed_network("llama"))
    in_head_space = {case for case in CANNOT if "rmt" in case}
    with grouped() as case:
        for topology in CANNOT:
            with case(topology):
                with raises("unsupported", option="topology", value=topology) as caught:
                    retrofit(weights, RESNET, topology, BUILD["llama"])
                assert (caught.value.fields.get("needs") == "projections") == (topology in in_head_space)
                assert ("choices" in caught.value.fields) == (topology not in in_head_space)


def test_error_of_a_refused_topology_lists_valid_ones() -> None:
    error = refusal(RESNET, "ancre")
    assert error is not None
    can = error.fields["choices"]
    assert {"dca", "attnres", "frac", "mhc(streams=2)"} <= set(can)
    assert all(refusal(RESNET, topology) is None for topology in can)
    narrow = refusal(replace(RESNET, width=30), "ancre")  # not a multiple of four
    assert narrow is not None
    assert "frac(parts=2)" in narrow.fields["choices"]


def test_only_residual_networks_are_retrofitted() -> None:
    dca = replace(RESNET, topology="dca")
    weights = weights_of(BUILD["llama"](dca))
    with raises("unsupported", option="topology", value="dca", needs="resnet"):
        retrofit(weights, dca, "grn-v1", BUILD["llama"])


def test_error_of_an_unknown_topology_names_the_nearest() -> None:
    with raises("unknown-name", option="topology", value="dcaa", nearest="dca"):
        retrofit({}, RESNET, "dcaa", BUILD["llama"])


def test_error_of_mismatched_weights_names_the_first() -> None:
    with raises("mismatch", weight="embedding.tokens.weight", shape=(50, 24), network_shape=(60, 24)):
        retrofit(
            weights_of(perturbed_network("llama")),
            RESNET,
            "dca",
            lambda architecture: build_decoder(architecture, "llama", 60, 12),
        )


def test_a_checkpoint_is_retrofitted(tmp_path: Path) -> None:
    before = perturbed_network("gpt2-tied")
    record = Record(task="any", task_version=1, architecture=RESNET, step=70, settings={"vocabulary": 50})
    save_checkpoint(tmp_path / "resnet", weights_of(before), record)
    after, record_after = retrofit_checkpoint(tmp_path / "resnet", "dca(k=2)", BUILD["gpt2-tied"])
    assert record_after == replace(record, architecture=replace(RESNET, topology="dca(k=2)"))
    after.eval()
    with torch.no_grad():
        torch.testing.assert_close(after(example("gpt2")), before(example("gpt2")), rtol=0, atol=1e-5)


def test_plugin_layers_with_norms_can_be_retrofitted() -> None:
    task = load_task(f"{Path(__file__).parents[2] / 'tasks' / 'moons.py'}:Moons")
    torch.manual_seed(0)
    before = task.build(task.base)
    after = retrofit(weights_of(before), task.base, "mhc", task.build)
    points = torch.randn(3, 2)
    torch.testing.assert_close(after(points), before(points), rtol=1e-4, atol=1e-4)  # norms have an epsilon
