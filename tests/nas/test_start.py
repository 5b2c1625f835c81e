"""`nas evaluate --start`: a training begins with the weights of another."""

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import nas
from nas.cli import main
from search_spaces.checkpoint import RECORD, fingerprint, read_record, read_weights
from search_spaces.errors import UserError
from tasks.language.masked_tasks import StdlibMLM

STDLIB = StdlibMLM()
NETWORK = "depth=2,width=16,heads=2,head_dim=8,hidden=16"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def network_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A task's network, which is trained once."""
    folder = tmp_path_factory.mktemp("networks")

    @cache
    def trained(task: str) -> Path:
        nas.evaluate(task, arch=NETWORK, preset="smoke", save=folder / task, storage=f"sqlite:///{folder}/s.db")
        return folder / task

    return trained


@pytest.fixture
def first(network_of: Callable[[str], Path]) -> None:
    """A network of images, in the folder that is called so."""
    shutil.copytree(network_of("digits-vit"), "first")


@pytest.fixture
def first_of_text(network_of: Callable[[str], Path]) -> None:
    """A network of text, in the folder that is called so."""
    shutil.copytree(network_of("stdlib-mlm"), "first")


def test_a_training_begins_where_another_ended_with_its_architecture() -> None:
    before = nas.evaluate("digits-vit", arch=NETWORK, preset="smoke", settings="epochs=1", save="first")
    after = nas.evaluate("digits-vit", preset="smoke", settings="epochs=1", seed=3, start="first", save="second")
    assert after.status == "complete"
    assert after.architecture == before.architecture
    assert after.start == fingerprint(read_weights(Path("first")))
    assert after.curve[0]["step"] == 0
    assert after.curve[0]["metrics"]["loss"] == pytest.approx(before.metrics["loss"], abs=1e-6)
    assert read_record(Path("second")).step == before.steps + after.steps
    drawn = nas.evaluate("digits-vit", arch=NETWORK, preset="smoke", settings="epochs=1", seed=3)
    assert drawn.identity() != after.identity()
    assert drawn.metrics != after.metrics
    again = nas.evaluate("digits-vit", preset="smoke", settings="epochs=1", seed=3, start=Path("first").resolve())
    assert again.provenance["started"] == after.provenance["started"]  # the store knew it


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["digits-vit", "--start", "first", "--arch", "depth=3"],
            "has its own and takes no --arch",
        ),
        (["digits-vit", "--start", "first", "--topology", "dca"], "takes no --topology, got 'dca'"),
        (["digits-vit", "--start", "first", "--save", "./first"], "--save must be another folder than --start"),
        (["stdlib-lm", "--start", "first"], "first is of task 'digits-vit' version"),
        (["stdlib-glue", "--start", "first", "--set", "pretraining=smoke"], "takes no --set pretraining, got 'smoke'"),
        (["digits-vit", "--start", "nowhere"], "nowhere has no architecture.json"),
        (["digits-vit", "--start", "first", "--preset", "smok"], "Did you mean 'smoke'?"),
    ],
)
@pytest.mark.usefixtures("first")
def test_what_cannot_be_begun_with_is_one_line(
    words: list[str], says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", ["nas", "evaluate", *words])
    with pytest.raises(SystemExit) as end:
        main()
    err = capsys.readouterr().err
    assert end.value.code == 2
    assert says in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.usefixtures("first")
def test_a_network_of_another_version_is_refused() -> None:
    record = read_record(Path("first"))
    changed = json.loads(replace(record, task_version=record.task_version + 1).to_json())
    Path("first", RECORD).write_text(json.dumps(changed))
    with pytest.raises(UserError, match="Take one of these, or train again"):
        nas.evaluate("digits-vit", preset="smoke", start="first")


def test_a_network_of_masked_text_is_fine_tuned_and_kept_as_it_was() -> None:
    before = nas.evaluate("stdlib-mlm", arch=NETWORK, preset="smoke", save="first")
    after = nas.evaluate("stdlib-glue", preset="smoke", start="first", save="second")
    assert after.architecture == before.architecture
    assert after.steps == 4
    assert fingerprint(read_weights(Path("second"))) == fingerprint(read_weights(Path("first"))) == after.start
    with pytest.raises(UserError, match="this takes 'stdlib-mlm' version 1"):
        nas.evaluate("stdlib-mlm", preset="smoke", start="second")


@pytest.mark.usefixtures("first_of_text")
def test_a_network_of_another_tokenizer_is_refused() -> None:
    record = read_record(Path("first"))
    assert record.settings["encoding"] == STDLIB.encoding()
    other = {**record.settings, "encoding": "another"}
    Path("first", RECORD).write_text(replace(record, settings=other).to_json())
    for task in ("stdlib-mlm", "stdlib-glue"):
        with pytest.raises(UserError, match="another tokenizer than that of this text"):
            nas.evaluate(task, preset="smoke", start="first")
