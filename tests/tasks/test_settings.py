"""Settings: read from text, checked by their types, shown as JSON."""

import json
from dataclasses import dataclass, replace
from typing import Any, Literal

import pytest

from search_spaces.errors import UserError
from tasks.base import TASKS
from tasks.digits import DigitsRecipe, DigitsViT
from tasks.goal_rl.recipe import GoalRecipe, smoke
from tasks.language.stdlib_lm import StdlibLM
from tasks.load import task_class
from tasks.lra.presets import LISTOPS
from tasks.recipe import Recipe
from tasks.settings import Positive, changed, values_of

RECIPE = DigitsRecipe(epochs=10, batch=32, lr=0.01)


@dataclass(frozen=True)
class Odd:
    """Types that none of ours has."""

    limit: float | None = None
    kinds: tuple[Literal["a", "b"], ...] = ()
    size: Literal[1, 2] = 1
    rate: Positive | None = 1.0


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("lr", "1e-3", 1e-3),
        ("lr", "1", 1.0),
        ("lr", 1, 1.0),
        ("batch", "64", 64),
        ("batch", "1e2", 100),
        ("compile", "true", True),
        ("compile", False, False),
        ("schedule", "linear", "linear"),
        ("betas", "0.8:0.9", (0.8, 0.9)),
        ("betas", "(0.8, 0.9)", (0.8, 0.9)),
        ("betas", [0.8, 0.9], (0.8, 0.9)),
        ("degrees", "0", 0.0),
    ],
)
def test_a_setting_is_read_as_what_its_field_holds(name: str, text: object, value: object) -> None:
    found = getattr(changed(RECIPE, {name: text}), name)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("limit", "none", None), ("limit", "2", 2.0), ("kinds", "a,b,a", ("a", "b", "a")), ("size", "2", 2),
        ("rate", "0.5", 0.5), ("rate", "None", None),
    ],
)  # fmt: skip
def test_other_types_are_read_as_well(name: str, text: str, value: object) -> None:
    assert getattr(changed(Odd(), {name: text}), name) == value


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
        ({"betas": "0.9:1"}, "betas must be more than"),
        ({"betas": (0.9, "x")}, "betas must be a finite number"),
        ({"compile": "yes"}, "compile must be true or false"),
        ({"learning_rate": "1"}, "unknown setting of preset 'smoke' 'learning_rate'"),
        ({"degres": "1"}, "Did you mean 'degrees'"),
        ({"steps": "5"}, "epochs=10 and steps=5. Set one of them to 0"),
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
    assert values["grammar"] == {"longer_than": 19, "shorter_than": 65, "depth": 4, "arguments": 5}
    assert values["betas"] == [0.9, 0.999]
    assert values_of(DigitsViT.presets["smoke"])["epochs"] == 10


def test_a_note_moves_no_number_and_is_no_setting() -> None:
    preset = StdlibLM.presets["proxy"]
    assert preset.source
    assert "source" not in values_of(preset)
    with pytest.raises(UserError, match="unknown setting"):
        changed(preset, {"source": "somewhere"})
