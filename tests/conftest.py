"""Fixtures of all tests: one thread, toy tasks by import, and three ways to count."""

import gc
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from nas.costs.count import count_macs
from nas.costs.shapes import Shapes
from search_spaces.support.count import Count

if TYPE_CHECKING:
    from postgres_server import Server

HERE = Path(__file__).parent
sys.path[:0] = [str(folder) for folder in (HERE, HERE / "nas", HERE / "docs")]

import messages

torch.set_num_threads(1)
# Tests send signals that background jobs of a shell and nohup ignore.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)


MEMORY = Path("/dev/shm")
"""Linux's in-memory file system."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option behind `python -m tests.messages --update`."""
    parser.addoption("--update-messages", action="store_true", help="Write the snapshot tests/messages.txt.")


def pytest_configure(config: pytest.Config) -> None:
    """Record messages. Temporary folders are in memory if much is free: disks take milliseconds per row."""
    messages.install(config)
    if not MEMORY.is_dir():
        return
    memory = dict(line.split()[:2] for line in Path("/proc/meminfo").read_text().splitlines())
    if min(shutil.disk_usage(MEMORY).free, 1024 * int(memory["MemAvailable:"])) > 2**32:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Exclude tests and their imports from garbage collection, which took a tenth of the time; one thread for BLAS."""
    gc.disable()
    result = yield
    gc.freeze()
    gc.callbacks.append(_freeze)  # also objects that survive a full collection later: late imports
    gc.enable()
    threadpool_limits(1, "blas")
    return result


def _freeze(phase: str, collection: dict[str, int]) -> None:
    if phase == "stop" and collection["generation"] == 2:
        gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def seeds_of_the_cpu_alone() -> Iterator[None]:
    """Without a GPU, skip the stack trace that `torch.manual_seed` records; it takes as long as a small network."""
    with pytest.MonkeyPatch.context() as patch:
        if not torch.cuda.is_available():
            patch.setattr(torch, "manual_seed", torch.default_generator.manual_seed)
        yield


@pytest.fixture(autouse=True)
def one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluate in the test's own process by default, which starts quickly. Tables are wide."""
    monkeypatch.setenv("NAS_WORKERS", "1")
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def no_other_tests_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove tests/tasks from the path, which loading tasks from files has added."""
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != str(HERE / "tasks")])


@pytest.fixture(scope="session")
def postgres() -> Iterator["Server"]:
    """A PostgreSQL server for the session."""
    from postgres_server import a_server, is_required, programs

    if programs() is None and not is_required():
        pytest.skip("PostgreSQL is not installed")
    with a_server() as server:
        yield server


@pytest.fixture
def agree() -> Callable[[nn.Module, tuple[Tensor, ...], Count | None], None]:
    """Assert that fvcore with our handlers, torch's counter and the closed form, if any, are equal."""

    def check(model: nn.Module, example: tuple[Tensor, ...], form: Count | None) -> None:
        # Torch's shape rules take half of the time: use them only without a closed form.
        with nullcontext() if form is None else Shapes(), FlopCounterMode(display=False) as counter:
            model(*example)
        macs, _ = count_macs(model, example)
        assert counter.get_total_flops() == 2 * macs
        params = sum(parameter.numel() for parameter in model.parameters())
        assert form is None or (form.params, form.macs) == (params, macs)

    return check
