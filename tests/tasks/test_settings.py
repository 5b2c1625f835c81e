"""Settings: read from text, checked by their types, shown as JSON."""

import json
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import pytest

from search_spaces.errors import UserError
from tasks.digits import DigitsRecipe, DigitsViT
from tasks.goal_rl.recipe import GoalRecipe, smoke
from tasks.language.stdlib_lm import StdlibLM
from tasks.load import task_class
from tasks.lra.lists import Grammar
from tasks.lra.presets import LISTOPS
from tasks.recipe import Recipe
from tasks.registry import TASKS
from tasks.settings import Between, Positive, changed, check, values_of

RECIPE = DigitsRecipe(epochs=10, batch=32, lr=0.01)


@dataclass(frozen=True)
class Odd:
    """Types that none of ours has."""

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
class Theirs:
    """A recipe that knows nothing of UserError."""

    rate: float = 0.5

    def __post_init__(self) -> None:
        if self.rate > 1:
            raise ValueError("a rate is\n at most 1.")


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
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
    ],
)
def test_a_setting_is_read_as_what_its_field_holds(name: str, text: object, value: object) -> None:
    found = getattr(changed(RECIPE, {name: text}), name)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("limit", "none", None), ("limit", "2", 2.0), ("limit", 2, 2.0), ("kinds", "a,b,a", ("a", "b", "a")),
        ("kinds", "()", ()), ("kinds", "(a,)", ("a",)), ("size", "2", 2), ("size", 2.0, 2), ("rate", "0.5", 0.5),
        ("rate", "None", None), ("pair", [1.0, 2.0], (1.0, 2.0)), ("pair", "1:2", (1.0, 2.0)), ("pair", None, None),
        ("anything", [3], [3]), ("anything", "3", "3"), ("numbers", "1,2", [1, 2]), ("numbers", (1, 2), [1, 2]),
        ("few", "3", 3), ("few", "none", None),
    ],
)  # fmt: skip
def test_other_types_are_read_as_well(name: str, given: object, value: object) -> None:
    found = getattr(changed(Odd(), {name: given}), name)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"numbers": "1,b"}, "numbers must be a whole number"),
        ({"numbers": 3}, "numbers must be values like"),
        ({"pair": [1.0]}, "pair must be 2 values like 0.9:0.95 or none"),
        ({"size": True}, "size must be one of 1, 2, got True"),
        ({"few": "4"}, "few must be at least 1 and at most 3, got '4'"),
        ({"shape": {"levels": 3, "arguments": 2, "argumnts": 9}}, "shape must be a Grammar, made in Python or none"),
    ],
)
def test_what_other_types_cannot_hold_is_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        changed(Odd(), settings)


def test_every_value_is_read_back_from_what_it_is_shown_as() -> None:
    odd = Odd(limit=1.0, kinds=("a",), pair=(1.0, 2.0), anything=3, numbers=[1])
    assert changed(Odd(), json.loads(json.dumps(values_of(odd)))) == odd
    check(odd)


def test_what_somebody_elses_recipe_refuses_is_a_mistake_in_one_line_that_names_the_preset() -> None:
    with pytest.raises(UserError, match=r"^preset 'smoke' cannot have rate=2: a rate is at most 1\.$"):
        changed(Theirs(), {"rate": "2"}, "preset 'smoke'")


def test_lists_that_cannot_be_are_no_settings() -> None:
    with pytest.raises(UserError, match="there are none"):
        changed(LISTOPS["smoke"], {"shorter_than": "20"})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch": "0"}, "batch must be at least 1, got '0'"),
        ({"batch": "2.5"}, "batch must be a whole number"),
        ({"batch": "many"}, "batch must be a whole number, got 'many'"),
        ({"batch": True}, "batch must be a whole number, got True"),
        ({"lr": "-1"}, "lr must be more than 0, got '-1'"),
        ({"lr": "nan"}, "lr must be a finite number"),
        ({"lr": "inf"}, "lr must be a finite number"),
        ({"warmup": "1.5"}, "warmup must be at least 0 and at most 1"),
        ({"schedule": "cosin"}, "schedule must be one of cosine, linear, inverse-sqrt, got 'cosin'"),
        ({"betas": "0.9"}, "betas must be 2 values like 0.9:0.95"),
        ({"betas": "0.9:1"}, "betas must be at least 0 and less than 1, got '0.9:1'"),
        ({"measured": "1e30"}, "measured must be a number of at most 64 bits"),
        ({"batch": 10**400}, "batch must be a number of at most 64 bits"),
        ({"lr": 10**400}, "lr must be a number of at most 64 bits"),
        ({"betas": (0.9, "x")}, "betas must be a finite number"),
        ({"compile": "yes"}, "compile must be true or false"),
        ({"learning_rate": "1"}, "unknown setting 'learning_rate' of preset 'smoke'"),
        ({"degres": "1"}, "Did you mean 'degrees'"),
        ({"steps": "5"}, "epochs=10, steps=5 and hours=0.0. Give one of them"),
        ({"accumulate": "5"}, "accumulate must divide the batch"),
    ],
)
def test_what_a_field_cannot_hold_is_refused_in_one_line(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UserError) as caught:
        changed(RECIPE, settings, "preset 'smoke'")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [{"lr": -1.0}, {"batch": 0}, {"schedule": "constant"}, {"betas": (0.9,)}, {"reports": 0}, {"precision": "16"}],
)
def test_a_recipe_that_is_made_in_python_is_checked_as_well(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="must be"):
        replace(RECIPE, **wrong)
    with pytest.raises(UserError, match="must be"):
        Recipe(**{"steps": 1, "batch": 8, "lr": 0.1, **wrong})


@pytest.mark.parametrize("wrong", [{"rounds": 0}, {"discount": 1.0}, {"lr": 0.0}, {"capacity": 3}, {"unroll": 1.5}])
def test_so_is_one_of_goals(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="must be"):
        GoalRecipe(**{"unroll": 5, "rounds": 1, "updates": 1, **wrong})
    with pytest.raises(UserError, match="must be"):
        changed(smoke(), {name: str(value) for name, value in wrong.items()})


def test_what_is_no_dataclass_has_no_settings() -> None:
    with pytest.raises(UserError, match="the settings of the toy cannot be changed"):
        changed("nothing to train", {"lr": "1"}, "the toy")


@pytest.mark.parametrize("name", TASKS.names())
def test_every_preset_is_what_its_values_make(name: str) -> None:
    for preset in task_class(name).presets.values():
        values = json.loads(json.dumps(values_of(preset)))
        assert changed(preset, values) == preset


def test_values_are_those_of_all_fields() -> None:
    values = values_of(LISTOPS["smoke"])
    assert [values[name] for name in ("longer_than", "shorter_than", "levels", "arguments")] == [19, 65, 4, 5]
    assert values["betas"] == [0.9, 0.999]
    assert values_of(DigitsViT.presets["smoke"])["epochs"] == 10


def test_a_note_moves_no_number_and_is_no_setting() -> None:
    preset = StdlibLM.presets["proxy"]
    assert preset.source
    assert "source" not in values_of(preset)
    with pytest.raises(UserError, match="unknown setting"):
        changed(preset, {"source": "somewhere"})
