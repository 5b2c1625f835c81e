"""Real searches in separate processes, and what they log and store."""

import atexit
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Protocol

import nas
import own_process  # noqa: F401  # which says what a process has loaded that others are forked from
from results.records.row import Row
from waiting import PATIENCE_S

TASK = f"{Path(__file__).parent / 'stepwise_task.py'}:Stepwise"


class Process(Protocol):
    """A running search, with the interface of subprocess.Popen."""

    pid: int

    def send_signal(self, number: int, /) -> None:
        pass

    def wait(self, timeout: float | None = None) -> int:
        """Wait for a search; return its exit status and standard error."""


def start_process(words: list[str], log: Path, environment: dict[str, str]) -> Process:
    """Start `nas` in a new process; standard error goes to the log."""
    command = [sys.executable, "-m", "nas", *words]
    with log.open("w") as file:
        return subprocess.Popen(command, cwd=log.parent, env=environment, stdout=subprocess.DEVNULL, stderr=file)


@dataclass(frozen=True)
class Fork:
    """A search in a process forked from one that has already imported everything."""

    process: BaseProcess

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def send_signal(self, number: int, /) -> None:
        """Send a signal unless the process has ended."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status; minus the signal where one has ended it."""
        self.process.join(timeout)
        assert self.process.exitcode is not None, f"it did not end within {timeout} s"
        return self.process.exitcode


def fork_process(words: list[str], log: Path, environment: dict[str, str]) -> Process:
    """Fork `nas`, which starts faster than `start_process`."""
    process = multiprocessing.get_context("forkserver").Process(target=_search, args=(words, log, environment))
    process.start()
    return Fork(process)


def _search(words: list[str], log: Path, environment: dict[str, str]) -> None:
    for stream, file in ((2, log), (1, Path(os.devnull)), (0, Path(os.devnull))):
        os.dup2(os.open(file, os.O_RDWR | os.O_CREAT | os.O_TRUNC), stream)
    os.chdir(log.parent)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["nas", *words]
    multiprocessing.set_start_method(None, force=True)  # not the method that started this process
    from nas.cli.main import main

    try:
        main()
    finally:
        atexit._run_exitfuncs()  # which a forked process skips


@dataclass(frozen=True)
class Place:
    """A folder with a store, and the searches that run there.

    Attributes:
        folder: The working directory of every search.
        launch: The function that starts a search.
        processes: All started searches.
    """

    folder: Path
    launch: Callable[[list[str], Path, dict[str, str]], Process] = start_process
    processes: list[Process] = field(default_factory=list)

    @property
    def storage(self) -> str:
        return f"sqlite:///{self.folder}/store/studies.db"

    @property
    def log(self) -> list[list[str]]:
        """The trainings' log: a list of words per line."""
        file = self.folder / "log"
        return [line.split() for line in file.read_text().splitlines()] if file.exists() else []

    def starts(self) -> list[tuple[str, int]]:
        """Key and process of each training, in order of start or resume."""
        return [(words[1], int(words[2])) for words in self.log if words[0] == "began"]

    def steps(self) -> list[tuple[int, int]]:
        """Number and process of each step."""
        return [(int(words[1]), int(words[2])) for words in self.log if words[0] == "stepped"]

    def pids(self) -> set[int]:
        """All processes that have trained."""
        return {int(words[-1]) for words in self.log}

    def begin(self, *options: str, deed: str = "", step_s: float = 0.02) -> Process:
        """Start `nas search` of the task with these options."""
        usual = {
            "--trials": "4",
            "--reeval-fraction": "0",
            "--workers": "1",
            "--study": "s",
            "--preset": "smoke",
            "--sampler": "random",
        }
        usual |= {"--storage": self.storage, "--save-models": "none", "--budget": "params<=3k"}
        usual |= dict(zip(options[::2], options[1::2], strict=True))
        words = ["search", TASK, *(word for pair in usual.items() for word in pair)]
        variables = {"STEPWISE_LOG": str(self.folder / "log"), "STEPWISE_STEP_S": str(step_s)}
        (self.folder / "deed").write_text(deed)
        process = self.launch(words, self.folder / f"said-{len(self.processes)}", {**os.environ, **variables})
        self.processes.append(process)
        return process

    def wait(self, process: Process) -> tuple[int, str]:
        """The exit status of a search, which is waited for, and what it said on standard error."""
        return process.wait(PATIENCE_S), (self.folder / f"said-{self.processes.index(process)}").read_text()

    def search(self, *options: str, deed: str = "", step_s: float = 0.02) -> tuple[int, str]:
        """Run a whole search; return its exit status and standard error."""
        return self.wait(self.begin(*options, deed=deed, step_s=step_s))

    def rows(self, study: str = "s") -> list[Row]:
        """The rows of a study in the store."""
        return nas.load(study, storage=self.storage).rows()


def is_alive(pid: int) -> bool:
    """Whether a process exists and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def kill(pid: int) -> None:
    """Send SIGKILL."""
    os.kill(pid, signal.SIGKILL)


def outcomes(rows: list[Row]) -> list[tuple[Any, ...]]:
    """The columns of rows that must not depend on interruptions."""
    return [(row.architecture, row.status, row.error, row.metrics, row.test, row.curve, row.steps) for row in rows]
