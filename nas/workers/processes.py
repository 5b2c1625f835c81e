"""Setup of child processes: they end with their parent, and import installed modules only."""

import ctypes
import logging
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from search_spaces.support.logger import LOGGER, set_level

_PR_SET_PDEATHSIG = 1  # from linux/prctl.h
_SAFE_PATH = "PYTHONSAFEPATH"


@contextmanager
def hide_working_directory() -> Iterator[None]:
    """Start processes without the working directory in sys.path: a copy.py there must not replace Python's own."""
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


def prepare_process(parent: int) -> None:
    """Prepare a process that `parent` has started."""
    os.environ.pop(_SAFE_PATH, None)  # processes that a task starts are not affected
    if LOGGER.isEnabledFor(logging.INFO):  # the parent shows progress
        set_level("WARNING")
    multiprocessing.set_start_method(None, force=True)  # loky's default cannot start a DataLoader's
    end_with_parent(parent)
    end_forks_with_this()


def end_forks_with_this() -> None:
    """Make processes that this one forks, such as data loaders, end with it, and so on recursively."""
    forking = [os.getpid()]

    def remember() -> None:
        forking[0] = os.getpid()

    os.register_at_fork(before=remember, after_in_child=lambda: end_with_parent(forking[0]))


def end_with_parent(parent: int) -> None:
    """Have the kernel end this process with its parent, which alone would read its result. Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)  # the parent had already ended
