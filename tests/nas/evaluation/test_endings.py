"""How a command ends: beside threads that wait, and by a signal."""

import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

from nas.cli.command import Command
from own_process import in_own_process


@pytest.mark.outside
def test_a_thread_that_waits_forever_does_not_delay_the_end(tmp_path: Path) -> None:
    program = (
        "import atexit\nfrom nas.workers.orphan_threads import STUCK_THREADS\n"
        "atexit.register(print, 'it waits', flush=True)\nSTUCK_THREADS.append(None)"
    )
    for words, status in ((["list", "tasks"], 0), (["list", "nonsense"], 2), (["nonsense"], 2)):
        done = in_own_process(*words, cwd=tmp_path, first=partial(exec, program, {}))
        assert (done.returncode, "it waits" in done.stdout, bool(done.stdout)) == (status, False, status == 0), words
        assert (done.error is None) == (status == 0)


def test_a_signal_ends_a_command_and_those_that_train_can_resume(capsys: pytest.CaptureFixture[str]) -> None:
    number = signal.SIGTERM

    def ask(study: str, storage: str) -> None:
        signal.raise_signal(number)

    def train(preset: str, storage: str) -> None:
        signal.raise_signal(number)

    def ended(function: Any, *words: str) -> tuple[int, str]:
        app = typer.Typer()
        app.command("run", cls=Command)(function)
        command = get_command(app)
        with command.make_context("run", list(words)) as context, pytest.raises(typer.Exit) as end:
            command.invoke(context)
        return end.value.exit_code, capsys.readouterr().err

    for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        asking, trained = ended(ask, "s", "x"), ended(train, "smoke", "x")
        assert (asking[0], trained[0]) == (status, status)
        assert all(len(line.splitlines()) == 1 and number.name in line for _, line in (asking, trained))
        assert trained[1].startswith(asking[1].rstrip(".\n"))
        assert len(trained[1]) > len(asking[1])  # that the same command resumes
