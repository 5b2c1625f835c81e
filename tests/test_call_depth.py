"""At most ten functions of ours are between a command and the optimizer's step."""

import sys
from pathlib import Path
from types import FrameType

import pytest
from torch import Tensor

from command_line import run_nas
from source_trees import ROOT
from tasks.recipes.recipe import Recipe
from tasks.training.classification import ClassificationTask

PACKAGES = tuple(str(ROOT / package) for package in ("nas", "tasks", "search_spaces", "results"))
COMMANDS = str(ROOT / "nas" / "cli" / "commands")


def between(frame: FrameType | None) -> list[str]:
    """Our functions on the stack between the innermost and a command."""
    functions = []
    while frame is not None and not frame.f_code.co_filename.startswith(COMMANDS):
        if frame.f_code.co_filename.startswith(PACKAGES):
            functions.append(frame.f_code.co_qualname)
        frame = frame.f_back
    assert frame is not None
    return functions


def test_at_most_ten_functions_are_between_a_command_and_a_loss(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stacks = list[list[str]]()
    loss = ClassificationTask.loss

    def trace(task: ClassificationTask, outputs: Tensor, targets: Tensor, recipe: Recipe) -> Tensor:
        stacks.append(between(sys._getframe(1)))
        return loss(task, outputs, targets, recipe)

    monkeypatch.setattr(ClassificationTask, "loss", trace)
    monkeypatch.chdir(tmp_path)
    words = ("--preset", "smoke", "--set", "epochs=0,steps=1", "--arch", "depth=1,width=8,hidden=8,heads=1,head_dim=8")
    for number, command in enumerate((("search", "--space", "topology", "--trials", "1"), ("evaluate", "--seed", "1"))):
        assert run_nas(capsys, "-q", *command, "digits-vit", *words).returncode == 0
        assert len(stacks) == number + 1
        assert len(stacks[number]) <= 10, stacks[number]
