"""`nas evaluate --save` and `nas retrofit`: a network is kept, rewired, and trained further."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torch import nn

import nas
from command_line import Command
from expect import raises
from grouped import grouped
from nas.evaluation.retrofit import origin_of, retrofit_job
from nas.request.job import EvaluationJob
from results.records.row import Row
from search_spaces.architecture.architecture import Architecture
from search_spaces.architecture.checkpoint import RECORD, WEIGHTS, read_record, read_weights, save_checkpoint
from search_spaces.support.errors import Kind
from tasks.recipes.recipe import Recipe
from tasks.vision.digits import DigitsViT

ARCH, SETTINGS = "depth=2,width=16,heads=2,head_dim=8,hidden=16", "epochs=0,steps=5,betas=0.9:0.95"


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Row]:
    """A residual network that was trained briefly, and its row, which is in the store beside it."""
    folder = tmp_path_factory.mktemp("trained") / "resnet"
    arguments = {"arch": ARCH, "preset": "smoke", "settings": SETTINGS, "storage": f"sqlite:///{folder.parent}/s.db"}
    return folder, nas.evaluate("digits-vit", **arguments, save=folder)  # type: ignore[arg-type]


@pytest.fixture
def trained(network: tuple[Path, Row]) -> Path:
    return network[0]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def evaluate(folder: Path, storage: Path, **changes: Any) -> Row:
    """The evaluation that the trained network is of, or another one, with its network kept in a folder."""
    arguments = {"arch": ARCH, "preset": "smoke", "settings": SETTINGS, "storage": f"sqlite:///{storage}/s.db"}
    return nas.evaluate("digits-vit", **{**arguments, **changes}, save=folder)


def test_saved_network_has_a_record(network: tuple[Path, Row]) -> None:
    folder, row = network
    assert {WEIGHTS, RECORD} <= {path.name for path in folder.iterdir()}
    record = read_record(folder)
    assert (record.task, record.architecture.depth, record.settings["preset"]) == ("digits-vit", 2, "smoke")
    assert record.step == row.steps


def test_repeated_command_does_not_train_again(network: tuple[Path, Row], command: Command) -> None:
    folder, row = network
    words = ("--arch", ARCH, "--preset", "smoke", "--set", SETTINGS, "--storage", f"sqlite:///{folder.parent}/s.db")
    done = command("evaluate", "digits-vit", *words, "--save", str(folder), "--format", "json")
    assert done.returncode == 0
    (record,) = json.loads(done.stdout)
    assert (record["wall_s"], record["steps"]) == (row.provenance["wall_s"], row.steps)


def test_checkpoint_runs_no_code_that_was_not_named(trained: Path, tmp_path: Path) -> None:
    folder, program = tmp_path / "theirs", tmp_path / "theirs.py"
    shutil.copytree(trained, folder)
    program.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    settings = {"preset": "smoke", "reference": f"{program}:DigitsViT", "seed": 0}
    record = replace(read_record(trained), task="theirs", settings=settings)
    save_checkpoint(folder, read_weights(trained), record)
    with raises("missing-value", option="--task", task="theirs", path=str(folder)):
        nas.retrofit(folder, "dca")
    assert not (tmp_path / "ran").exists()


def test_retrofitted_network_starts_where_the_residual_one_ended(
    network: tuple[Path, Row], tmp_path: Path, command: Command
) -> None:
    trained, before = network
    words = ("--topology", "dca(k=2)", "--save", str(tmp_path / "dca"), "--format", "json")
    done = command("retrofit", str(trained), *words)
    assert done.returncode == 0, done.stderr
    (after,) = json.loads(done.stdout)
    assert after["topology"] == "dca(k=2)"
    assert after["start"] is not None
    assert before.start is None
    assert read_record(tmp_path / "dca" / "start").step == before.steps
    assert read_record(tmp_path / "dca").step == 2 * before.steps
    (row,) = nas.load("evaluations").rows()
    first = row.curve[0]
    assert first["step"] == 0
    assert first["metrics"]["loss"] == pytest.approx(before.metrics["loss"], abs=1e-5)
    assert f"loss {first['metrics']['loss']:.4g}" in done.stderr
    assert str(tmp_path / "dca") in done.stderr.splitlines()[-1]


MISTAKES: list[tuple[dict[str, Any], Kind, dict[str, Any]]] = [
    ({"topology": "ancre"}, "unsupported", {"option": "topology", "value": "ancre"}),
    ({"topology": "dac"}, "unknown-name", {"option": "topology", "value": "dac", "nearest": "dca"}),
    ({"preset": "smok"}, "unknown-name", {"option": "preset", "value": "smok", "nearest": "smoke"}),
    ({"checkpoint": "nowhere"}, "missing-file", {"path": "nowhere/architecture.json"}),
    ({"checkpoint": __file__}, "missing-file", {"path": f"{__file__}/{RECORD}"}),
]


def test_impossible_retrofits_are_refused(trained: Path, command: Command) -> None:
    with grouped() as case:
        for change, kind, fields in MISTAKES:
            with case(str(change)), raises(kind, **fields):
                nas.retrofit(**{"checkpoint": trained, "topology": "dca", **change})
    done = command("retrofit", str(trained), "--topology", "dca", "--save", str(trained))
    done.assert_error("conflict", option="--save", excludes="CHECKPOINT", path=str(trained))


def test_folder_that_cannot_be_made_is_refused_before_training(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with raises("unwritable", option="--save", path=str(tmp_path / "file" / "folder")):
        nas.evaluate("digits-vit", preset="smoke", save=tmp_path / "file" / "folder")


def test_retrofit_begins_with_the_training_form_of_the_task(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recipe may change what a task builds, as landmarks of attention: so it is asked for the network."""
    built: list[str] = []

    def build_for_training(self: DigitsViT, architecture: Architecture, recipe: Recipe) -> nn.Module:
        built.append(architecture.topology)
        return self.build(architecture)

    monkeypatch.setattr(DigitsViT, "build_for_training", build_for_training)
    origin = origin_of(trained, None, None, None)
    job = EvaluationJob(
        task="digits-vit", architecture=DigitsViT.base, preset=origin.preset, save=str(tmp_path / "dca")
    )
    retrofit_job(origin, "dca(k=2)", job)
    assert built == ["dca(k=2)"]


def test_folder_with_another_network_is_not_overwritten(trained: Path, tmp_path: Path) -> None:
    folder = tmp_path / "resnet"
    shutil.copytree(trained, folder)
    before = read_record(folder)
    others: list[dict[str, Any]] = [{"topology": "grn-v1"}, {"seed": 1}, {"settings": f"{SETTINGS},lr=0.02"}]
    with grouped() as case:
        for other in others:
            with case(str(other)), raises("mismatch", option="--save", path=str(folder), task="digits-vit"):
                evaluate(folder, tmp_path, **other)
        with case("retrofit"), raises("mismatch", option="--save", path=str(folder), task="digits-vit"):
            nas.retrofit(trained, "grn-v1", save=folder)
    assert read_record(folder) == before
    assert not (folder / "start").exists()
    evaluate(folder, trained.parent)  # the same again is the same network


def test_network_retrofitted_from_other_weights_is_another(trained: Path, tmp_path: Path) -> None:
    other, grn = tmp_path / "other", tmp_path / "grn"
    save_checkpoint(other, {name: 2 * one for name, one in read_weights(trained).items()}, read_record(trained))
    first = nas.retrofit(trained, "grn-v1", save=grn)
    before = read_weights(grn / "start")
    with raises("mismatch", option="--save", path=str(grn)):
        nas.retrofit(other, "grn-v1", save=grn)
    assert read_weights(grn / "start").keys() == before.keys()
    assert all((read_weights(grn / "start")[name] == one).all() for name, one in before.items())
    again = nas.retrofit(trained, "grn-v1", save=grn)
    assert again.provenance["started"] == first.provenance["started"]  # the store knew it
    assert nas.retrofit(other, "grn-v1", save=tmp_path / "another").start != first.start
    (grn / RECORD).write_text("{")
    with raises("bad-file", option="--save", path=str(grn)):
        nas.retrofit(trained, "grn-v1", save=grn)


def test_network_that_cannot_be_kept_is_not_said_to_be_kept(trained: Path, tmp_path: Path, command: Command) -> None:
    (tmp_path / "grn" / WEIGHTS).mkdir(parents=True)
    done = command("retrofit", str(trained), "--topology", "grn-v1", "--save", str(tmp_path / "grn"))
    (line,) = [line for line in done.stderr.splitlines() if str(tmp_path / "grn") in line]
    assert line.startswith("nas: ")  # a notice


def test_refused_retrofit_leaves_no_folder(trained: Path) -> None:
    before = set(trained.parent.iterdir())
    refused: list[tuple[dict[str, Any], Kind, dict[str, Any]]] = [
        ({"topology": "none"}, "unsupported", {"option": "topology", "value": "none"}),
        ({"topology": "rmt"}, "unsupported", {"option": "topology", "value": "rmt"}),
        ({"topology": "mhc(streams=99)"}, "out-of-range", {"option": "streams", "value": 99}),
        ({"topology": "resnet[0:1]"}, "mismatch", {"option": "topology", "value": "resnet[0:1]"}),
        ({"study": "bad\nname"}, "bad-syntax", {"option": "--study", "value": "bad\nname"}),
        ({"storage": f"sqlite:///{trained}/{RECORD}/s.db"}, "unavailable", {"server": False}),
    ]
    with grouped() as case:
        for change, kind, fields in refused:
            with case(str(change)), raises(kind, **fields):
                nas.retrofit(**{"checkpoint": trained, "topology": "dca", **change})
    assert set(trained.parent.iterdir()) == before
