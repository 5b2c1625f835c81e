"""`nas evaluate --start`: a training begins with the weights of another network."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import nas
from command_line import Command
from expect import raises
from grouped import grouped
from results.records.row import Row
from search_spaces.architecture.checkpoint import RECORD, fingerprint, read_record, read_weights
from search_spaces.support.errors import Kind
from tasks.language.masked_tasks import StdlibMLM

STDLIB = StdlibMLM()
NETWORK = "depth=2,width=16,heads=2,head_dim=8,hidden=16"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


SHORT = {"digits-vit": "epochs=0,steps=5", "stdlib-mlm": "steps=2,measured=8,reports=1"}


@pytest.fixture(scope="module")
def network_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Path, Row]]:
    """A task's network and its row after a short training, once per task."""
    folder = tmp_path_factory.mktemp("networks")

    @cache
    def train(task: str) -> tuple[Path, Row]:
        arguments = {"arch": NETWORK, "preset": "smoke", "settings": SHORT[task]}
        return folder / task, nas.evaluate(task, **arguments, save=folder / task, storage=f"sqlite:///{folder}/s.db")  # type: ignore[arg-type]

    return train


@pytest.fixture
def images(network_of: Callable[[str], tuple[Path, Row]]) -> Row:
    """The row of an image network, which is in the folder `first`."""
    shutil.copytree(network_of("digits-vit")[0], "first")
    return network_of("digits-vit")[1]


@pytest.fixture
def text(network_of: Callable[[str], tuple[Path, Row]]) -> Row:
    """The row of a text network, which is in the folder `first`."""
    shutil.copytree(network_of("stdlib-mlm")[0], "first")
    return network_of("stdlib-mlm")[1]


def test_training_begins_with_the_weights_and_architecture_of_another(images: Row) -> None:
    arguments: dict[str, Any] = {"preset": "smoke", "settings": SHORT["digits-vit"], "seed": 3}
    after = nas.evaluate("digits-vit", **arguments, start="first", save="second")
    assert after.status == "complete"
    assert after.architecture == images.architecture
    assert after.start == fingerprint(read_weights(Path("first")))
    assert after.curve[0]["step"] == 0
    assert after.curve[0]["metrics"]["loss"] == pytest.approx(images.metrics["loss"], abs=1e-6)
    assert read_record(Path("second")).step == images.steps + after.steps
    from_scratch = nas.evaluate("digits-vit", arch=NETWORK, **arguments)
    assert from_scratch.identity() != after.identity()
    assert from_scratch.metrics != after.metrics
    again = nas.evaluate("digits-vit", **arguments, start=Path("first").resolve())
    assert again.provenance["started"] == after.provenance["started"]  # the row is from the store


MISTAKES: list[tuple[dict[str, Any], Kind, dict[str, Any]]] = [
    ({"arch": "depth=3"}, "conflict", {"option": "--arch", "value": "depth=3", "excludes": "--start"}),
    ({"topology": "dca"}, "conflict", {"option": "--topology", "value": "dca", "excludes": "--start"}),
    ({"save": "./first"}, "conflict", {"option": "--save", "excludes": "--start"}),
    ({"task": "stdlib-lm"}, "mismatch", {"path": "first", "task": "digits-vit"}),
    (
        {"task": "stdlib-glue", "settings": "pretraining=smoke"},
        "conflict",
        {"option": "--set pretraining", "value": "smoke", "excludes": "--start"},
    ),
    ({"start": "nowhere"}, "missing-file", {"path": "nowhere/architecture.json"}),
    ({"preset": "smok"}, "unknown-name", {"option": "preset", "value": "smok", "nearest": "smoke"}),
]


@pytest.mark.usefixtures("images")
def test_impossible_starts_are_errors(command: Command) -> None:
    with grouped() as case:
        for change, kind, fields in MISTAKES:
            with case(str(change)), raises(kind, **fields):
                nas.evaluate(**{"task": "digits-vit", "start": "first", **change})
    command("evaluate", "digits-vit", "--start", "first", "--arch", "depth=3").assert_error("conflict", option="--arch")


def test_network_of_another_version_is_an_error(images: Row) -> None:
    record = read_record(Path("first"))
    newer = json.loads(replace(record, task_version=record.task_version + 1).to_json())
    Path("first", RECORD).write_text(json.dumps(newer))
    with raises("mismatch", path="first", task="digits-vit", version=images.task_version + 1):
        nas.evaluate("digits-vit", preset="smoke", start="first")


def test_fine_tuning_leaves_the_network_of_masked_text_as_it_was(text: Row) -> None:
    after = nas.evaluate(
        "stdlib-glue", preset="smoke", settings="sets=reference,measured=8", start="first", save="second"
    )
    assert after.architecture == text.architecture
    assert after.steps == 2
    assert fingerprint(read_weights(Path("second"))) == fingerprint(read_weights(Path("first"))) == after.start
    with raises("mismatch", path="second", task="stdlib-glue", choices=("stdlib-mlm",)):
        nas.evaluate("stdlib-mlm", preset="smoke", start="second")


@pytest.mark.usefixtures("text")
def test_network_of_another_tokenizer_is_an_error() -> None:
    record = read_record(Path("first"))
    assert record.settings["encoding"] == STDLIB.encoding()
    other = {**record.settings, "encoding": "another"}
    Path("first", RECORD).write_text(replace(record, settings=other).to_json())
    for task in ("stdlib-mlm", "stdlib-glue"):
        with raises("mismatch", option="tokenizer", path="first"):
            nas.evaluate(task, preset="smoke", start="first")
