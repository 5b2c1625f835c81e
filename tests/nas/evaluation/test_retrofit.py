"""`nas evaluate --save` and `nas retrofit`: save a network, change its topology, train it further."""

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

pytestmark = pytest.mark.usefixtures("in_tmp_path")
ARCH, SETTINGS = "depth=2,width=16,heads=2,head_dim=8,hidden=16", "epochs=0,steps=5,betas=0.9:0.95"


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Row]:
    """A residual network after a short training, and its row, which is in the store beside it."""
    folder = tmp_path_factory.mktemp("trained") / "resnet"
    arguments = {"arch": ARCH, "preset": "smoke", "settings": SETTINGS, "storage": f"sqlite:///{folder.parent}/s.db"}
    return folder, nas.evaluate("digits-vit", **arguments, save=folder)  # type: ignore[arg-type]


@pytest.fixture
def checkpoint(network: tuple[Path, Row]) -> Path:
    return network[0]


def evaluate(folder: Path, storage: Path, **changes: Any) -> Row:
    """Run the network's evaluation, or a changed one, and save its network in a folder."""
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
    result = command("evaluate", "digits-vit", *words, "--save", str(folder), "--format", "json")
    assert result.returncode == 0
    (record,) = json.loads(result.stdout)
    assert (record["wall_s"], record["steps"]) == (row.provenance["wall_s"], row.steps)


def test_checkpoint_runs_no_code_without_a_request(checkpoint: Path, tmp_path: Path) -> None:
    folder, program = tmp_path / "theirs", tmp_path / "theirs.py"
    shutil.copytree(checkpoint, folder)
    program.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    settings = {"preset": "smoke", "reference": f"{program}:DigitsViT", "seed": 0}
    record = replace(read_record(checkpoint), task="theirs", settings=settings)
    save_checkpoint(folder, read_weights(checkpoint), record)
    for use in (
        lambda: nas.retrofit(folder, "dca"),
        lambda: nas.load_network(folder),
        lambda: nas.predict(folder, "x"),
    ):
        with raises("missing-value", option="--task", task="theirs", path=str(folder), reference=settings["reference"]):
            use()
    assert not (tmp_path / "ran").exists()


def test_a_checkpoint_proposes_no_missing_file_and_none_of_its_own_folder(checkpoint: Path, tmp_path: Path) -> None:
    folder, spaced = tmp_path / "theirs", tmp_path / "my tasks.py"
    folder.mkdir()
    for program in (folder / "task.py", spaced):
        program.touch()
    for program, proposed in ((folder / "task.py", False), (tmp_path / "missing.py", False), (spaced, True)):
        reference = f"{program}:Mine"
        record = replace(read_record(checkpoint), task="theirs", settings={"preset": "smoke", "reference": reference})
        save_checkpoint(folder, read_weights(checkpoint), record)
        expected = reference if proposed else None
        with raises("missing-value", option="--task", path=str(folder), reference=expected) as info:
            nas.load_network(folder)
        assert (f"--task '{reference}'" in str(info.value)) == proposed  # a command to copy


def test_checkpoint_of_a_topology_that_is_not_installed_is_named(checkpoint: Path, tmp_path: Path) -> None:
    record = read_record(checkpoint)
    architecture = replace(record.architecture, topology="theirs(k=2)")
    save_checkpoint(tmp_path / "theirs", read_weights(checkpoint), replace(record, architecture=architecture))
    with raises("unknown-name", option="topology", value="theirs"):
        nas.load_network(tmp_path / "theirs")


@pytest.mark.parametrize("name", ["network.pt2", "network.onnx", "weights.safetensors"])
def test_an_exported_file_is_no_folder_of_a_network(name: str, tmp_path: Path) -> None:
    with raises("unsupported", option="source", path=str(tmp_path / name)):
        nas.load_network(tmp_path / name)


def test_retrofit_starts_at_the_loss_of_the_residual_network(
    network: tuple[Path, Row], tmp_path: Path, command: Command
) -> None:
    checkpoint, before = network
    words = ("--topology", "dca(k=2)", "--save", str(tmp_path / "dca"), "--format", "json")
    result = command("retrofit", str(checkpoint), *words)
    assert result.returncode == 0, result.stderr
    (after,) = json.loads(result.stdout)
    assert after["topology"] == "dca(k=2)"
    assert after["start"] is not None
    assert before.start is None
    assert read_record(tmp_path / "dca" / "start").step == before.steps
    assert read_record(tmp_path / "dca").step == 2 * before.steps
    (row,) = nas.load("evaluations").rows()
    first = row.curve[0]
    assert first["step"] == 0
    assert first["metrics"]["loss"] == pytest.approx(before.metrics["loss"], abs=1e-5)
    assert f"loss {first['metrics']['loss']:.4g}" in result.stderr
    assert str(tmp_path / "dca") in result.stderr.splitlines()[-1]


MISTAKES: list[tuple[dict[str, Any], Kind, dict[str, Any]]] = [
    ({"topology": "ancre"}, "unsupported", {"option": "topology", "value": "ancre"}),
    ({"topology": "dac"}, "unknown-name", {"option": "topology", "value": "dac", "nearest": "dca"}),
    ({"preset": "smok"}, "unknown-name", {"option": "preset", "value": "smok", "nearest": "smoke"}),
    ({"checkpoint": "nowhere"}, "missing-file", {"path": "nowhere/architecture.json"}),
    ({"checkpoint": __file__}, "missing-file", {"path": f"{__file__}/{RECORD}"}),
]


def test_impossible_retrofits_are_errors(checkpoint: Path, command: Command) -> None:
    with grouped() as case:
        for change, kind, fields in MISTAKES:
            with case(str(change)), raises(kind, **fields):
                nas.retrofit(**{"checkpoint": checkpoint, "topology": "dca", **change})
    result = command("retrofit", str(checkpoint), "--topology", "dca", "--save", str(checkpoint))
    result.assert_error("conflict", option="--save", excludes="CHECKPOINT", path=str(checkpoint))


def test_impossible_folder_fails_before_training(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with raises("unwritable", option="--save", path=str(tmp_path / "file" / "folder")):
        nas.evaluate("digits-vit", preset="smoke", save=tmp_path / "file" / "folder")


def test_retrofit_begins_with_the_training_form_of_the_task(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recipe may change what a task builds, such as landmarks of attention."""
    topologies: list[str] = []

    def build_for_training(self: DigitsViT, architecture: Architecture, recipe: Recipe) -> nn.Module:
        topologies.append(architecture.topology)
        return self.build(architecture)

    monkeypatch.setattr(DigitsViT, "build_for_training", build_for_training)
    origin = origin_of(checkpoint, None, None, None)
    job = EvaluationJob(
        task="digits-vit", architecture=DigitsViT.base, preset=origin.preset, save=str(tmp_path / "dca")
    )
    retrofit_job(origin, "dca(k=2)", job)
    assert topologies == ["dca(k=2)"]


def test_folder_with_another_network_stays_as_it_is(checkpoint: Path, tmp_path: Path) -> None:
    folder = tmp_path / "resnet"
    shutil.copytree(checkpoint, folder)
    before = read_record(folder)
    changes: list[dict[str, Any]] = [{"topology": "grn-v1"}, {"seed": 1}, {"settings": f"{SETTINGS},lr=0.02"}]
    with grouped() as case:
        for change in changes:
            with case(str(change)), raises("mismatch", option="--save", path=str(folder), task="digits-vit"):
                evaluate(folder, tmp_path, **change)
        with case("retrofit"), raises("mismatch", option="--save", path=str(folder), task="digits-vit"):
            nas.retrofit(checkpoint, "grn-v1", save=folder)
    assert read_record(folder) == before
    assert not (folder / "start").exists()
    evaluate(folder, checkpoint.parent)  # the same network again


def test_other_weights_make_another_retrofit(checkpoint: Path, tmp_path: Path) -> None:
    other, grn = tmp_path / "other", tmp_path / "grn"
    save_checkpoint(
        other, {name: 2 * tensor for name, tensor in read_weights(checkpoint).items()}, read_record(checkpoint)
    )
    first = nas.retrofit(checkpoint, "grn-v1", save=grn)
    before = read_weights(grn / "start")
    with raises("mismatch", option="--save", path=str(grn)):
        nas.retrofit(other, "grn-v1", save=grn)
    assert read_weights(grn / "start").keys() == before.keys()
    assert all((read_weights(grn / "start")[name] == tensor).all() for name, tensor in before.items())
    again = nas.retrofit(checkpoint, "grn-v1", save=grn)
    assert again.provenance["started"] == first.provenance["started"]  # the row is from the store
    assert nas.retrofit(other, "grn-v1", save=tmp_path / "another").start != first.start
    (grn / RECORD).write_text("{")
    with raises("bad-file", option="--save", path=str(grn)):
        nas.retrofit(checkpoint, "grn-v1", save=grn)


def test_unwritable_network_gives_a_notice_alone(checkpoint: Path, tmp_path: Path, command: Command) -> None:
    (tmp_path / "grn" / WEIGHTS).mkdir(parents=True)
    result = command("retrofit", str(checkpoint), "--topology", "grn-v1", "--save", str(tmp_path / "grn"))
    (line,) = [line for line in result.stderr.splitlines() if str(tmp_path / "grn") in line]
    assert line.startswith("nas: ")  # a notice


def test_impossible_retrofit_leaves_no_folder(checkpoint: Path) -> None:
    before = set(checkpoint.parent.iterdir())
    mistakes: list[tuple[dict[str, Any], Kind, dict[str, Any]]] = [
        ({"topology": "none"}, "unsupported", {"option": "topology", "value": "none"}),
        ({"topology": "rmt"}, "unsupported", {"option": "topology", "value": "rmt"}),
        ({"topology": "mhc(streams=99)"}, "out-of-range", {"option": "streams", "value": 99}),
        ({"topology": "resnet[0:1]"}, "mismatch", {"option": "topology", "value": "resnet[0:1]"}),
        ({"study": "bad\nname"}, "bad-syntax", {"option": "--study", "value": "bad\nname"}),
        ({"storage": f"sqlite:///{checkpoint}/{RECORD}/s.db"}, "unavailable", {"server": False}),
    ]
    with grouped() as case:
        for change, kind, fields in mistakes:
            with case(str(change)), raises(kind, **fields):
                nas.retrofit(**{"checkpoint": checkpoint, "topology": "dca", **change})
    assert set(checkpoint.parent.iterdir()) == before
