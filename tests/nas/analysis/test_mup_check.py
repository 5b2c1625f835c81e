"""`nas check-mup`: how far steps move each part of a network at several widths, the picture, and errors."""

from pathlib import Path
from typing import Any

import pytest
import torch

import nas
from command_line import Command
from expect import raises
from grouped import grouped
from nas.analysis.mup_check import STEPS, check_coordinates
from nas.request.job import recipe_of
from search_spaces.support.errors import Kind
from tasks.recipes.parametrization import at_width
from tasks.run import Run
from tasks.training.loop import isolated_rng
from tasks.vision.digits import DigitsViT

TASK = DigitsViT()


def test_moves_of_the_outputs_after_five_steps() -> None:
    recipe = recipe_of(TASK, "smoke", ())
    check = check_coordinates(TASK, TASK.base, recipe, (16, 32), 1)
    record = next(
        record for record in check.records if (record["parametrization"], record["part"]) == ("standard", "outputs")
    )
    steady = recipe_of(TASK, "smoke", (("warmup", 0.0), ("floor", 1.0), ("schedule", "linear")))
    run = Run(architecture=at_width(TASK.base, 32), recipe=steady, seed=0)
    with isolated_rng(run):
        training = TASK.training(run, steady, TASK.splits)
        inputs = TASK.inputs(steady)
        with torch.no_grad():
            before = training.network.eval()(inputs)
        training.network.train()
        for _ in range(STEPS):
            training.advance()
        with torch.no_grad():
            after = training.network.eval()(inputs)
    assert record["moved_32"] == pytest.approx((after - before).square().mean().sqrt().item(), rel=1e-4)
    parts = [record["part"] for record in check.records if record["parametrization"] == "mup(base=16)"]
    assert parts == ["stack.layers.0", "stack.layers.3", "stack.layers.7", "outputs"]


def test_mup_moves_no_farther_with_width_and_equals_standard_at_the_base() -> None:
    check = nas.check_mup("digits-vit", preset="smoke", widths=[16, 128], settings="lr=1e-3,batch=32", seeds=2)
    by_part = {(record["parametrization"], record["part"]): record for record in check.records}
    for part in ("stack.layers.3", "stack.layers.7", "outputs"):
        standard, mup = by_part["standard", part], by_part["mup(base=16)", part]
        assert mup["moved_16"] == pytest.approx(standard["moved_16"], rel=0.05)
        assert abs(mup["slope"]) < 0.2, part
        assert standard["slope"] > mup["slope"] + 0.3, part
    assert len(check.to_pandas()) == len(check.records) == 8


def test_command_prints_a_table_and_draws_a_picture(command: Command) -> None:
    words = ("digits-vit", "--preset", "smoke", "--widths", "16,32", "--seeds", "1", "--topology", "value-residual")
    result = command("check-mup", *words, "--arch", "depth=1", "--plot", "mup.svg")
    assert result.returncode == 0
    title = " ".join(result.stdout.split())
    assert all(token in title for token in ("digits-vit", "5 steps at 0.01", "value-residual"))
    picture = Path("mup.svg").read_text(encoding="utf-8")
    assert all(f"<!-- {text} -->" in picture for text in ("mup(base=16)", "standard"))
    command("check-mup", "digits-vit", "--widths", "64").assert_error("out-of-range", option="--widths")


MISTAKES: list[tuple[dict[str, Any], Kind, dict[str, Any]]] = [
    ({"widths": "64"}, "out-of-range", {"option": "--widths", "value": (64,)}),
    ({"widths": "64,32"}, "out-of-range", {"option": "--widths", "value": (64, 32)}),
    ({"widths": "64,x"}, "bad-syntax", {"option": "--widths", "value": "x"}),
    ({"seeds": 0}, "out-of-range", {"option": "--seeds", "value": 0, "least": 1}),
    ({"task": "goal-point-maze"}, "unsupported", {"task": "goal-point-maze"}),
    ({"settings": "optimizer=muon"}, "conflict", {"option": "parametrization", "optimizer": "muon"}),
    ({"topology": "resnett"}, "unknown-name", {"option": "topology", "nearest": "resnet"}),
]


def test_mistakes_raise_user_errors_before_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DigitsViT, "training", lambda *_: pytest.fail("it was trained"))
    with grouped() as case:
        for arguments, kind, fields in MISTAKES:
            with case(str(arguments)), raises(kind, **fields):
                nas.check_mup(**{"task": "digits-vit", **arguments})
