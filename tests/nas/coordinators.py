"""Coordinators: processes that search one store at once, as `nas search` does."""

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch._dynamo  # noqa: F401  # imported once, not by each process

import nas
import nas.engine.run
import nas.engine.scheduler
import nas.report.tables
from nas.cli.main import main
from nas.store import leases, retry
from nas.workers.pool import ThisProcess
from postgres_server import Server
from toy_searches import TOYS
from waiting import PATIENCE_S


@dataclass(frozen=True)
class Coordinator:
    """A process that searches.

    Attributes:
        process: The process.
        log: The file of its output.
    """

    process: BaseProcess
    log: Path

    def signal(self, number: signal.Signals) -> None:
        assert self.process.pid is not None
        with suppress(ProcessLookupError):  # it may have ended
            os.kill(self.process.pid, number)

    def end(self) -> int:
        """Wait for its end; return its exit status."""
        self.process.join(PATIENCE_S)
        assert self.process.exitcode is not None, f"it still runs: {self.log.read_text()}"
        return self.process.exitcode

    def output(self) -> str:
        return self.log.read_text()


def begin(
    folder: Path, url: str, *, study: str = "s", apart: bool = False, outage: float = 60, **options: Any
) -> Coordinator:
    """Start `nas search` of the counted toy with short leases; evaluations run in the coordinator itself.

    Each training adds a line to the file `fitted` of the parent folder.

    Args:
        folder: The working directory.
        url: The store.
        study: The study.
        apart: Run evaluations in a process of their own, as outside of tests.
        outage: Seconds after which a server is given up.
        options: Further options of `nas search`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    arguments: dict[str, Any] = {
        "space": "depth-heads", "trials": 8, "reeval_fraction": 0, "objectives": "accuracy,flops", "preset": "smoke",
        "sampler": "random", "workers": 1, "study": study, "storage": url, **options,
    }  # fmt: skip
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in arguments.items()]
    words = ["nas", "search", f"{TOYS}:Counted", *flags]
    log = folder / f"log-{time.monotonic_ns()}"
    process = multiprocessing.get_context("fork").Process(target=_search, args=(words, folder, log, apart, outage))
    process.start()
    return Coordinator(process, log)


def _search(words: list[str], folder: Path, log: Path, apart: bool, outage: float) -> None:
    with log.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.stdout, sys.stderr = os.fdopen(1, "w", buffering=1), os.fdopen(2, "w", buffering=1)
    os.chdir(folder)
    os.environ["TOYS_FITTED"] = str(folder.parent / "fitted")
    leases.LEASE_S, leases.BEAT_S, nas.engine.scheduler.POLL_S, retry.OUTAGE_S = 2, 0.4, 0.3, outage
    if not apart:
        nas.engine.run.make_pool = lambda *_, **__: ThisProcess()
    sys.argv = words
    try:
        main()
    except SystemExit as error:
        os._exit(error.code if isinstance(error.code, int) else 1)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


@contextmanager
def none_left_behind() -> Iterator[None]:
    """Kill all child processes at the end."""
    try:
        yield
    finally:
        for child in multiprocessing.active_children():
            child.kill()


def trained_keys(folder: Path) -> list[str]:
    """The keys of trainings below a folder, in order, with repetitions."""
    file = folder / "fitted"
    return [line.split("\t")[1] for line in file.read_text().splitlines()] if file.exists() else []


def check(server: Server, url: str, study: str = "s", trials: int = 8) -> None:
    """Assert that each number and candidate occurs once, all trials are complete, and no lease is left."""
    rows = nas.load(study, storage=url).rows()
    assert len({row.architecture for row in rows}) == len(rows) == trials
    assert {row.status for row in rows} == {"complete"}
    numbers = server.ask(f"SELECT number FROM nas_rows WHERE study = '{study}' ORDER BY number", url)
    assert numbers == [(number,) for number in range(trials)]
    trials_by_number = server.ask(
        f"SELECT number, state FROM trials JOIN studies USING (study_id) WHERE study_name = '{study}' ORDER BY number",
        url,
    )
    assert trials_by_number == [(number, "COMPLETE") for number in range(trials)]
    assert server.ask("SELECT name FROM nas_leases WHERE until > now()", url) == []
