"""`nas evaluate --render`: what the trained network does, in a file."""

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nas.cli import app
from nas.evaluation import evaluate
from nas.jobs import EvaluationJob
from search_spaces.errors import UserError
from toy_tasks import Toy

SHOWING = f"{Path(__file__).parent / 'toy_tasks.py'}:Showing"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> None:
    result = CliRunner().invoke(app, ["evaluate", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output


def test_the_trained_network_is_shown(tmp_path: Path) -> None:
    run(SHOWING, "--arch", "depth=3", "--render", str(tmp_path / "shown.txt"))
    assert (tmp_path / "shown.txt").read_text() == "3"


def test_what_cannot_be_rendered_is_said_before_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nas.workers.workers.evaluate", lambda job: pytest.fail("it was trained"))
    with pytest.raises(UserError, match=r"must end in \.txt"):
        run(SHOWING, "--render", str(tmp_path / "shown.gif"))


def test_a_task_that_renders_nothing_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="task 'toy' has nothing to render"):
        run(SHOWING.replace("Showing", "Toy"), "--render", str(tmp_path / "shown.txt"))


def test_a_picture_that_fails_takes_no_finished_training_with_it(tmp_path: Path) -> None:
    one = replace(Toy.base, depth=1)
    file = str(tmp_path / "shown.txt")
    with pytest.warns(UserWarning, match="no space left"):
        row = evaluate(EvaluationJob(task=SHOWING, architecture=one, preset="smoke", seed=0, render=file))
    assert row.status == "complete"
