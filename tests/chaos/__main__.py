"""Many random chaos scenarios: `python -m tests.chaos --runs 500`.

Searches are forked from this process, which has imported everything. Prints a line per scenario; failed runs keep
their folders, and the exit status is 1.
"""

import argparse
import contextlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "nas")]

import alembic.migration
import torch._dynamo
from optuna.storages import RDBStorage

import nas.cli.main
import nas.engine.run
import nas.evaluation.evaluate
from real_searches import Place, outcomes
from scenarios import SCENARIOS, TRIALS

MODULES = (alembic.migration, torch._dynamo, RDBStorage, nas.evaluation.evaluate, nas.engine.run)
"""Modules of every search, loaded before the fork."""


@dataclass
class Child:
    """A search in a forked process."""

    pid: int
    status: int | None = None

    def send_signal(self, number: int, /) -> None:
        """Send a signal unless the process has ended."""
        if self.status is None:
            os.kill(self.pid, number)

    def wait(self, timeout: float | None = None) -> int:
        end = time.monotonic() + (timeout or 1e9)
        while self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > end:
                raise AssertionError(f"the search did not end within {timeout} s")
            else:
                time.sleep(0.01)
        return self.status


def fork_child(words: list[str], log: Path, environment: dict[str, str]) -> Child:
    """Run `nas` with these words in a fork."""
    asking = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, asking)  # a signal that arrives before the handlers are set
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, asking)
        return Child(pid)
    status = 70
    try:
        os.chdir(log.parent)
        os.environ.clear()
        os.environ.update(environment)
        for stream, file in ((2, log), (1, Path(os.devnull)), (0, Path(os.devnull))):
            os.dup2(os.open(file, os.O_RDWR | os.O_CREAT | os.O_TRUNC), stream)
        sys.argv = ["nas", *words]
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, asking)
            nas.cli.main.main()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        except KeyboardInterrupt:  # before the handlers were set
            status = 128 + signal.SIGINT
        except BaseException:
            traceback.print_exc()
            status = 1
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(status)


@cache
def reference(seed: int) -> list[tuple[Any, ...]]:
    """The outcomes of an undisturbed search with this seed."""
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder), fork_child)
        status, output = place.search("--trials", TRIALS, "--seed", str(seed))
        assert status == 0, output
        return outcomes(place.rows())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scenario", choices=SCENARIOS, action="append")
    options = parser.parse_args()
    names = options.scenario or list(SCENARIOS)
    wrong, done, began = 0, Counter[str](), time.monotonic()
    for number in range(options.runs):
        draw = random.Random(f"{options.seed} {number}")
        name = draw.choices(names, [SCENARIOS[scenario][0] for scenario in names])[0]
        folder = Path(tempfile.mkdtemp(prefix=f"chaos-{number}-"))
        place = Place(folder, fork_child)
        try:
            SCENARIOS[name][1](place, draw, reference)
            shutil.rmtree(folder)
        except Exception:
            wrong += 1
            done[f"{name}: WRONG"] += 1
            print(f"run {number}, {name}, in {folder}:\n{traceback.format_exc()}", flush=True)
        finally:
            for search in place.processes:
                search.send_signal(9)
                search.wait()
        done[name] += 1
        print(f"{number + 1}/{options.runs} {name}", file=sys.stderr, flush=True)
    for name, times in sorted(done.items()):
        print(f"{times:5} {name}")
    print(f"{options.runs} runs, {wrong} wrong, {time.monotonic() - began:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
