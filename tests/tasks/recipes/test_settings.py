"""Settings: parsed from text, checked by type, shown as JSON."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from expect import raises
from grouped import grouped
from search_spaces.support.errors import Kind
from tasks.goal_rl.recipe import GoalRecipe, smoke
from tasks.language.stdlib_lm import StdlibLM
from tasks.load import task_class
from tasks.lra.list_grammar import Grammar
from tasks.lra.lra_presets import LISTOPS
from tasks.recipes.recipe import Recipe
from tasks.recipes.settings import Between, Positive, check, override, plain_values
from tasks.registry import TASKS
from tasks.vision.digits import DigitsRecipe, DigitsViT

RECIPE = DigitsRecipe(epochs=10, batch=32, lr=0.01)


@dataclass(frozen=True)
class Odd:
    """Types that our recipes do not use."""

    limit: float | None = None
    kinds: tuple[Literal["a", "b"], ...] = ()
    size: Literal[1, 2] = 1
    rate: Positive | None = 1.0
    pair: tuple[float, float] | None = None
    anything: Any = None
    numbers: list[int] = field(default_factory=list)
    shape: Grammar | None = None
    few: Annotated[int | None, Between(1, 3)] = None


@dataclass(frozen=True)
class ForeignRecipe:
    """A recipe without UserErrors."""

    rate: float = 0.5

    def __post_init__(self) -> None:
        if self.rate > 1:
            raise ValueError("a rate is\n at most 1.")


def read(recipe: Any, readings: Sequence[tuple[str, object, object]]) -> None:
    """Assert the value and type of each parsed setting."""
    with grouped() as case:
        for name, text, value in readings:
            with case(f"{name}={text!r}"):
                parsed_value = getattr(override(recipe, {name: text}), name)
                assert (parsed_value, type(parsed_value)) == (value, type(value))


def test_settings_are_read_as_their_fields_types() -> None:
    readings: list[tuple[str, object, object]] = [
        ("lr", "1e-3", 1e-3),
        ("lr", "1", 1.0),
        ("lr", 1, 1.0),
        ("batch", "64", 64),
        ("batch", "1e2", 100),
        ("batch", 1e2, 100),
        ("compile", "true", True),
        ("compile", False, False),
        ("schedule", "linear", "linear"),
        ("betas", "0.8:0.9", (0.8, 0.9)),
        ("betas", "(0.8, 0.9)", (0.8, 0.9)),
        ("betas", [0.8, 0.9], (0.8, 0.9)),
        ("betas", "0:0.9", (0.0, 0.9)),
        ("degrees", "0", 0.0),
    ]
    read(RECIPE, readings)


def test_unions_literals_tuples_and_lists_are_read() -> None:
    readings: list[tuple[str, object, object]] = [
        ("limit", "none", None), ("limit", "2", 2.0), ("limit", 2, 2.0), ("kinds", "a,b,a", ("a", "b", "a")),
        ("kinds", "()", ()), ("kinds", "(a,)", ("a",)), ("size", "2", 2), ("size", 2.0, 2), ("rate", "0.5", 0.5),
        ("rate", "None", None), ("pair", [1.0, 2.0], (1.0, 2.0)), ("pair", "1:2", (1.0, 2.0)), ("pair", None, None),
        ("anything", [3], [3]), ("anything", "3", "3"), ("numbers", "1,2", [1, 2]), ("numbers", (1, 2), [1, 2]),
        ("few", "3", 3), ("few", "none", None),
    ]  # fmt: skip
    read(Odd(), readings)


def refuse(recipe: Any, refusals: Sequence[tuple[dict[str, object], Kind, dict[str, object]]], owner: str) -> None:
    """Assert that the recipe refuses each of these settings with this kind and fields."""
    with grouped() as case:
        for settings, kind, fields in refusals:
            with case(str(settings)), raises(kind, **fields):
                override(recipe, settings, owner)


def test_values_of_wrong_types_are_refused_in_unions_literals_and_lists() -> None:
    grammar = {"levels": 3, "arguments": 2, "argumnts": 9}
    refusals: list[tuple[dict[str, object], Kind, dict[str, object]]] = [
        ({"numbers": "1,b"}, "wrong-type", {"option": "numbers", "value": "1,b"}),
        ({"numbers": 3}, "wrong-type", {"option": "numbers", "value": 3}),
        ({"pair": [1.0]}, "wrong-type", {"option": "pair", "value": [1.0]}),
        ({"size": True}, "unknown-name", {"option": "size", "value": True, "choices": (1, 2)}),
        ({"few": "4"}, "out-of-range", {"option": "few", "value": "4"}),
        ({"shape": grammar}, "wrong-type", {"option": "shape", "value": grammar}),
    ]
    refuse(Odd(), refusals, "the recipe")


def test_values_are_read_back_from_their_json() -> None:
    odd = Odd(limit=1.0, kinds=("a",), pair=(1.0, 2.0), anything=3, numbers=[1])
    assert override(Odd(), json.loads(json.dumps(plain_values(odd)))) == odd
    check(odd)


def test_errors_of_foreign_recipes_name_the_preset_in_one_line() -> None:
    with raises("conflict", owner="preset 'smoke'", settings=("rate",), cause="ValueError") as caught:
        override(ForeignRecipe(), {"rate": "2"}, "preset 'smoke'")
    assert isinstance(caught.value.__cause__, ValueError)


def test_listops_refuses_lengths_that_no_list_has() -> None:
    with raises("infeasible") as caught:
        override(LISTOPS["smoke"], {"shorter_than": "20"})
    assert "20" in caught.value.fields["grammar"]


def test_refused_settings_have_kind_option_and_value() -> None:
    refusals: list[tuple[dict[str, object], Kind, dict[str, object]]] = [
        ({"batch": "0"}, "out-of-range", {"option": "batch", "value": "0"}),
        ({"batch": "2.5"}, "wrong-type", {"option": "batch", "value": "2.5"}),
        ({"batch": "many"}, "wrong-type", {"option": "batch", "value": "many"}),
        ({"batch": True}, "wrong-type", {"option": "batch", "value": True}),
        ({"lr": "-1"}, "out-of-range", {"option": "lr", "value": "-1"}),
        ({"lr": "nan"}, "out-of-range", {"option": "lr", "value": "nan"}),
        ({"lr": "inf"}, "out-of-range", {"option": "lr", "value": "inf"}),
        ({"warmup": "1.5"}, "out-of-range", {"option": "warmup", "value": "1.5"}),
        (
            {"schedule": "cosin"},
            "unknown-name",
            {"option": "schedule", "value": "cosin", "choices": ("cosine", "linear", "inverse-sqrt")},
        ),
        ({"betas": "0.9"}, "wrong-type", {"option": "betas", "value": "0.9"}),
        ({"betas": "0.9:1"}, "out-of-range", {"option": "betas", "value": "0.9:1"}),
        ({"measured": "1e30"}, "out-of-range", {"option": "measured", "value": "1e30"}),
        ({"batch": 10**400}, "out-of-range", {"option": "batch", "value": 10**400}),
        ({"lr": 10**400}, "out-of-range", {"option": "lr", "value": 10**400}),
        ({"betas": (0.9, "x")}, "wrong-type", {"option": "betas", "value": [0.9, "x"]}),
        ({"compile": "yes"}, "wrong-type", {"option": "compile", "value": "yes"}),
        ({"learning_rate": "1"}, "unknown-name", {"option": "setting", "value": "learning_rate"}),
        ({"degres": "1"}, "unknown-name", {"option": "setting", "value": "degres", "nearest": "degrees"}),
        ({"steps": "5"}, "conflict", {"epochs": 10, "steps": 5, "hours": 0.0}),
        ({"accumulate": "5"}, "mismatch", {"option": "accumulate", "value": 5, "batch": 32}),
    ]
    refuse(RECIPE, refusals, "preset 'smoke'")


def test_recipes_made_in_python_are_checked() -> None:
    wrong: list[tuple[str, Any, Kind]] = [
        ("lr", -1.0, "out-of-range"),
        ("batch", 0, "out-of-range"),
        ("schedule", "constant", "unknown-name"),
        ("betas", (0.9,), "wrong-type"),
        ("reports", 0, "out-of-range"),
        ("precision", "16", "unknown-name"),
    ]
    fields: dict[str, Any] = {"steps": 1, "batch": 8, "lr": 0.1}
    with grouped() as case:
        for name, value, kind in wrong:
            with case(name):
                with raises(kind, option=name):
                    replace(RECIPE, **{name: value})
                with raises(kind, option=name):
                    Recipe(**{**fields, name: value})


def test_recipes_of_goal_tasks_are_checked() -> None:
    fields: dict[str, Any] = {"unroll": 5, "rounds": 1, "updates": 1}
    wrong: list[tuple[str, Any, Kind]] = [
        ("rounds", 0, "out-of-range"),
        ("discount", 1.0, "out-of-range"),
        ("lr", 0.0, "out-of-range"),
        ("capacity", 3, "out-of-range"),
        ("unroll", 1.5, "wrong-type"),
    ]
    with grouped() as case:
        for name, value, kind in wrong:
            with case(name):
                with raises(kind, option=name):
                    GoalRecipe(**{**fields, name: value})
                with raises(kind, option=name):
                    override(smoke(), {name: str(value)})


def test_a_recipe_that_is_no_dataclass_has_no_settings() -> None:
    with raises("bad-plugin", option="recipe", value="nothing to train", owner="the toy"):
        override("nothing to train", {"lr": "1"}, "the toy")


def test_every_installed_preset_equals_its_values_read_back() -> None:
    with grouped() as case:
        for name in TASKS.names():
            for preset_name, preset in task_class(name).presets.items():
                with case(f"{name} {preset_name}"):
                    values = json.loads(json.dumps(plain_values(preset)))
                    assert override(preset, values) == preset


def test_values_include_all_fields() -> None:
    values = plain_values(LISTOPS["smoke"])
    assert [values[name] for name in ("longer_than", "shorter_than", "levels", "arguments")] == [19, 65, 4, 5]
    assert values["betas"] == [0.9, 0.999]
    assert plain_values(DigitsViT.presets["smoke"])["epochs"] == 10


def test_notes_are_no_settings() -> None:
    preset = StdlibLM.presets["proxy"]
    assert preset.source
    assert "source" not in plain_values(preset)
    with raises("unknown-name", option="setting", value="source"):
        override(preset, {"source": "somewhere"})
