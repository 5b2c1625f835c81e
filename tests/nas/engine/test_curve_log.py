"""Curves as TensorBoard files, read by TensorBoard's own reader."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import metadata

import nas
from expect import raises
from nas.engine.curve_log import CurveLog, curve_logs, run_name
from nas.store.store import Store
from nas.workers.resources import Resources
from results.records.row import Row
from toy_rows import a_row
from toy_searches import TOYS, a_search

CURVE: Any = [{"step": 5, "metrics": {"accuracy": 0.5, "accuracy_se": 0.1}, "seconds": 2.0}]


def training_row(**changes: Any) -> Row:
    fields: dict[str, Any] = {
        "steps": 10,
        "curve": CURVE,
        "metrics": {"accuracy": 0.75, "accuracy_se": 0.01},
        "test": {"accuracy": 0.625},
        "recipe": {"lr": 0.5, "betas": [0.9, 0.99], "name": "adam \ud800"},
        "provenance": {"started": "2026-11-20T10:00:00+00:00", "wall_s": 8.0},
    }
    return a_row(**{**fields, **changes})


def events_of(folder: Path) -> EventAccumulator:
    events = EventAccumulator(str(folder))
    events.Reload()
    return events


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    events = events_of(folder)
    return {tag: [(event.step, event.value) for event in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def test_metrics_are_logged_with_steps_and_times(tmp_path: Path) -> None:
    row = training_row()
    CurveLog(tmp_path, "a study").add(row)
    (folder,) = (tmp_path / "tensorboard").glob("a-study-*/*")
    assert folder.name == run_name(row)
    assert folder.name.startswith("resnet-1-")
    assert scalars(folder) == {"accuracy": [(5, 0.5), (10, 0.75)], "test_accuracy": [(10, 0.625)]}
    times = [event.wall_time for event in events_of(folder).Scalars("accuracy")]
    assert [time - 1_795_168_800 for time in times] == [2, 8]


def test_log_has_the_hyperparameters(tmp_path: Path) -> None:
    row = training_row()
    CurveLog(tmp_path, "s").add(row)
    (folder,) = (tmp_path / "tensorboard" / "s").iterdir()
    (content,) = events_of(folder).PluginTagToContent("hparams").values()
    hparams = metadata.parse_session_start_info_plugin_data(content).hparams
    assert (hparams["lr"].number_value, hparams["topology"].string_value) == (0.5, row.architecture.topology)
    assert {"depth", "seed", "name"} <= set(hparams)
    assert "betas" not in hparams


def test_a_resume_replaces_the_log_and_empty_curves_have_none(tmp_path: Path) -> None:
    log = CurveLog(tmp_path, "s")
    log.add(training_row(status="pruned", metrics={}, test={}))
    log.add(a_row(status="failed", error="so", metrics={}, seed=3))
    (folder,) = (tmp_path / "tensorboard" / "s").iterdir()
    assert scalars(folder) == {"accuracy": [(5, 0.5)]}
    log.add(training_row())
    assert len(list(folder.iterdir())) == 1
    assert scalars(folder)["accuracy"] == [(5, 0.5), (10, 0.75)]


def test_log_folders_are_distinct_and_inside_the_folder(tmp_path: Path) -> None:
    log = CurveLog(tmp_path, "../up")
    for seed in (0, 1):
        log.add(training_row(seed=seed))
    log.add(training_row(recipe={"lr": 1.0}))
    (study,) = (tmp_path / "tensorboard").iterdir()
    assert len(list(study.iterdir())) == 3


def test_an_unwritable_folder_is_reported_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "tensorboard").write_text("")
    log = CurveLog(tmp_path, "s")
    for seed in (0, 1):
        log.add(training_row(seed=seed))
    assert capsys.readouterr().err.count("Not a directory") == 1


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_search_logs_each_training_once_with_earlier_ones(tmp_path: Path, workers: int) -> None:
    early_stopping = {"rungs": nas.Rungs(2, 0.1), "seeds": 2, "space": "depth-heads"}
    arguments = a_search(tmp_path) | {"task": f"{TOYS}:Learning", **early_stopping}
    first = nas.search(**arguments)
    folder = tmp_path / "store" / "tensorboard"
    assert not folder.exists()
    study = nas.search(**{**arguments, "trials": 12, "resources": Resources(workers)}, log="tensorboard")
    with closing(Store(arguments["storage"])) as store:
        assert len(study) < len(store.rows_by_number("s"))  # some trials were paused and resumed
    assert len(first) < len(study)
    assert {row.seed for row in study.rows()} > {0}
    assert {path.name for path in folder.glob("s/*")} == {run_name(row) for row in study.rows()}
    for row in study.rows():
        assert scalars(folder / "s" / run_name(row))["accuracy"][-1][0] == row.steps


def test_a_point_without_a_step_is_left_out(tmp_path: Path) -> None:
    bad: Any = [{"step": "x", "metrics": {"accuracy": 0.1}}]
    CurveLog(tmp_path, "s").add(training_row(curve=bad))
    assert scalars(next((tmp_path / "tensorboard").glob("s/*")))["accuracy"] == [(10, 0.75)]


def test_a_training_of_another_study_enters_the_log(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/studies.db"
    for study in ("first", "second"):
        row = nas.evaluate(f"{TOYS}:Toy", preset="smoke", study=study, storage=storage, log="tensorboard")
    assert [path.name for path in (tmp_path / "tensorboard" / "second").iterdir()] == [run_name(row)]


def test_only_the_first_of_several_training_processes_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "a")
    monkeypatch.setenv("RANK", "1")
    assert not curve_logs("tensorboard", tmp_path, "s")
    monkeypatch.setenv("RANK", "0")
    assert curve_logs("tensorboard", tmp_path, "s")


def test_evaluations_and_comparisons_log_to_tensorboard_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    row = nas.evaluate(f"{TOYS}:Toy", preset="smoke", log="tensorboard")
    nas.compare(f"{TOYS}:Toy", preset="smoke", seeds=1, study="side by side", log="tensorboard")
    folder = tmp_path / "nas-runs" / "tensorboard"
    assert scalars(folder / "evaluations" / run_name(row))["accuracy"] == [(1, pytest.approx(row.metrics["accuracy"]))]
    assert len(list(folder.iterdir())) == 2
    with raises("unknown-name", option="--log", value="wandb", choices=("tensorboard",)):
        nas.evaluate(f"{TOYS}:Toy", preset="smoke", log="wandb")  # type: ignore[arg-type]
