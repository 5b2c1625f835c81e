"""Requests of searches: names, settings and axes, and errors before any training."""

from typing import Any

import pytest

import nas
from expect import raises
from grouped import grouped
from nas.request.job import recipe_of, reload_task
from nas.request.resolve import architecture_of, space_of
from search_spaces.support.errors import Kind
from tasks.load import load_task
from toy_searches import Search, rows

SMALL = {"space": "depth-heads"}
MISTAKES: list[tuple[dict[str, Any], Kind, dict[str, Any]]] = [
    ({"budget": "params<=10"}, "infeasible", {"budget": "params<=10", "space": "depth-heads"}),
    ({"budget": ["parms<=10k"]}, "unknown-name", {"option": "budget quantity", "value": "parms", "nearest": "params"}),
    ({"objectives": "acuracy,flops"}, "unknown-name", {"option": "objective", "nearest": "accuracy"}),
    ({"objectives": "test_accuracy"}, "unsupported", {"option": "objective", "value": "test_accuracy"}),
    ({"objectives": "flops,params"}, "unsupported", {"option": "--objectives", "value": ("flops", "params")}),
    ({"objectives": "flops,flops"}, "duplicate", {"option": "--objectives", "value": "flops"}),
    ({"space": "jiont"}, "unknown-name", {"value": "jiont", "nearest": "joint"}),
    ({"preset": "prox"}, "unknown-name", {"option": "preset", "value": "prox", "nearest": "proxy"}),
    ({"sampler": "radnom"}, "unknown-name", {"option": "sampler", "nearest": "random"}),
    ({"task": "digits-vti"}, "unknown-name", {"option": "task", "nearest": "digits-vit"}),
    ({"task": "nowhere.py:Toy"}, "missing-file", {"option": "task", "path": "nowhere.py"}),
    ({"arch": "depth=5,topology=dcaa"}, "unknown-name", {"option": "topology", "value": "dcaa", "nearest": "dca"}),
    ({"storage": "nonsense"}, "bad-syntax", {"option": "--storage", "value": "nonsense"}),
    ({"settings": "lr=1"}, "unknown-name", {"value": "lr", "choices": ("penalty",)}),
    ({"settings": "penalty=much"}, "wrong-type", {"option": "penalty", "value": "much"}),
    ({"settings": {"penalty": -1}}, "out-of-range", {"option": "penalty", "value": -1}),
    ({"settings": "penalty"}, "bad-syntax", {"option": "--set", "value": "penalty"}),
    ({"settings": "penalty=1,penalty=2"}, "duplicate", {"option": "--set", "value": "penalty"}),
    ({"settings": "penalty=0.1", "axis": "recipe.penalty=0,0.1"}, "conflict", {"option": "--set", "value": "penalty"}),
    ({"axis": "recipe.penaltee=1,2"}, "unknown-name", {"value": "penaltee", "nearest": "penalty"}),
    ({"axis": "dept=1,2"}, "unknown-name", {"option": "axis", "value": "dept"}),
    ({"study": "all"}, "bad-syntax", {"option": "--study", "value": "all"}),
    ({"study": "a,b"}, "bad-syntax", {"option": "--study", "value": "a,b"}),
    ({"study": " a"}, "bad-syntax", {"option": "--study", "value": " a"}),
    # values that the command line refuses itself
    ({"trials": 0}, "out-of-range", {"option": "--trials", "value": 0, "least": 1}),
    ({"seed": -1}, "out-of-range", {"option": "--seed", "value": -1, "least": 0}),
    ({"save_models": "frnot"}, "unknown-name", {"option": "--save-models", "value": "frnot", "nearest": "front"}),
    ({"trials": 1.5}, "wrong-type", {"option": "--trials", "value": 1.5}),
    ({"resources": 2}, "wrong-type", {"option": "resources", "value": 2, "expected": "Resources"}),
    ({"rungs": 2}, "wrong-type", {"option": "rungs", "value": 2, "expected": "Rungs"}),
]


def test_mistakes_raise_user_errors_before_any_training(search: Search, search_args: dict[str, Any]) -> None:
    with grouped() as case:
        for change, kind, fields in MISTAKES:
            with case(str(change)), raises(kind, **fields):
                search(**{**SMALL, **change})
    search(**SMALL, trials=1)
    assert len(rows(search_args)) == 1  # no mistake led to a training


def test_evaluations_do_not_enter_a_search(search: Search, search_args: dict[str, Any]) -> None:
    search(**SMALL, trials=1)
    with raises("mismatch", option="--study", value="s"):
        nas.evaluate(search_args["task"], preset="smoke", study="s", storage=search_args["storage"])


def test_a_study_continues_only_with_its_own_settings(search: Search, search_args: dict[str, Any]) -> None:
    search(**SMALL, trials=2)
    with raises("mismatch", study="s", option="budget") as error:
        search(**SMALL, budget="params<=4k")
    assert "params<=3000" in str(error.value)
    assert len(rows(search_args)) == 2


def test_a_setting_changes_the_recipe_of_every_trial(search: Search) -> None:
    plain, hard = search(**SMALL, trials=3), search(**SMALL, trials=3, settings="penalty=0.02", study="hard")
    assert [row.recipe["penalty"] for row in hard.rows()] == [0.02] * 3
    for plain_row, hard_row in zip(plain.rows(), hard.rows(), strict=True):
        assert hard_row.metrics["accuracy"] == pytest.approx(
            plain_row.metrics["accuracy"] - 0.01 * len(plain_row.architecture.topology)
        )
        assert plain_row.identity() != hard_row.identity()


def test_values_of_a_recipe_axis_have_the_type_of_their_field() -> None:
    axes = ("recipe.betas=0.9:0.95,0.9:0.99", "recipe.precision=32-true,bf16-mixed", "recipe.batch=16,1.6e1")
    task: Any = reload_task("digits-vit", None)
    with raises("duplicate", option="recipe.batch", value="1.6e1"):
        space_of(task, "depth-heads", "", "smoke", axes)
    space = space_of(task, "depth-heads", "", "smoke", (*axes[:2], "recipe.batch=1.6e1,3.2e1"))
    recipes = [recipe_of(task, "smoke", candidate.settings) for candidate in space]
    assert {recipe.betas for recipe in recipes} == {(0.9, 0.95), (0.9, 0.99)}
    assert {recipe.precision for recipe in recipes} == {"32-true", "bf16-mixed"}
    assert {repr(recipe.batch) for recipe in recipes} == {"16", "32"}
    with raises("wrong-type", option="betas"):
        space_of(task, "depth-heads", "", "smoke", ("recipe.betas=0.9:0.95:1",))


def test_optimizers_with_options_are_an_axis() -> None:
    task: Any = reload_task("digits-vit", None)
    space = space_of(task, "depth-heads", "", "smoke", ("recipe.optimizer=adamw,galore(rank=8, gap=50),muon",))
    recipes = [recipe_of(task, "smoke", candidate.settings) for candidate in space]
    assert {recipe.optimizer for recipe in recipes} == {"adamw", "galore(gap=50,rank=8)", "muon"}
    with raises("duplicate", option="recipe.optimizer", equals="muon", value="muon(momentum=0.95)"):
        space_of(task, "depth-heads", "", "smoke", ("recipe.optimizer=muon,adamw,muon(momentum=0.95)",))
    with raises("out-of-range", option="rank", value=0):
        space_of(task, "depth-heads", "", "smoke", ("recipe.optimizer=adamw,galore(rank=0)",))


def test_error_names_the_topologies_that_a_network_can_have() -> None:
    task = load_task("goal-point-maze")
    with grouped() as case:
        for text in ("svformer", "resnet/svformer", "svformer/resnet", "resnet[:1]+svformer[1:]"):
            with case(text):
                with raises("unsupported", option="topology") as error:
                    architecture_of(task, "proxy", "", text)
                choices = error.value.fields["choices"]
                assert {"resnet", "dca", "mhc"} <= set(choices)
                assert not {"svformer", "value-residual", "depth-lstm", "rmt"} & set(choices)
                for topology in choices:
                    architecture_of(task, "proxy", "", topology)


def test_error_proposes_another_option_rather_than_topology() -> None:
    with raises("unsupported", option="topology", value="frac(parts=3)", choices=()) as error:
        architecture_of(load_task("goal-point-maze"), "proxy", "", "frac(parts=3)")
    assert "parts=2" in str(error.value)
