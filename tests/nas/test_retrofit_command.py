"""`nas evaluate --save` and `nas retrofit`: a network is kept, rewired, and goes on learning."""

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from torch import nn

from nas import load
from nas.cli import main
from nas.jobs import EvaluationJob
from nas.retrofitting import origin_of, rewired
from search_spaces.architecture import Architecture
from search_spaces.checkpoint import RECORD, WEIGHTS, read_record, read_weights, save_checkpoint
from tasks.digits import DigitsViT
from tasks.recipe import Recipe

NETWORK = ("--arch", "depth=2,width=16,heads=2,head_dim=8,hidden=16", "--preset", "smoke", "--set", "epochs=2")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A residual network, trained briefly."""
    folder = tmp_path_factory.mktemp("trained") / "resnet"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder.parent)
        words = ["evaluate", "digits-vit", *NETWORK, "--save", str(folder)]
        patch.setattr(sys, "argv", ["nas", *words, "--format", "json", "--output", f"{folder}.json"])
        main_ends()
    return folder


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def main_ends() -> int:
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def nas(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["nas", *words])
    status = main_ends()
    return status, *capsys.readouterr()


def row(file: Path) -> dict[str, object]:
    (record,) = json.loads(file.read_text())
    assert isinstance(record, dict)
    return record


def test_a_saved_network_says_what_it_is(trained: Path) -> None:
    assert {WEIGHTS, RECORD} <= {path.name for path in trained.iterdir()}
    record = read_record(trained)
    assert (record.task, record.architecture.depth, record.settings["preset"]) == ("digits-vit", 2, "smoke")
    assert record.step == row(Path(f"{trained}.json"))["steps"]


def test_the_same_evaluation_is_not_done_again(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(trained.parent)
    words = ("evaluate", "digits-vit", *NETWORK, "--save", str(trained))
    status, out, _ = nas(monkeypatch, capsys, *words, "--format", "json")
    assert status == 0
    assert json.loads(out) == [row(Path(f"{trained}.json"))]  # wall time included


def test_a_checkpoint_runs_no_code_that_was_not_named(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, program = tmp_path / "theirs", tmp_path / "theirs.py"
    shutil.copytree(trained, folder)
    program.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    settings = {"preset": "smoke", "reference": f"{program}:DigitsViT", "seed": 0}
    record = replace(read_record(trained), task="theirs", settings=settings)
    save_checkpoint(folder, read_weights(trained), record)
    status, _, err = nas(monkeypatch, capsys, "retrofit", str(folder), "--topology", "dca")
    assert status == 2
    assert "--task" in err
    assert not (tmp_path / "ran").exists()


def test_a_retrofitted_network_starts_where_the_residual_one_ended_and_goes_on(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("retrofit", str(trained), "--topology", "dca(k=2)", "--save", str(tmp_path / "dca"), "--format", "json")
    status, out, err = nas(monkeypatch, capsys, *words)
    assert status == 0, err
    (after,), before = json.loads(out), row(Path(f"{trained}.json"))
    assert after["topology"] == "dca(k=2)"
    assert after["start"] is not None
    assert before["start"] is None
    assert read_record(tmp_path / "dca" / "start").step == before["steps"]
    assert read_record(tmp_path / "dca").step == 2 * before["steps"]  # type: ignore[operator]  # a number
    (kept,) = (one for one in load("evaluations").rows() if one.start is not None)
    first = kept.curve[0]
    assert first["step"] == 0
    assert first["metrics"]["loss"] == pytest.approx(before["loss"], abs=1e-5)
    assert f"loss {first['metrics']['loss']:.4g}" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["CHECKPOINT", "--topology", "ancre"], "does not start as the residual network"),
        (["CHECKPOINT", "--topology", "dac"], "dca"),
        (["CHECKPOINT", "--topology", "dca", "--preset", "smok"], "smoke"),
        (["CHECKPOINT", "--topology", "dca", "--save", "CHECKPOINT"], "another folder"),
        (["nowhere", "--topology", "dca"], "architecture.json"),
        ([__file__, "--topology", "dca"], "a checkpoint is a folder"),
    ],
)
def test_what_cannot_be_retrofitted_is_one_line(
    words: list[str],
    says: str,
    trained: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    status, _, err = nas(monkeypatch, capsys, "retrofit", *(str(trained) if w == "CHECKPOINT" else w for w in words))
    assert status == 2
    assert says in err
    assert len(err.strip().splitlines()) == 1
    assert err.startswith("nas: ")


def test_a_retrofit_of_other_weights_is_another(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--topology", "dca(k=1)", "--set", "epochs=1", "--format", "json", "--save")
    first = json.loads(nas(monkeypatch, capsys, "retrofit", str(trained), *words, str(tmp_path / "dca"))[1])
    other = tmp_path / "other"
    evaluated = ("evaluate", "digits-vit", *NETWORK, "--save", str(other))
    nas(monkeypatch, capsys, *evaluated, "--seed", "1")
    second = json.loads(nas(monkeypatch, capsys, "retrofit", str(other), *words, str(tmp_path / "again"))[1])
    assert first[0]["start"] != second[0]["start"]


def test_a_folder_that_cannot_be_made_is_said_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    words = ("evaluate", "digits-vit", "--preset", "smoke", "--save", str(tmp_path / "file" / "folder"))
    status, _, err = nas(monkeypatch, capsys, *words)
    assert status == 2
    assert "--save" in err


def test_the_network_to_start_from_is_the_one_that_was_trained(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recipe may change what a task builds, as landmarks of attention: so it is asked for the network."""
    built: list[str] = []

    def training_form(self: DigitsViT, architecture: Architecture, recipe: Recipe) -> nn.Module:
        built.append(architecture.topology)
        return self.build(architecture)

    monkeypatch.setattr(DigitsViT, "training_form", training_form)
    origin = origin_of(trained, None, None, None)
    job = EvaluationJob(
        task="digits-vit", architecture=DigitsViT.base, preset=origin.preset, save=str(tmp_path / "dca")
    )
    rewired(origin, "dca(k=2)", job)
    assert built == ["dca(k=2)"]


def test_a_folder_that_holds_another_network_is_not_written_over(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "resnet"
    shutil.copytree(trained, folder)
    before = read_record(folder)
    again = ("evaluate", "digits-vit", *NETWORK, "--save", str(folder))
    faster = [word.replace("epochs=2", "epochs=2,lr=0.02") for word in again]
    for words in (
        (*again, "--topology", "grn-v1"),
        (*again, "--seed", "1"),
        faster,
        ("retrofit", str(trained), "--topology", "grn-v1", "--save", str(folder)),
    ):
        status, _, err = nas(monkeypatch, capsys, *words)
        assert status == 2
        assert f"--save {folder} holds another network (digits-vit, " in err
    assert read_record(folder) == before
    assert not (folder / "start").exists()
    assert nas(monkeypatch, capsys, *again)[0] == 0  # the same again is the same network


def test_another_start_is_another_network(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    save_checkpoint(other, {name: 2 * one for name, one in read_weights(trained).items()}, read_record(trained))
    words = ("--topology", "grn-v1", "--save", str(tmp_path / "grn"))
    status, _, err = nas(monkeypatch, capsys, "retrofit", str(trained), *words)
    assert (status, err.splitlines()[-1]) == (0, f"kept in {tmp_path / 'grn'}")
    before = read_weights(tmp_path / "grn" / "start")
    status, _, err = nas(monkeypatch, capsys, "retrofit", str(other), *words)
    assert (status, "holds another network" in err) == (2, True)
    assert read_weights(tmp_path / "grn" / "start").keys() == before.keys()
    assert all((read_weights(tmp_path / "grn" / "start")[name] == one).all() for name, one in before.items())
    assert nas(monkeypatch, capsys, "retrofit", str(trained), *words)[0] == 0
    (tmp_path / "grn" / RECORD).write_text("{")
    status, _, err = nas(monkeypatch, capsys, "retrofit", str(trained), *words)
    assert (status, "holds a network that cannot be read. Give another folder" in err) == (2, True)


def test_the_same_command_with_a_setting_of_several_values_may_be_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("evaluate", "digits-vit", *NETWORK[:-1], "epochs=1,betas=0.9:0.95", "--save", str(tmp_path / "net"))
    assert [nas(monkeypatch, capsys, *words)[0] for _ in range(2)] == [0, 0]


def test_what_was_not_kept_is_not_said_to_be(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "grn" / WEIGHTS).mkdir(parents=True)
    words = ("retrofit", str(trained), "--topology", "grn-v1", "--save", str(tmp_path / "grn"))
    _, _, err = nas(monkeypatch, capsys, *words)
    assert "could not be kept in" in err
    assert "kept in" not in err.splitlines()[-1] or "could not" in err.splitlines()[-1]


def test_a_retrofit_that_is_refused_leaves_no_folder(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = set(trained.parent.iterdir())
    for topology in ("none", "rmt", "mhc(streams=99)", "resnet[0:1]"):
        assert nas(monkeypatch, capsys, "retrofit", str(trained), "--topology", topology)[0] == 2
    for words in (("--study", "bad\nname"), ("--storage", f"sqlite:///{trained}/{RECORD}/s.db")):
        assert nas(monkeypatch, capsys, "retrofit", str(trained), "--topology", "dca", *words)[0] == 2
    assert set(trained.parent.iterdir()) == before
