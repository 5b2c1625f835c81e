"""Texts of optimizers: parsing, errors and canonical form."""

import subprocess
import sys
from dataclasses import replace
from typing import Any

from expect import raises
from grouped import grouped
from results.records.identity import identity_of
from search_spaces.architecture.architecture import Architecture
from search_spaces.support.errors import Kind
from tasks.recipes.optimizer_spec import CHOICES, SGD, AdamW, GaLore, Muon, canonical, read_choice
from tasks.recipes.recipe import Recipe
from tasks.recipes.settings import override, plain_values

RECIPE = Recipe(steps=4, batch=2, lr=0.1)


def test_an_optimizer_has_one_canonical_text() -> None:
    readings: list[tuple[str, object, str]] = [
        ("adamw", AdamW(), "adamw"),
        ("sgd(nesterov=true, momentum=0.9)", SGD(0.9, True), "sgd(momentum=0.9,nesterov=true)"),
        ("galore", GaLore(128, 200, 0.25), "galore"),
        ("galore(rank=128,gap=200)", GaLore(), "galore"),
        ("galore(scale=1,rank=4)", GaLore(rank=4, scale=1.0), "galore(rank=4,scale=1.0)"),
        ("muon(adjust=original,momentum=0.9)", Muon(0.9, "original"), "muon(adjust=original,momentum=0.9)"),
        ("muon(momentum=0.95)", Muon(), "muon"),
        *((name, choice, name) for name, choice in CHOICES.items()),
    ]
    with grouped() as case:
        for text, choice, expected in readings:
            with case(text):
                assert read_choice(text) == choice
                assert canonical(text) == canonical(expected) == expected
                assert read_choice(expected) == choice
                assert override(RECIPE, {"optimizer": text}) == replace(RECIPE, optimizer=expected)
                assert Recipe(steps=1, batch=1, lr=1.0, optimizer=text).optimizer == expected


def test_faulty_optimizer_texts_are_refused() -> None:
    refusals: list[tuple[str, Kind, dict[str, object]]] = [
        ("muo", "unknown-name", {"option": "optimizer", "value": "muo", "nearest": "muon"}),
        ("galore(ranks=2)", "unknown-name", {"option": "setting", "value": "ranks", "nearest": "rank"}),
        ("galore(rank=0)", "out-of-range", {"option": "rank", "value": 0, "least": 1}),
        ("galore(gap=2.5)", "wrong-type", {"option": "gap", "value": 2.5}),
        ("galore(scale=0)", "out-of-range", {"option": "scale", "value": 0, "above": 0}),
        ("sgd(momentum=1)", "out-of-range", {"option": "momentum", "value": 1, "least": 0, "below": 1}),
        ("sgd(nesterov=true)", "missing-value", {"option": "momentum", "value": 0.0, "needed_by": "nesterov"}),
        (
            "muon(adjust=mine)",
            "unknown-name",
            {"option": "adjust", "value": "mine", "choices": ("match_rms_adamw", "original")},
        ),
        ("adamw(momentum=0.9)", "unsupported", {"option": "optimizer", "value": "adamw(momentum=0.9)"}),
        ("galore(", "bad-syntax", {"value": "galore("}),
        ("", "bad-syntax", {"value": ""}),
    ]
    with grouped() as case:
        for text, kind, fields in refusals:
            with case(text), raises(kind, **fields):
                override(RECIPE, {"optimizer": text})


def test_settings_that_an_optimizer_cannot_use_are_refused() -> None:
    refusals: list[tuple[str, dict[str, object], dict[str, object]]] = [
        ("sgd", {"beta_cycle": (0.95, 0.85)}, {"option": "beta_cycle", "value": (0.95, 0.85), "optimizer": "sgd"}),
        ("galore", {"sharing": "fsdp"}, {"option": "optimizer", "value": "galore", "sharing": "fsdp"}),
        ("muon", {"sharing": "fsdp"}, {"option": "optimizer", "value": "muon", "sharing": "fsdp"}),
    ]
    with grouped() as case:
        for optimizer, settings, fields in refusals:
            with case(optimizer):
                override(RECIPE, settings)
                with raises("conflict", **fields):
                    override(RECIPE, {"optimizer": optimizer, **settings})


def test_each_optimizer_has_another_identity() -> None:
    def identity(recipe: dict[str, Any]) -> str:
        shape = Architecture(depth=1, width=8, hidden=8)
        return identity_of(task="a", task_version=1, data=None, architecture=shape, recipe=recipe, seed=0, start=None)

    assert len({identity(plain_values(RECIPE) | {"optimizer": name}) for name in CHOICES}) == len(CHOICES)


def test_a_recipe_is_read_without_torch() -> None:
    code = "import sys, tasks.recipes.recipe; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
