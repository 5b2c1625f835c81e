"""Run `nas` in the test's own process; the result also has the UserError that ended the command."""

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from subprocess import CompletedProcess
from typing import Any
from unittest.mock import patch

import pytest

from search_spaces.support.errors import Kind, UserError
from search_spaces.support.logger import LOGGER


class CommandResult(CompletedProcess[str]):
    """The result of a command, and the UserError that ended it, if any."""

    error: UserError | None = None

    def assert_error(self, kind: Kind, **fields: Any) -> UserError:
        """Assert that it ended with status 2 and the one line of a UserError of this kind, with these fields."""
        from expect import check
        from search_spaces.support.errors import printable

        assert self.error is not None, self.stderr or self.stdout
        check(self.error, kind, **fields)
        assert (self.returncode, self.stderr) == (2, f"nas: {printable(str(self.error))}\n")
        return self.error


Command = Callable[..., CommandResult]
"""`nas` with these words."""


@contextmanager
def user_errors(callback: Callable[[UserError], None]) -> Iterator[None]:
    """Call `callback` with each UserError that `nas` prints."""
    import nas.cli.main

    show = nas.cli.main.show_traceback

    def collect(error: BaseException) -> None:
        if isinstance(error, UserError):
            callback(error)
        show(error)

    with patch.object(nas.cli.main, "show_traceback", collect):
        yield


@contextmanager
def log_level(level: int | str = LOGGER.level) -> Iterator[None]:
    """Write messages from this level on; afterwards from the same as before."""
    before = LOGGER.level
    LOGGER.setLevel(level)
    try:
        yield
    finally:
        LOGGER.setLevel(before)


def run_nas(capsys: pytest.CaptureFixture[str], *words: str) -> CommandResult:
    """Run `nas` with these words in this process; environment and warnings are restored."""
    from nas.cli.main import main

    errors = list[UserError]()
    environment = patch.dict(os.environ)
    showwarning = patch.object(warnings, "showwarning", warnings.showwarning)
    with user_errors(errors.append), environment, log_level(), showwarning, patch.object(sys, "argv", ["nas", *words]):
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main()
    result = CommandResult(words, int(end.value.code or 0), *capsys.readouterr())
    result.error = errors[-1] if errors else None
    return result
