"""How a command ends: beside waiting threads, and by a signal."""

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
        result = in_own_process(*words, cwd=tmp_path, first=partial(exec, program, {}))
        assert (result.returncode, "it waits" in result.stdout, bool(result.stdout)) == (status, False, status == 0), (
            words
        )
        assert (result.error is None) == (status == 0)


def test_a_signal_ends_a_command_and_trainings_name_the_resume(capsys: pytest.CaptureFixture[str]) -> None:
    number = signal.SIGTERM

    def ask(study: str, storage: str) -> None:
        signal.raise_signal(number)

    def train(preset: str, storage: str) -> None:
        signal.raise_signal(number)

    def run_command(function: Any, *words: str) -> tuple[int, str]:
        app = typer.Typer()
        app.command("run", cls=Command)(function)
        command = get_command(app)
        with command.make_context("run", list(words)) as context, pytest.raises(typer.Exit) as end:
            command.invoke(context)
        return end.value.exit_code, capsys.readouterr().err

    for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        of_ask, of_train = run_command(ask, "s", "x"), run_command(train, "smoke", "x")
        assert (of_ask[0], of_train[0]) == (status, status)
        assert all(len(line.splitlines()) == 1 and number.name in line for _, line in (of_ask, of_train))
        assert of_train[1].startswith(of_ask[1].rstrip(".\n"))
        assert len(of_train[1]) > len(of_ask[1])  # it says that the same command resumes
