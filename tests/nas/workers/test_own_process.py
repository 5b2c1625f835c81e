"""A forked command behaves as one from a shell: environment, exit handlers, start method."""

import multiprocessing
from functools import partial
from pathlib import Path

import pytest

from own_process import in_own_process

PROGRAM = """
import atexit, multiprocessing, os
atexit.register(os.mkdir, "ended")
os.mkdir(multiprocessing.get_start_method())
os.mkdir(os.environ["OF_NOW"])
"""


def test_forked_command_has_current_environment_exit_handlers_and_start_method(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_NOW", "now")
    result = in_own_process("list", "nonsense", cwd=tmp_path, first=partial(exec, PROGRAM, {}))
    assert (result.returncode, result.stdout, len(result.stderr.splitlines())) == (2, "", 1)
    assert {path.name for path in tmp_path.iterdir()} == {"ended", "now", multiprocessing.get_start_method()}
