"""`nas check-mup`: what steps move at several widths, what it draws, and what it refuses."""

import sys
from pathlib import Path

import pytest
import torch

import nas
from nas.cli import main
from nas.coordinates import STEPS, checked
from nas.jobs import recipe_of
from tasks.digits import DigitsViT
from tasks.parametrization import at_width
from tasks.run import Run
from tasks.training import apart

TASK = DigitsViT()


def test_what_moves_is_what_five_steps_change_of_the_outputs() -> None:
    recipe = recipe_of(TASK, "smoke", ())
    found = checked(TASK, TASK.base, recipe, (16, 32), 1)
    record = next(one for one in found.records if (one["parametrization"], one["part"]) == ("standard", "outputs"))
    steady = recipe_of(TASK, "smoke", (("warmup", 0.0), ("floor", 1.0), ("schedule", "linear")))
    run = Run(architecture=at_width(TASK.base, 32), recipe=steady, seed=0)
    with apart(run):
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
    parts = [one["part"] for one in found.records if one["parametrization"] == "mup(base=16)"]
    assert parts == ["stack.layers.0", "stack.layers.3", "stack.layers.7", "outputs"]


def test_of_the_base_both_move_alike_and_with_width_mup_moves_no_farther() -> None:
    found = nas.check_mup("digits-vit", preset="smoke", widths=[16, 64, 256], settings="lr=1e-3", seeds=2)
    of = {(one["parametrization"], one["part"]): one for one in found.records}
    for part in ("stack.layers.3", "stack.layers.7", "outputs"):
        standard, mup = of["standard", part], of["mup(base=16)", part]
        assert mup["moved_16"] == pytest.approx(standard["moved_16"], rel=0.05)
        assert abs(mup["slope"]) < 0.2, part
        assert standard["slope"] > mup["slope"] + 0.3, part
    assert len(found.to_pandas()) == len(found.records) == 8


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["nas", "check-mup", *words])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def test_it_is_printed_and_drawn(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    picture = tmp_path / "mup.svg"
    words = ("digits-vit", "--preset", "smoke", "--widths", "16,32", "--seeds", "1", "--topology", "value-residual")
    assert run(monkeypatch, *words, "--plot", str(picture)) == 0
    out = capsys.readouterr().out
    assert "digits-vit: how far 5 steps at 0.01 move what each part makes, value-residual" in " ".join(out.split())
    assert all(f"<!-- {text} -->" in picture.read_text(encoding="utf-8") for text in ("mup(base=16)", "standard"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["digits-vit", "--widths", "64"], "two or more in increasing order, got 64."),
        (["digits-vit", "--widths", "64,32"], "two or more in increasing order, got 64,32."),
        (["digits-vit", "--widths", "64,x"], "whole numbers like 64,128,256, got 'x'."),
        (["digits-vit", "--seeds", "0"], "needs a seed"),
        (["goal-point-maze"], "'goal-point-maze' is none"),
        (["digits-vit", "--set", "optimizer=muon"], "is for adamw and adam, got optimizer=muon"),
        (["digits-vit", "--topology", "resnett"], "Did you mean 'resnet'?"),
    ],
)
def test_a_mistake_is_one_line(
    words: list[str], says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(DigitsViT, "training", lambda *_: pytest.fail("it is said before anything is trained"))
    assert run(monkeypatch, *words) == 2
    assert says in capsys.readouterr().err.splitlines()[-1]
