"""muP: scales of parameters by a hand-written table, and updates of logits at every width."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from expect import raises
from grouped import grouped
from search_spaces.architecture.architecture import Architecture
from search_spaces.models.decoder import build_decoder
from tasks.recipes.parametrization import Mup, at_width, read_parametrization
from tasks.recipes.recipe import Recipe
from tasks.run import Run
from tasks.training.mup import MupFactors, mup_factors, rescale_weights
from tasks.training.optimizers import optimizers_for
from tasks.vision.digits import DigitsViT

WIDE = Architecture(depth=2, width=256, heads=8, head_dim=16, hidden=512)
RECIPE = Recipe(steps=4, batch=2, lr=0.01, weight_decay=0.1)


def llama(architecture: Architecture, **how: Any) -> nn.Module:
    torch.manual_seed(architecture.width)
    return build_decoder(architecture, "llama", 50, 16, **how)


def test_parametrizations_are_read_and_faulty_ones_refused() -> None:
    assert read_parametrization("standard") is None
    assert read_parametrization("mup") == Mup(64)
    assert read_parametrization("mup(base=8)") == Mup(8)
    with raises("unknown-name", option="parametrization", value="mu", nearest="mup"):
        read_parametrization("mu")
    with raises("out-of-range", option="base", value=0, least=1):
        read_parametrization("mup(base=0)")
    with raises("unknown-name", option="parametrization", value="standard"):
        read_parametrization("standard(base=8)")


def test_a_parametrization_has_one_text() -> None:
    assert RECIPE.parametrization == "standard"
    assert replace(RECIPE, parametrization="mup").parametrization == "mup(base=64)"


def test_mup_needs_adam_or_adamw() -> None:
    with grouped() as case:
        for optimizer in ("sgd", "muon", "galore"):
            with case(optimizer), raises("conflict", option="parametrization", value="mup", optimizer=optimizer):
                replace(RECIPE, parametrization="mup", optimizer=optimizer)


def test_the_base_network_has_the_same_depth_and_head_size() -> None:
    assert at_width(WIDE, 64) == Architecture(depth=2, width=64, heads=2, head_dim=16, hidden=128)
    assert at_width(WIDE.with_fields({"heads": 1}), 64).heads == 1
    assert at_width(Architecture(depth=2, width=100, hidden=7), 50) == Architecture(depth=2, width=50, hidden=4)
    differing = replace(WIDE, blocks="heads=8/4")
    with raises("unsupported", option="parametrization", value="mup", architecture=str(differing)):
        at_width(differing, 64)


TABLE = {  # deviation and learning rate at four times the base width
    "embedding.tokens.weight": (1, 1),
    "head.weight": (1 / 4, 1 / 4),
    "qkv.weight": (1 / 2, 1 / 4),
    "out.weight": (1 / 2, 1 / 4),
    "up.weight": (1 / 2, 1 / 4),
    "down.weight": (1 / 2, 1 / 4),
    "norm.weight": (1, 1),
}


def test_every_parameter_of_a_decoder_has_the_scale_of_the_table() -> None:
    network, base = llama(WIDE), llama(at_width(WIDE, 64))
    by = mup_factors(network, base)
    assert by.keys() == dict(network.named_parameters()).keys()
    for name, scale in by.items():
        (expected,) = {pair for end, pair in TABLE.items() if name.endswith(end)}
        assert (scale.deviation, scale.rate) == expected, name
    rescale_weights(network, base, by)
    deviations = {name: parameter.std().item() for name, parameter in network.named_parameters()}
    assert deviations["head.weight"] == pytest.approx(0.02 / 4, rel=0.05)
    assert deviations["stack.layers.1.up.weight"] == pytest.approx(0.02 / 2, rel=0.05)
    assert deviations["embedding.tokens.weight"] == pytest.approx(0.02, rel=0.05)
    assert all(p.eq(1).all() for name, p in network.named_parameters() if "norm" in name)


def test_the_base_width_changes_nothing() -> None:
    base = llama(at_width(WIDE, 64))
    before = {name: parameter.clone() for name, parameter in base.named_parameters()}
    by = mup_factors(base, llama(at_width(WIDE, 64)))
    rescale_weights(base, llama(at_width(WIDE, 64)), by)
    assert {(scale.deviation, scale.rate) for scale in by.values()} == {(1.0, 1.0)}
    for name, parameter in base.named_parameters():
        torch.testing.assert_close(parameter, before[name], rtol=1e-6, atol=0)


def test_tied_embeddings_move_the_scale_of_the_head_to_the_norm() -> None:
    network, base = llama(WIDE, tied=True), llama(at_width(WIDE, 64), tied=True)
    by = mup_factors(network, base)
    assert by["stack.norm.weight"] == MupFactors(1 / 4, 1 / 4)
    assert by["embedding.tokens.weight"] == MupFactors()
    rescale_weights(network, base, by)
    gain = network.get_parameter("stack.norm.weight")
    assert torch.equal(gain, torch.full_like(gain, 0.25))
    with_norm = llama(WIDE.with_fields({"topology": "rmt"}), tied=True)
    with raises("unsupported", option="parametrization", value="mup", needs="head"):
        mup_factors(with_norm, llama(at_width(WIDE.with_fields({"topology": "rmt"}), 64), tied=True))


def test_groups_have_their_rates_and_an_unchanged_decay() -> None:
    network = llama(WIDE)
    rates = {name: scale.rate for name, scale in mup_factors(network, llama(at_width(WIDE, 64))).items()}
    names = {id(parameter): name for name, parameter in network.named_parameters()}
    (adamw,) = optimizers_for(network, RECIPE, rates)
    groups = {names[id(parameter)]: group for group in adamw.param_groups for parameter in group["params"]}
    assert groups.keys() == rates.keys()
    for name, group in groups.items():
        assert group["lr"] == pytest.approx(0.01 * rates[name])
        assert group["rate"] == rates[name]
        assert group["lr"] * group["weight_decay"] in (0, pytest.approx(0.01 * 0.1))


def move_of_width(width: int, with_mup: bool) -> float:
    """Root mean square change of logits under Adam at one rate, averaged over seeds."""
    total = 0.0
    for seed in range(2):
        torch.manual_seed(seed)
        architecture = Architecture(depth=2, width=width, heads=width // 16, head_dim=16, hidden=2 * width)
        network = build_decoder(architecture, "llama", 50, 16)
        rates = {}
        if with_mup:
            base = build_decoder(at_width(architecture, 32), "llama", 50, 16)
            by = mup_factors(network, base)
            rescale_weights(network, base, by)
            rates = {name: scale.rate for name, scale in by.items()}
        (adam,) = optimizers_for(network, replace(RECIPE, weight_decay=0.0), rates)
        ids = torch.randint(50, (4, 17), generator=torch.Generator().manual_seed(seed))
        before = network(ids[:, :-1]).detach()
        for _ in range(5):
            nn.functional.cross_entropy(network(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()).backward()
            adam.step()
            adam.zero_grad()
        total += (network(ids[:, :-1]) - before).square().mean().sqrt().item()
    return total / 2


def test_logits_move_equally_at_every_width_only_with_mup() -> None:
    mup, standard = ([move_of_width(width, how) for width in (32, 64, 256)] for how in (True, False))
    assert max(mup) < 1.5 * min(mup), mup
    assert standard[2] > 2.5 * standard[0], standard


def test_fan_in_initialization_is_not_scaled_twice() -> None:
    network = llama(WIDE, initial="lecun")
    base = llama(at_width(WIDE, 64), initial="lecun")
    rescale_weights(network, base, mup_factors(network, base))
    deviations = {name: parameter.std().item() for name, parameter in network.named_parameters()}
    assert deviations["stack.layers.1.up.weight"] == pytest.approx(256**-0.5, rel=0.05)
    assert deviations["head.weight"] == pytest.approx(64**-0.5 / 4, rel=0.05)


def test_a_training_uses_the_rates_under_any_schedule() -> None:
    task = DigitsViT()
    recipe = replace(task.presets["smoke"], parametrization=f"mup(base={task.base.width // 2})")
    rates, deviations = list[dict[float, float]](), list[float]()

    def look(optimizer: Any, *_: Any) -> None:
        rates.append({group["rate"]: group["lr"] for group in optimizer.param_groups})
        maps = [p for group in optimizer.param_groups for p in group["params"] if p.shape == (10, 32)]
        deviations.append(torch.stack([parameter.detach() for parameter in maps]).std(correction=0).item())

    hook = register_optimizer_step_pre_hook(look)
    try:
        step = task.training_step(Run(architecture=task.base, recipe=recipe, seed=0))
        step(), step()
    finally:
        hook.remove()
    steps = recipe.total_steps(task.splits.num_examples)
    assert rates == [
        {rate: pytest.approx(rate * recipe.learning_rate(number, steps)) for rate in (0.5, 1.0)} for number in (0, 1)
    ]
    torch.manual_seed(0)
    network = task.build(task.base)
    base = task.build(at_width(task.base, task.base.width // 2))
    assert deviations[0] == pytest.approx(base.head.weight.std().item() / 2, rel=0.15)  # by its fan-in
    by = mup_factors(network, base)
    assert (by["embedding.project.weight"], by["head.weight"]) == (MupFactors(), MupFactors(0.5, 0.5))
