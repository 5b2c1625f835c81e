"""Optimizers: their parameters, and trainings with each of them."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import timm
import torch
import torch.nn.functional as F
from torch import nn, optim

from expect import raises
from grouped import grouped
from search_spaces.architecture.architecture import Architecture
from search_spaces.models.decoder import build_decoder
from search_spaces.topologies.decay import split_by_decay
from tasks.base import Diverged, FitResult
from tasks.recipes.optimizer_spec import CHOICES
from tasks.recipes.recipe import Recipe
from tasks.run import CONTINUE, STOP, Decision, Run
from tasks.training.galore import EPSILON, GaLoreAdamW
from tasks.training.loop import checkpoint_for
from tasks.training.optimizers import hidden_matrices, optimizers_for
from tasks.vision.digits import DigitsRecipe, DigitsViT

SHAPE = Architecture(depth=2, width=16, heads=2, head_dim=8, hidden=32)
SMALL = replace(SHAPE, depth=1)
RECIPE = DigitsRecipe(steps=12, batch=32, lr=3e-3, accumulate=2, measured=64, reports=3)
EACH = ["adamw", "adam", "sgd(momentum=0.9,nesterov=true)", "galore(gap=3,rank=4)", "muon"]


def test_these_tests_cover_all_optimizers() -> None:
    assert {text.partition("(")[0] for text in EACH} == set(CHOICES)


def names(network: nn.Module, optimizer: optim.Optimizer) -> set[str]:
    ids = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    return {name for name, parameter in network.named_parameters() if id(parameter) in ids}


def maps(network: nn.Module) -> set[str]:
    ids = {id(parameter) for parameter in hidden_matrices(network)}
    return {name for name, parameter in network.named_parameters() if id(parameter) in ids}


def test_every_parameter_has_one_optimizer_and_its_weight_decay() -> None:
    with grouped() as case:
        for topology in ("resnet", "ancre", "hyper", "rmt"):
            network = DigitsViT().build(replace(SHAPE, topology=topology))
            with_decay, exempt = split_by_decay(network, ("head",))
            for text in EACH:
                with case(f"{topology}, {text}"):
                    recipe = replace(RECIPE, optimizer=text, weight_decay=0.3, without_decay=("head",))
                    groups = [
                        group for optimizer in optimizers_for(network, recipe) for group in optimizer.param_groups
                    ]
                    everything = [p for group in groups for p in group["params"]]
                    assert sorted(map(id, everything)) == sorted(map(id, network.parameters()))
                    for decay, among in ((0.3, with_decay), (0.0, exempt)):
                        params = [p for group in groups if group["weight_decay"] == decay for p in group["params"]]
                        assert {*map(id, params)} == {*map(id, among)}
                    assert {group["lr"] for group in groups} == {RECIPE.lr}


def test_hidden_maps_are_the_matrices_of_the_stack() -> None:
    network = DigitsViT().build(replace(SHAPE, depth=1, topology="hyper"))
    layers = {"layers.0.project.qkv", "layers.0.out", "layers.1.up", "layers.1.down"}
    wiring = {f"topology.connections.{number}.dynamic.project" for number in (0, 1)}
    assert maps(network) == {f"stack.{name}.weight" for name in layers | wiring}
    muon, adamw = optimizers_for(network, replace(RECIPE, optimizer="muon"))
    assert names(network, muon) == maps(network)
    assert {"head.weight", "embedding.project.weight", "embedding.positions", "stack.topology.connections.0.static",
            "stack.layers.1.up.bias"} <= names(network, adamw)  # fmt: skip


def test_tied_embeddings_are_no_hidden_maps() -> None:
    network = build_decoder(SHAPE, "gpt2", vocabulary=50, context=8, tied=True)
    assert all(name.startswith("stack.layers") for name in maps(network))


def test_hidden_maps_without_a_stack_are_all_but_the_first_and_last() -> None:
    plain = nn.Sequential(nn.Linear(2, 8), nn.LayerNorm(8), nn.Linear(8, 9), nn.Linear(9, 3))
    assert maps(plain) == {"2.weight"}
    with_words = nn.Sequential(nn.Embedding(5, 8), nn.Linear(8, 9), nn.Linear(9, 5))
    assert maps(with_words) == {"1.weight"}
    tied = nn.Sequential(nn.Embedding(5, 8), nn.Linear(8, 8), nn.Linear(8, 5), nn.Linear(5, 2))
    tied[2].weight = tied[0].weight
    assert maps(tied) == {"1.weight"}
    network = timm.create_model("deit_tiny_patch16_224", depth=1)
    hidden_names = {"attn.qkv", "attn.proj", "mlp.fc1", "mlp.fc2"}
    assert maps(network) == {f"blocks.0.{name}.weight" for name in hidden_names}


def test_networks_without_hidden_maps_are_refused() -> None:
    network = nn.Sequential(nn.Linear(2, 8), nn.GELU(), nn.Linear(8, 2))
    for text in ("galore", "muon"):
        with raises("unsupported", option="optimizer", value=text):
            optimizers_for(network, Recipe(steps=1, batch=1, lr=1.0, optimizer=text))


def test_galore_projects_each_map_of_a_joined_weight() -> None:
    llama = build_decoder(SHAPE, "llama", vocabulary=50, context=8)
    galore, adamw = optimizers_for(llama, replace(RECIPE, optimizer="galore(gap=7,rank=3,scale=0.5)"))
    number = {name: group["maps"] for group in galore.param_groups for name, parameter in llama.named_parameters()
              if any(parameter is member for member in group["params"])}  # fmt: skip
    kinds = {"project.qkv": 3, "out": 1, "up": 2, "down": 1}  # gate and value are joined
    assert {name.removesuffix(".weight").split(".", 3)[-1]: count for name, count in number.items()} == kinds
    assert {(group["rank"], group["gap"], group["scale"]) for group in galore.param_groups} == {(3, 7, 0.5)}
    assert {group["eps"] for group in adamw.param_groups} == {EPSILON}


def optimizers_by_hand(network: nn.Module, text: str) -> list[optim.Optimizer]:
    """The expected optimizers, written out."""
    with_decay, exempt = split_by_decay(network)
    hidden = {id(parameter) for parameter in network.get_submodule("stack.layers").parameters() if parameter.ndim == 2}
    groups = [{"params": with_decay, "weight_decay": RECIPE.weight_decay}, {"params": exempt, "weight_decay": 0.0}]
    inner = {"params": [p for p in with_decay if id(p) in hidden], "weight_decay": RECIPE.weight_decay}
    outer = [{**group, "params": [p for p in group["params"] if id(p) not in hidden]} for group in groups]
    match text.partition("(")[0]:
        case "adam":
            return [optim.Adam(groups, fused=True)]
        case "sgd":
            return [optim.SGD(groups, momentum=0.9, nesterov=True, fused=True)]
        case "muon":
            return [optim.Muon([inner], adjust_lr_fn="match_rms_adamw"), optim.AdamW(outer, fused=True)]
        case "galore":
            number = {layer.project.qkv.weight: 3 for layer in network.get_submodule("stack.layers")[::2]}
            variants = [
                {**inner, "params": [p for p in inner["params"] if number.get(p, 1) == m], "maps": m} for m in (1, 3)
            ]
            return [GaLoreAdamW(variants, lr=1.0, rank=4, gap=3), optim.AdamW(outer, eps=1e-6, fused=True)]
    return [optim.AdamW(groups, fused=True)]


@pytest.mark.parametrize("text", EACH)
def test_a_training_equals_a_plain_loop(text: str) -> None:
    task, recipe = DigitsViT(), replace(RECIPE, optimizer=text, accumulate=1, steps=7)
    torch.manual_seed(5)
    network = task.build(SMALL)
    optimizers = optimizers_by_hand(network, text)
    batches = task.splits.training_batches(recipe, 5, (), torch.device("cpu"))
    for step in range(7):
        (inputs, labels), _ = next(batches)
        F.cross_entropy(network(*inputs) if isinstance(inputs, tuple) else network(inputs), labels).backward()
        groups = [group for optimizer in optimizers for group in optimizer.param_groups]
        nn.utils.clip_grad_norm_([parameter for group in groups for parameter in group["params"]], recipe.clip)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = recipe.learning_rate(step, 7)
            optimizer.step()
            optimizer.zero_grad()
    trained_network = task.fit(Run(architecture=SMALL, recipe=recipe, seed=5)).network
    assert trained_network is not None
    for name, parameter in trained_network.state_dict().items():
        assert torch.equal(parameter, network.state_dict()[name]), name


@cache
def whole(text: str) -> tuple[FitResult, list[dict[str, float]]]:
    """An uninterrupted training, and its curve."""
    return fit(text, None)


def fit(text: str, folder: Path | None, stop: int = 0) -> tuple[FitResult, list[dict[str, float]]]:
    curve: list[dict[str, float]] = []

    def report(step: int, metrics: Mapping[str, float]) -> Decision:
        curve.append(dict(metrics))
        return STOP if step == stop else CONTINUE

    recipe = replace(RECIPE, optimizer=text)
    return DigitsViT().fit(Run(architecture=SMALL, recipe=recipe, seed=0, folder=folder, report=report)), curve


@pytest.mark.parametrize("text", EACH)
def test_resume_after_a_stop_gives_the_same_result(text: str, tmp_path: Path) -> None:
    expected, curve = whole(text)
    partial, _ = fit(text, tmp_path, stop=4)
    assert partial.steps == 4  # between GaLore's second and third projections
    result, resumed_curve = fit(text, tmp_path)
    assert (result, resumed_curve) == (expected, curve)
    assert expected.network is not None
    assert result.network is not None
    for name, parameter in expected.network.state_dict().items():
        assert torch.equal(parameter, result.network.state_dict()[name])


def test_optimizers_give_different_networks() -> None:
    losses = {text: whole(text)[0].metrics["loss"] for text in [*EACH, "galore", "muon(adjust=original)", "sgd"]}
    assert len(set(losses.values())) == len(losses)


def test_checkpoints_belong_to_one_optimizer() -> None:
    def words(text: str) -> str:
        return checkpoint_for(
            DigitsViT(), Run(architecture=SHAPE, recipe=replace(RECIPE, optimizer=text), seed=0)
        ).identity

    assert len({words(text) for text in EACH}) == len(EACH)


@pytest.mark.parametrize("text", EACH)
def test_trainings_in_bfloat16_print_nothing(text: str, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    recipe = replace(RECIPE, optimizer=text, precision="bf16-true", steps=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = DigitsViT().fit(Run(architecture=SMALL, recipe=recipe, seed=0, folder=tmp_path))
    assert math.isfinite(result.metrics["loss"])
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("text", EACH)
def test_a_loss_that_is_not_finite_ends_a_training(text: str) -> None:
    recipe = replace(RECIPE, optimizer=text, lr=1e30, clip=0.0, steps=30)
    with pytest.raises(Diverged):
        DigitsViT().fit(Run(architecture=SMALL, recipe=recipe, seed=0))
