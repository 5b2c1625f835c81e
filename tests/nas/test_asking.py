"""What a search is asked for: names, settings and axes, and what is refused before anything is trained."""

from typing import Any

import pytest

import nas
from nas.asking import architecture_of, space_of
from nas.jobs import fresh_task, recipe_of
from search_spaces.errors import UserError
from tasks.load import load_task
from toy_searches import Search, rows


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"budget": "params<=10"}, "smallest"),
        ({"budget": ["parms<=10k"]}, "params"),
        ({"objectives": "acuracy,flops"}, "accuracy"),
        ({"objectives": "test_accuracy"}, "never searched on"),
        ({"objectives": "flops,flops"}, "twice"),
        ({"space": "jiont"}, "joint"),
        ({"preset": "prox"}, "proxy"),
        ({"sampler": "radnom"}, "random"),
        ({"task": "digits-vti"}, "digits-vit"),
        ({"task": "nowhere.py:Toy"}, "nowhere.py"),
        ({"arch": "depth=5,topology=dcaa"}, "dca"),
        ({"storage": "nonsense"}, "sqlite"),
        ({"settings": "lr=1"}, "penalty"),
        ({"settings": "penalty=much"}, "penalty must be"),
        ({"settings": {"penalty": -1}}, "at least 0"),
        ({"settings": "penalty"}, "FIELD=VALUE"),
        ({"settings": "penalty=1,penalty=2"}, "twice"),
        ({"axis": "recipe.penaltee=1,2"}, "penalty"),
        ({"axis": "dept=1,2"}, "dept"),
    ],
)
def test_an_error_is_said_before_anything_is_trained(search: Search, change: dict[str, object], says: str) -> None:
    with pytest.raises(UserError, match=says):
        search(**change)


@pytest.mark.parametrize(
    "change", [{"trials": 0}, {"workers": -1}, {"seed": -1}, {"threads": 0}, {"keep": "frnot"}, {"trials": 1.5}]
)
def test_python_is_refused_what_the_command_line_is(search: Search, change: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=next(iter(change))):
        search(**change)


@pytest.mark.parametrize("name", ["all", "a,b", " a", ""])
def test_a_name_that_no_study_can_have_is_said(search: Search, asked: dict[str, Any], name: str) -> None:
    if name:
        with pytest.raises(UserError, match="a study's name"):
            search(study=name)
    search(trials=1)
    with pytest.raises(UserError, match="is a search"):
        nas.evaluate(asked["task"], preset="smoke", study="s", storage=asked["storage"])


def test_a_study_is_continued_only_with_its_own_settings(search: Search, asked: dict[str, Any]) -> None:
    search(trials=2)
    with pytest.raises(UserError, match=r"budget.*params<=3000.*--study"):
        search(budget="params<=4k")
    assert len(rows(asked)) == 2


def test_a_setting_changes_the_recipe_of_every_trial(search: Search) -> None:
    plain, hard = search(trials=3), search(trials=3, settings="penalty=0.02", study="hard")
    assert [row.recipe["penalty"] for row in hard.rows()] == [0.02] * 3
    for one, other in zip(plain.rows(), hard.rows(), strict=True):
        assert other.metrics["accuracy"] == pytest.approx(
            one.metrics["accuracy"] - 0.01 * len(one.architecture.topology)
        )
        assert one.identity() != other.identity()


def test_a_setting_that_is_searched_is_not_set_as_well(search: Search) -> None:
    with pytest.raises(UserError, match="Leave one of them out"):
        search(settings="penalty=0.1", axis="recipe.penalty=0,0.1")


def test_an_axis_of_a_recipe_takes_what_its_field_takes() -> None:
    axes = ("recipe.betas=0.9:0.95,0.9:0.99", "recipe.precision=32-true,bf16-mixed", "recipe.batch=16,1.6e1")
    task: Any = fresh_task("digits-vit", None)
    with pytest.raises(UserError, match=r"value 1\.6e1 stands twice"):
        space_of(task, "depth-heads", "", "smoke", axes)
    space = space_of(task, "depth-heads", "", "smoke", (*axes[:2], "recipe.batch=1.6e1,3.2e1"))
    recipes = [recipe_of(task, "smoke", candidate.settings) for candidate in space]
    assert {recipe.betas for recipe in recipes} == {(0.9, 0.95), (0.9, 0.99)}
    assert {recipe.precision for recipe in recipes} == {"32-true", "bf16-mixed"}
    assert {repr(recipe.batch) for recipe in recipes} == {"16", "32"}
    with pytest.raises(UserError, match="betas must be 2 values"):
        space_of(task, "depth-heads", "", "smoke", ("recipe.betas=0.9:0.95:1",))


def test_optimisers_with_their_options_are_an_axis() -> None:
    task: Any = fresh_task("digits-vit", None)
    space = space_of(task, "depth-heads", "", "smoke", ("recipe.optimizer=adamw,galore(rank=8, gap=50),muon",))
    recipes = [recipe_of(task, "smoke", candidate.settings) for candidate in space]
    assert {recipe.optimizer for recipe in recipes} == {"adamw", "galore(gap=50,rank=8)", "muon"}
    with pytest.raises(UserError, match=r"each value once, got muon and muon\(momentum=0.95\)\. Leave one out"):
        space_of(task, "depth-heads", "", "smoke", ("recipe.optimizer=muon,adamw,muon(momentum=0.95)",))
    with pytest.raises(UserError, match="rank must be at least 1, got 0"):
        space_of(task, "depth-heads", "", "smoke", ("recipe.optimizer=adamw,galore(rank=0)",))


@pytest.mark.parametrize("asked", ["svformer", "resnet/svformer", "svformer/resnet", "resnet[:1]+svformer[1:]"])
def test_who_asks_for_a_wiring_that_a_network_cannot_have_is_told_which_can(asked: str) -> None:
    task = load_task("goal-point-maze")
    with pytest.raises(UserError, match=r"needs? attention") as refused:
        architecture_of(task, "proxy", "", asked)
    can = str(refused.value).partition(" for example ")[2].rstrip(".").split(", ")
    assert {"resnet", "dca", "mhc"} <= set(can)
    assert not {"svformer", "value-residual", "depth-lstm", "rmt"} & set(can)
    for topology in can:
        architecture_of(task, "proxy", "", topology)


def test_other_wirings_are_no_remedy_where_another_option_is() -> None:
    with pytest.raises(UserError, match=r"got parts=3 and width=64\. Take parts=2\.$"):
        architecture_of(load_task("goal-point-maze"), "proxy", "", "frac(parts=3)")
