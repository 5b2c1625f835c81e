"""Messages: the logger "nas" writes lines to standard error, from a level on that child processes inherit."""

import logging
import os
import subprocess
import sys

import pytest

from command_line import log_level
from search_spaces.support.logger import LEVEL, LOGGER, set_level

LINES = "from search_spaces.support.logger import LOGGER; LOGGER.debug('d'); LOGGER.info('i'); LOGGER.warning('w')"


@pytest.mark.parametrize(
    ("level", "lines"), [("DEBUG", "diw"), ("INFO", "iw"), ("WARNING", "w"), ("debug", "diw"), ("loud", "iw")]
)
def test_processes_write_from_the_level_on(level: str, lines: str) -> None:
    environment = {**os.environ, LEVEL: level}
    result = subprocess.run([sys.executable, "-c", LINES], capture_output=True, text=True, env=environment, check=True)
    assert (result.stdout, result.stderr.split()) == ("", list(lines))


def test_a_level_that_a_caller_has_set_stays() -> None:
    lines = f"import logging; logging.getLogger('nas').setLevel('WARNING'); {LINES}"
    result = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True)
    assert result.stderr.split() == ["w"]


def test_a_level_holds_here_and_in_processes_that_start_later(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LEVEL, "INFO")
    with log_level():
        set_level("WARNING")
        LOGGER.info("a line")
        LOGGER.warning("it failed")
    assert capsys.readouterr().err == "it failed\n"
    assert os.environ[LEVEL] == "WARNING"


def test_lines_hold_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    LOGGER.warning("a\x1b[2Kb")
    assert "\x1b" not in capsys.readouterr().err


def test_handlers_of_users_get_the_messages(capsys: pytest.CaptureFixture[str]) -> None:
    messages: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    LOGGER.addHandler(handler)
    try:
        LOGGER.info("a line")
    finally:
        LOGGER.removeHandler(handler)
    assert messages == capsys.readouterr().err.splitlines() == ["a line"]
