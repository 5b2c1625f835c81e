"""The five tasks: networks, recipes and baselines."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from nas.budget.bounds import parse_budget
from nas.budget.implicit.budget_dp import BudgetDP
from nas.costs.count import budget_counts
from search_spaces.layers.nystrom import Nystrom, NystromAttention
from search_spaces.spaces.catalog import SPACES
from tasks.lra import contours
from tasks.lra.listops import LRAListOps
from tasks.lra.pathfinder import LRAPathfinder
from tasks.lra.task import LongRangeTask, group_majority, splits_of
from tasks.lra.text import LRAText
from tasks.registry import TASKS
from tasks.run import Run

KINDS = [kind for kind in map(TASKS.load, TASKS.names()) if issubclass(kind, LongRangeTask)]

# Steps, batch, learning rate, share that warms up, steps between measurements, tokens: Nyströmformer's table.
PAPER = {
    "lra-listops": (5000, 32, 1e-4, 1000 / 5000, 50, 2048),
    "lra-text": (20_000, 32, 1e-4, 8000 / 20_000, 500, 4096),
    "lra-retrieval": (30_000, 32, 1e-4, 800 / 30_000, 300, 4096),
    "lra-image": (35_000, 256, 1e-4, 175 / 35_000, 175, 1024),
    "lra-pathfinder": (62_400, 256, 1e-4, 312 / 62_400, 312, 1024),
}


def test_all_five_tasks_have_their_published_recipe() -> None:
    assert {kind.name for kind in KINDS} == set(PAPER)
    for kind in KINDS:
        recipe = kind.presets["paper"]
        every = recipe.steps // recipe.reports
        assert PAPER[kind.name] == (recipe.steps, recipe.batch, recipe.lr, recipe.warmup, every, recipe.tokens)
        assert (recipe.weight_decay, recipe.schedule, recipe.dropout) == (0, "linear", 0.1)


def shapes(model: nn.Module) -> dict[str, torch.Size]:
    return {name: weights.shape for name, weights in model.named_parameters()}


def test_presets_train_the_network_that_is_counted() -> None:
    closed_forms, params = {}, {}
    for kind in KINDS:
        task = kind()
        for preset, recipe in task.presets.items():
            with torch.device("meta"):
                closed_forms[kind.name, preset] = shapes(task.build(task.base))
                params[kind.name, preset] = shapes(task.build_for_training(task.base, recipe))
            assert recipe.tokens <= task.context, (kind.name, preset)
            assert recipe.tokens % recipe.landmarks == 0, (kind.name, preset)
    assert params == closed_forms


def test_parameter_counts_match_the_published_ones() -> None:
    task = LRAListOps()
    two = task.closed_form(task.base).params
    params_per_block = task.closed_form(replace(task.base, depth=1, heads=4)).params
    taps = 35 * 4  # weights of the convolutions, missing in the printed counts
    assert ((two - taps) / 1e3, (params_per_block - taps) / 1e3) == pytest.approx((209.8, 192.9), abs=0.05)


def test_every_space_has_networks_within_200_thousand_parameters() -> None:
    task, budget = LRAListOps(), parse_budget(["params<=200k"])
    spaces = {name: SPACES.load(name)(task.base) for name in SPACES.names()}
    fitting = {name: BudgetDP(space, partial(budget_counts, task), budget).number for name, space in spaces.items()}
    assert all(fitting.values()), fitting


def test_padding_does_not_change_the_output() -> None:
    task = LRAListOps()
    recipe = task.presets["proxy"]
    torch.manual_seed(0)
    network = task.build_for_training(replace(task.base, depth=1), recipe).eval()
    (ids, _), _ = next(task.splits_for(task.presets["smoke"]).training_batches(recipe, 0, (), torch.device("cpu")))
    assert ids.dtype == torch.long
    assert (ids == 0).any()
    with torch.no_grad():
        together = network(ids)
        assert together.shape == (32, 10)
        torch.testing.assert_close(network(ids[5:6]), together[5:6], atol=1e-5, rtol=1e-4)


def test_lists_are_generated_for_the_preset() -> None:
    task = LRAListOps()
    task.prepare()
    inputs = task.inputs(task.presets["smoke"])
    assert inputs.shape == (4, 64)
    assert "splits" not in vars(task)  # the published lists are not made
    splits = task.splits_for(task.presets["smoke"])
    assert [part[0].shape for part in (splits.train, splits.validation, splits.test)] == [
        (500, 64),
        (250, 64),
        (250, 64),
    ]
    rows = torch.cat([part[0] for part in (splits.train, splits.validation, splits.test)])
    assert len(rows.unique(dim=0)) == 1000


def test_the_generated_lists_never_change() -> None:
    task = LRAListOps()
    assert task.splits_for(task.presets["smoke"]).fingerprint == "91afcfd608ac"


def test_baselines_are_measured_on_both_splits() -> None:
    columns = LRAListOps().baselines(LRAListOps.presets["smoke"])
    majority, first = columns["majority class"], columns["most frequent by first operator"]
    assert set(majority) == {"accuracy", "accuracy_se", "test_accuracy", "test_accuracy_se"}
    for prefix in ("", "test_"):
        assert 0.05 < majority[f"{prefix}accuracy"] < 0.2 < first[f"{prefix}accuracy"] < 0.4
        share = majority[f"{prefix}accuracy"]
        assert majority[f"{prefix}accuracy_se"] == pytest.approx((share * (1 - share) / 250) ** 0.5)


def test_majority_by_group_is_learnt_from_training_alone() -> None:
    train = torch.tensor([[1, 5], [1, 6], [1, 7], [2, 5], [2, 6]]), torch.tensor([0, 0, 1, 1, 1])
    validation = torch.tensor([[1, 9], [2, 9], [2, 9], [2, 9]]), torch.tensor([0, 1, 1, 0])
    test = torch.tensor([[1, 9], [2, 9]]), torch.tensor([1, 1])
    columns = group_majority(splits_of(train, validation, test), lambda ids: ids[:, 0])
    assert (columns["accuracy"], columns["test_accuracy"]) == (0.75, 0.5)


def test_texts_are_cut_to_the_recipes_tokens(imdb_folder: Path) -> None:
    task = LRAText(imdb_folder)
    splits = task.splits_for(task.presets["smoke"])
    assert splits.train[0].shape == (36, 64)
    assert torch.equal(splits.train[0], task.splits.train[0][:, :64])
    assert splits is task.splits_for(task.presets["smoke"])


def test_pathfinder_generates_images_without_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAS_CACHE", str(tmp_path))  # do not share generated data with other tests

    def block(seed: int, size: int, number: int, *, single_dashes: bool) -> list[tuple[np.ndarray, int]]:
        return [(np.full((32, 32), i, np.uint8), i % 2) for i in range(size)]

    monkeypatch.setattr(contours, "make_block", block)
    task = LRAPathfinder()
    splits = task.splits_for(task.presets["smoke"])
    parts = (splits.train, splits.validation, splits.test)
    assert [part[0].shape for part in parts] == [(32, 1024), (4, 1024), (4, 1024)]
    assert splits.train[0].dtype == torch.uint8
    assert all(torch.equal(ids[:, 5] % 2, answers) for ids, answers in parts)
    assert sorted(torch.cat([ids[:, 0] for ids, _ in parts]).tolist()) == [*range(40)]


@pytest.mark.slow
def test_proxy_beats_the_majority_class_and_the_first_operator() -> None:
    task = LRAListOps()
    result = task.fit(Run(architecture=replace(task.base, depth=1, heads=4), recipe=task.presets["proxy"], seed=0))
    for columns in task.baselines(task.presets["proxy"]).values():
        assert result.metrics["accuracy"] > columns["accuracy"]
        assert result.test["accuracy"] > columns["test_accuracy"]


def test_the_published_recipe_trains_the_published_network() -> None:
    task = LRAText()
    network = task.build_for_training(replace(task.base, depth=1), task.presets["paper"])
    assert network.pooling == "positions"
    [attention] = [module for module in network.modules() if isinstance(module, NystromAttention)]
    assert attention.options == Nystrom(64, 35, "batch")
    assert task.presets["paper"].beta_cycle == (0.95, 0.85)
