"""One evaluation: its Row, the reuse of known rows, early stops and resumes."""

import fcntl
import sys
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
from torch import nn

import nas
from expect import raises, warns
from nas.evaluation.evaluate import evaluate, job_lock
from nas.request.job import EvaluationJob, code_of, identity, reload_task, with_identity
from nas.store.store import Store
from results.records.row import Row
from search_spaces.architecture.checkpoint import read_record
from toy_searches import TOYS
from toy_tasks import Toy

JOB = EvaluationJob(task=f"{TOYS}:Toy", architecture=Toy.base, preset="smoke")


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Row]:
    monkeypatch.chdir(tmp_path)

    def run(kind: str = "Toy", **arguments: Any) -> Row:
        return nas.evaluate(f"{TOYS}:{kind}", **{"preset": "smoke", **arguments})

    return run


def test_a_row_has_results_and_provenance() -> None:
    row = evaluate(JOB)
    assert (row.task, row.task_version, row.status, row.steps, row.data) == ("toy", 1, "complete", 1, "70e5")
    assert row.architecture == Toy.base
    assert row.recipe == {"penalty": 0.01}
    assert row.directions == {"accuracy": "max", "loss": "min"}
    assert row.curve == ({"step": 1, "metrics": row.metrics},)
    assert row.test["accuracy"] == row.metrics["accuracy"] / 2
    assert {"python", "torch", "optuna"} <= set(row.provenance["versions"])  # type: ignore[arg-type]  # JSON
    assert {"commit", "command", "device", "threads", "started", "wall_s"} <= set(row.provenance)
    assert row.identity() == identity(JOB)


def test_the_network_is_freed_before_the_clean_up(monkeypatch: pytest.MonkeyPatch) -> None:
    networks, references = list[weakref.ref[nn.Module]](), list[nn.Module | None]()
    monkeypatch.setattr(
        "nas.evaluation.evaluate.save_network", lambda task, job, result: networks.append(weakref.ref(result.network))
    )
    monkeypatch.setattr("nas.evaluation.evaluate.clean_up", lambda row: references.append(networks[0]()))
    assert evaluate(replace(JOB, task=f"{TOYS}:Showing")).status == "complete"
    assert references == [None]


def test_steps_reported_as_tensors_become_integers(ask: Callable[..., Row]) -> None:
    row = ask("Tensors")
    assert row.curve == ({"step": 1, "metrics": row.metrics},)
    assert Row.from_json(row.to_json()) == row


def test_a_row_file_is_read_instead_of_training_again(tmp_path: Path) -> None:
    job = replace(JOB, folder=str(tmp_path / "kept"))
    assert evaluate(job) == evaluate(job)  # also wall_s: the second row is the first from its file


def test_a_row_file_of_another_evaluation_does_not_count(tmp_path: Path) -> None:
    job = replace(JOB, folder=str(tmp_path))
    evaluate(replace(job, seed=1))
    assert evaluate(job).seed == 0
    (tmp_path / "row.json").write_text('{"somebody": "else"}')
    assert evaluate(job).status == "complete"


def test_an_unknown_task_is_an_error_and_no_failed_row() -> None:
    with raises("unknown-name", value="NoSuchTask"):
        evaluate(replace(JOB, task=f"{TOYS}:NoSuchTask"))


def test_a_stored_evaluation_is_not_trained_again(ask: Callable[..., Row], monkeypatch: pytest.MonkeyPatch) -> None:
    first = ask()
    monkeypatch.setattr("nas.workers.pool.evaluate", lambda job: pytest.fail("it was evaluated"))
    assert ask() == first
    assert len(nas.load("evaluations")) == 1


def test_seed_settings_and_architecture_make_another_evaluation(ask: Callable[..., Row]) -> None:
    changes: list[dict[str, Any]] = [{}, {"seed": 1}, {"settings": "penalty=0.5"}, {"arch": "depth=2"}]
    assert len({ask(**change).identity() for change in changes}) == len(changes)
    assert len(nas.load("evaluations")) == len(changes)


def test_other_data_make_another_evaluation(ask: Callable[..., Row], tmp_path: Path) -> None:
    file = tmp_path / "numbers.txt"
    file.write_text("1 2 3")
    first = ask("FromFile", data=str(file))
    assert ask("FromFile", data=str(file)) == first
    file.write_text("4 5 6")
    second = ask("FromFile", data=str(file))
    assert second.data != first.data
    assert second.metrics != first.metrics


def test_a_failed_evaluation_runs_again(ask: Callable[..., Row]) -> None:
    assert ask("Stumbling", arch="depth=1").status == "failed"
    assert ask("Stumbling", arch="depth=1").status == "failed"
    assert len(nas.load("evaluations")) == 1  # only the newest row counts


def test_a_stopped_training_is_pruned_and_resumes(ask: Callable[..., Row]) -> None:
    short = ask("Stepping", max_steps=2)
    assert (short.status, short.steps, short.test) == ("pruned", 2, {})
    assert short.metrics == short.curve[-1]["metrics"]
    longer = ask("Stepping", max_steps=3)
    assert (longer.status, longer.steps) == ("pruned", 3)
    complete = ask("Stepping")
    assert (complete.status, complete.steps) == ("complete", 5)
    assert [point["step"] for point in complete.curve] == [1, 2, 3, 4]
    assert complete.extra_metrics["began_at"] == 3  # no step is repeated
    assert not list(Path("nas-runs/unfinished").glob("*"))
    assert nas.load("evaluations").rows() == [complete]


def test_a_task_that_ignores_the_stop_is_complete(ask: Callable[..., Row]) -> None:
    assert ask("Toy", max_steps=1).status == "pruned"
    assert ask("Heedless", max_steps=1).status == "complete"


def test_the_saved_network_is_rendered_and_copied_without_training(
    ask: Callable[..., Row], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    row = ask("Showing", arch="depth=3")
    monkeypatch.setattr("nas.evaluation.evaluate.Heartbeat", lambda *arguments: pytest.fail("it was trained"))
    repeat = ask("Showing", arch="depth=3", render=tmp_path / "shown.txt", save=tmp_path / "saved")
    assert (tmp_path / "shown.txt").read_text() == "3"
    assert read_record(tmp_path / "saved").architecture.depth == 3
    assert repeat == row


def test_mistakes_raise_user_errors_before_training(
    ask: Callable[..., Row], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("nas.evaluation.evaluate.Heartbeat", lambda *arguments: pytest.fail("it was trained"))
    folder = tmp_path / "shown.txt"
    folder.mkdir()
    with raises("unwritable", path=str(folder)):
        ask("Showing", arch="depth=3", render=folder)
    with raises("unsupported", option="--max-steps", task="stdlib-glue"):
        nas.evaluate("stdlib-glue", preset="smoke", max_steps=3)


def test_a_missing_network_is_trained_again(ask: Callable[..., Row], tmp_path: Path) -> None:
    import shutil

    row = ask("Showing", arch="depth=3")
    shutil.rmtree(tmp_path / "nas-runs" / "networks")
    network = tmp_path / "nas-runs" / "networks" / row.identity()
    with warns("missing-file", path=str(network)):
        repeat = ask("Showing", arch="depth=3", render=tmp_path / "shown.txt")
    assert repeat.metrics == row.metrics
    assert (tmp_path / "shown.txt").exists()


def test_provenance_has_the_number_of_threads(ask: Callable[..., Row]) -> None:
    assert ask(threads=2).provenance["threads"] == 2


def test_a_job_waits_for_the_evaluation_of_another_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(f"sqlite:///{tmp_path}/studies.db", make=True)
    job = replace(JOB, folder=str(tmp_path / "held"), store=store.url, identity=identity(JOB))
    first = evaluate(JOB)
    lock = Path(f"{job.folder}.lock").open("w")  # noqa: SIM115  # closed by the timer
    fcntl.flock(lock, fcntl.LOCK_EX)

    def finish() -> None:
        store.add(first, "theirs")
        Path(lock.name).unlink()
        lock.close()

    monkeypatch.setattr("nas.evaluation.evaluate.Heartbeat", lambda *arguments: pytest.fail("it was trained"))
    Timer(0.5, finish).start()
    with warns("in-use", path=job.folder), job_lock(job) as job_with_row:
        assert evaluate(job_with_row) == first
    assert not Path(f"{job.folder}.lock").exists()


def test_a_folder_that_cannot_be_locked_does_not_stop_the_training(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = str(tmp_path / "file" / "held")
    with warns("unwritable", path=folder), job_lock(replace(JOB, folder=folder)) as job:
        assert evaluate(job).status == "complete"


def test_another_version_of_a_task_file_makes_another_evaluation(
    ask: Callable[..., Row], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)  # bytecode knows a file by its second and its size
    copy = tmp_path / "copy.py"
    copy.write_text(TOYS.read_text())
    first = nas.evaluate(f"{copy}:Toy", preset="smoke")
    copy.write_text(TOYS.read_text().replace("1 - 1 / (1 + size)", "1 - 2 / (2 + size)"))
    second = nas.evaluate(f"{copy}:Toy", preset="smoke")
    assert first.metrics != second.metrics
    assert first.identity() != second.identity()


def test_a_task_in_a_file_must_not_have_the_name_of_an_installed_one(ask: Callable[..., Row], tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.py"
    theirs.write_text("from tasks.vision.digits import DigitsViT\n\n\nclass Mine(DigitsViT):\n    pass\n")
    with raises("exists", task="digits-vit"):
        nas.evaluate(f"{theirs}:Mine", preset="smoke")


def test_an_interrupt_while_rendering_keeps_the_finished_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = str(tmp_path / "interrupted.txt")
    job = replace(JOB, task=f"{TOYS}:Showing", folder=str(tmp_path / "kept"), render=picture)
    with pytest.raises(KeyboardInterrupt):
        evaluate(job)
    monkeypatch.setattr("nas.evaluation.evaluate.Heartbeat", lambda *arguments: pytest.fail("it was trained"))
    assert evaluate(replace(job, render=None)).status == "complete"


def test_processes_that_train_together_do_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nas.evaluation.evaluate.world_size", lambda: 2)
    job = replace(JOB, folder=str(tmp_path / "held"))
    with Path(f"{job.folder}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with raises("in-use", path=job.folder), job_lock(job):
            pytest.fail("it was held by two")


def test_a_file_edited_during_a_comparison_counts_as_read(ask: Callable[..., Row], tmp_path: Path) -> None:
    copy = tmp_path / "copy.py"
    text = TOYS.read_text()
    copy.write_text(text)
    before = code_of(f"{copy}:Toy")
    edits = f"        Path({str(copy)!r}).write_text({text + '# another'!r})\n        architecture, penalty ="
    copy.write_text(text.replace("        architecture, penalty =", edits))
    reload_task(f"{copy}:Toy", None)
    comparison = nas.compare(
        f"{copy}:Toy", arch=["depth=1", "depth=2"], preset="smoke", seeds=1, resources=nas.Resources(1)
    )
    assert len({row.provenance["code"] for row in comparison.rows()}) == 1
    assert comparison.rows()[0].provenance["code"] != before


def toy_with_neighbour(folder: Path, neighbour: str) -> str:
    """A reference to a copy of the toys whose score is in a module beside it, with a name of its own per folder."""
    name = f"neighbour_{folder.name}"
    text = TOYS.read_text().replace("import torch\n", f"import torch\nfrom {name} import score\n", 1)
    text = text.replace("        architecture, penalty =", "        score()\n        architecture, penalty =", 1)
    (folder / "with_neighbour.py").write_text(text)
    (folder / f"{name}.py").write_text(neighbour)
    return f"{folder}/with_neighbour.py:Toy"


BUG = "def score():\n    return 1 / 0\n"
"""A neighbour whose function fails."""


def test_a_failure_is_trained_again_after_the_fix_of_a_neighbour(in_tmp_path: None, tmp_path: Path) -> None:
    before = nas.evaluate(toy_with_neighbour(tmp_path, BUG), preset="smoke")
    assert (before.status, "ZeroDivisionError" in str(before.error)) == ("failed", True)
    after = nas.evaluate(toy_with_neighbour(tmp_path, BUG.replace("0", "2")), preset="smoke")
    assert after.status == "complete"
    assert after.identity() != before.identity()
    repeated = nas.evaluate(toy_with_neighbour(tmp_path, BUG.replace("0", "2")), preset="smoke")
    assert repeated.provenance["started"] == after.provenance["started"]


def test_a_failure_is_trained_again_by_the_same_code(
    in_tmp_path: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cause may be outside of the code, such as a missing package."""
    reference = toy_with_neighbour(tmp_path, "import os\ndef score():\n    os.environ['NOT_SET_YET']\n")
    assert nas.evaluate(reference, preset="smoke").status == "failed"
    monkeypatch.setenv("NOT_SET_YET", "1")
    assert nas.evaluate(reference, preset="smoke").status == "complete"


def test_a_report_without_a_metric_ends_the_training(in_tmp_path: None, tmp_path: Path) -> None:
    text = TOYS.read_text().replace("if run.report(1, scores) is STOP", "if run.report(1, {'loss': 1.0}) is STOP")
    (tmp_path / "forgets.py").write_text(text)
    row = nas.evaluate(f"{tmp_path}/forgets.py:Toy", preset="smoke")
    assert (row.status, row.steps) == ("failed", 0)
    assert "'accuracy'" in str(row.error)


def test_a_job_is_not_trained_on_data_that_differ_each_time(in_tmp_path: None, tmp_path: Path) -> None:
    text = TOYS.read_text().replace('return "70e5"', "return os.urandom(4).hex()")
    (tmp_path / "unseeded.py").write_text(text)
    job = with_identity(replace(JOB, task=f"{tmp_path}/unseeded.py:Toy"))
    reload_task(job.task, None)  # as in another process
    with raises("mismatch", option="task", value=job.task) as info:
        evaluate(job)
    assert "load()" in str(info.value)


def test_a_job_is_not_trained_by_edited_code(in_tmp_path: None, tmp_path: Path) -> None:
    reference = toy_with_neighbour(tmp_path, "def score():\n    pass\n")
    job = with_identity(replace(JOB, task=reference))
    evaluate(job)
    reload_task(toy_with_neighbour(tmp_path, "def score():\n    return 1\n"), None)
    with raises("mismatch", option="task", value=reference, expected=job.identity):
        evaluate(job)
