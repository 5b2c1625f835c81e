"""Optimisers by their names: what is read, what is refused, and one text for one optimiser."""

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from results.identity import identity_of
from search_spaces.architecture import Architecture
from search_spaces.errors import UserError
from tasks.optimizer_choice import CHOICES, SGD, AdamW, GaLore, Muon, canonical, read_choice
from tasks.recipe import Recipe
from tasks.settings import changed, values_of

RECIPE = Recipe(steps=4, batch=2, lr=0.1)


@pytest.mark.parametrize(
    ("text", "choice", "one"),
    [
        ("adamw", AdamW(), "adamw"),
        ("sgd(nesterov=true, momentum=0.9)", SGD(0.9, True), "sgd(momentum=0.9,nesterov=true)"),
        ("galore", GaLore(128, 200, 0.25), "galore"),
        ("galore(rank=128,gap=200)", GaLore(), "galore"),
        ("galore(scale=1,rank=4)", GaLore(rank=4, scale=1.0), "galore(rank=4,scale=1.0)"),
        ("muon(adjust=original,momentum=0.9)", Muon(0.9, "original"), "muon(adjust=original,momentum=0.9)"),
        ("muon(momentum=0.95)", Muon(), "muon"),
    ],
)
def test_an_optimiser_has_one_text(text: str, choice: object, one: str) -> None:
    assert read_choice(text) == choice
    assert canonical(text) == canonical(one) == one
    assert read_choice(one) == choice
    assert changed(RECIPE, {"optimizer": text}) == replace(RECIPE, optimizer=one)


@pytest.mark.parametrize("name", CHOICES)
def test_every_name_stands_for_itself(name: str) -> None:
    assert Recipe(steps=1, batch=1, lr=1.0, optimizer=name).optimizer == name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("muo", r"unknown optimizer 'muo'\. Did you mean 'muon'\?"),
        ("galore(ranks=2)", r"unknown setting 'ranks' of optimizer galore\. Did you mean 'rank'\?"),
        ("galore(rank=0)", "rank must be at least 1, got 0"),
        ("galore(gap=2.5)", "gap must be a whole number, got 2.5"),
        ("galore(scale=0)", "scale must be more than 0, got 0"),
        ("sgd(momentum=1)", "momentum must be at least 0 and less than 1, got 1"),
        ("sgd(nesterov=true)", r"must have a momentum, got 0\. Take sgd\(momentum=0.9,nesterov=true\)"),
        ("muon(adjust=mine)", "adjust must be one of match_rms_adamw, original, got 'mine'"),
        ("adamw(momentum=0.9)", "optimizer adamw has no options"),
        ("galore(", r"expected NAME or NAME\(option=value,...\), got 'galore\('"),
        ("", "expected NAME"),
    ],
)
def test_what_no_optimiser_is_is_refused_in_a_line(text: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as caught:
        changed(RECIPE, {"optimizer": text})
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("optimizer", "settings", "said"),
    [
        ("sgd", {"beta_cycle": (0.95, 0.85)}, "beta_cycle must be none for sgd, which has no betas"),
        ("galore", {"sharing": "fsdp"}, "optimizer galore must have whole matrices, got sharing=fsdp. Set sharing=ddp"),
        ("muon", {"sharing": "fsdp"}, "optimizer muon must have whole matrices"),
    ],
)
def test_what_an_optimiser_has_no_use_of_is_refused(optimizer: str, settings: dict[str, object], said: str) -> None:
    changed(RECIPE, settings)
    with pytest.raises(UserError, match=said):
        changed(RECIPE, {"optimizer": optimizer, **settings})


def test_evaluations_from_before_there_was_a_choice_are_those_of_adamw() -> None:
    def identity(recipe: dict[str, Any]) -> str:
        shape = Architecture(depth=1, width=8, hidden=8)
        return identity_of(task="a", task_version=1, data=None, architecture=shape, recipe=recipe, seed=0, start=None)

    now = values_of(RECIPE)
    assert now["optimizer"] == "adamw"
    before = {name: value for name, value in now.items() if name != "optimizer"}
    assert identity(now) == identity(before)
    assert len({identity(now | {"optimizer": name}) for name in CHOICES}) == len(CHOICES)


def test_a_recipe_is_read_without_torch() -> None:
    code = "import sys, tasks.recipe; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
