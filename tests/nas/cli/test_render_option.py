"""`nas evaluate --render` writes a picture of what the trained network does."""

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import nas
from expect import raises, warns
from nas.cli.main import app
from nas.evaluation.evaluate import evaluate
from nas.request.job import EvaluationJob
from toy_tasks import Toy

pytestmark = pytest.mark.usefixtures("in_tmp_path")
SHOWING = f"{Path(__file__).parents[1] / 'toy_tasks.py'}:Showing"


def test_option_renders_the_trained_network(tmp_path: Path) -> None:
    words = ["evaluate", SHOWING, "--arch", "depth=3", "--render", str(tmp_path / "shown.txt")]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "shown.txt").read_text() == "3"


def test_wrong_picture_fails_before_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nas.workers.pool.evaluate", lambda job: pytest.fail("it was trained"))
    with raises("unsupported", path=str(tmp_path / "shown.gif")):
        nas.evaluate(SHOWING, render=tmp_path / "shown.gif")
    with raises("unsupported", option="--render", task="toy"):
        nas.evaluate(SHOWING.replace("Showing", "Toy"), render=tmp_path / "shown.txt")


def test_failed_picture_keeps_the_finished_training(tmp_path: Path) -> None:
    architecture = replace(Toy.base, depth=1)
    file = str(tmp_path / "shown.txt")
    with warns("failed", option="--render"):
        row = evaluate(EvaluationJob(task=SHOWING, architecture=architecture, preset="smoke", seed=0, render=file))
    assert row.status == "complete"
