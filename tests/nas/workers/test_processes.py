"""Processes end with their parent, and several can train one network together."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from expect import raises
from nas.evaluation.evaluate import evaluate, find_row
from nas.request.job import EvaluationJob, reload_task
from nas.store.locks import folder_lock
from nas.workers import distributed
from nas.workers.distributed import evaluate_distributed
from nas.workers.processes import end_with_parent, prepare_process
from results.records.row import Row
from toy_searches import TOYS


def smoke(folder: Path, task: str = f"{TOYS}:Toy") -> EvaluationJob:
    base = reload_task(task, None).base
    return EvaluationJob(task=task, architecture=base, preset="smoke", folder=str(folder))


def test_one_process_evaluates_in_this_one(tmp_path: Path) -> None:
    assert evaluate_distributed(smoke(tmp_path / "a"), 1).metrics == evaluate(smoke(tmp_path / "b")).metrics


def test_folder_is_locked_while_several_processes_train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def launch(config: Any, function: Any) -> Any:
        def call(job: EvaluationJob, parent: int) -> dict[int, Row]:
            with raises("in-use", path=job.folder), folder_lock(job.folder, waits=False):
                raise AssertionError("somebody else could have trained it at the same time")
            return {0: evaluate(job)}

        return call

    monkeypatch.setattr(distributed, "elastic_launch", launch)
    assert evaluate_distributed(smoke(tmp_path / "a"), 2).status == "complete"


@pytest.mark.slow
def test_two_processes_give_one_row_and_one_error(tmp_path: Path) -> None:
    job = smoke(tmp_path / "a", "digits-vit")
    row = evaluate_distributed(job, 2)
    assert row.status == "complete"
    assert row.metrics["accuracy"] > 0.5
    assert [file.name for file in (tmp_path / "a").iterdir()] == ["row.json"]
    assert find_row(job, job.folder) == row
    task = reload_task("imagenet-vit", str(tmp_path))
    lacking = EvaluationJob(task="imagenet-vit", architecture=task.base, preset="smoke", data=str(tmp_path))
    with raises("missing-data", path=str(tmp_path)):
        evaluate_distributed(lacking, 2)


@pytest.mark.slow
def test_death_of_one_of_two_ends_both_and_their_parent(tmp_path: Path) -> None:
    program = (
        "from nas.request.job import EvaluationJob, reload_task\n"
        "from nas.workers.distributed import evaluate_distributed\n"
        f"task = reload_task('{TOYS}:Deadly', None)\n"
        "from search_spaces.spaces.parsing import parse_architecture\n"
        "if __name__ == '__main__':\n"
        "    architecture = parse_architecture('depth=1,heads=1', task.base)\n"
        f"    job = EvaluationJob(task='{TOYS}:Deadly', architecture=architecture, preset='smoke')\n"
        "    evaluate_distributed(job, 2)\n    print('it lives')\n"
    )
    script = tmp_path / "script.py"
    script.write_text(program)
    result = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (1, "")
    assert "ImportError" not in result.stderr


@pytest.mark.parametrize(("level", "in_worker"), [("INFO", "WARNING"), ("DEBUG", "WARNING"), ("ERROR", "ERROR")])
def test_workers_write_warnings_only(level: str, in_worker: str) -> None:
    program = (
        "import logging, os\nfrom nas.workers.processes import prepare_process\nprepare_process(os.getppid())\n"
        "print(os.environ['NAS_LOG_LEVEL'], logging.getLevelName(logging.getLogger('nas').level))"
    )
    environment = {**os.environ, "NAS_LOG_LEVEL": level}
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True
    )
    assert result.stdout.split() == [in_worker, in_worker]


FORKS = """
import os, sys, time
from nas.workers.processes import prepare_process
prepare_process(os.getppid())
if not os.fork():
    if not os.fork():
        print("it lives", flush=True)
        time.sleep(600)
    time.sleep(600)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's word is Linux's")
def test_forks_and_their_forks_die_with_the_first_process() -> None:
    with subprocess.Popen([sys.executable, "-c", FORKS], stdin=PIPE, stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "it lives\n"
        process.kill()
        assert process.communicate(timeout=60)[0] == ""  # ends once no writer is left


def prepare_orphan() -> None:
    """Prepare this process as if its parent had died before."""
    os.getppid = lambda: 1
    prepare_process(2)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's word is Linux's")
def test_process_ends_if_its_parent_has_ended_before(
    status_of_fork: Callable[[Callable[[], object]], int | None],
) -> None:
    assert status_of_fork(lambda: end_with_parent(os.getppid())) == 0
    assert status_of_fork(lambda: (end_with_parent(os.getppid() + 1), os._exit(7))) == 1
    assert status_of_fork(lambda: (prepare_orphan(), os._exit(7))) == 1
