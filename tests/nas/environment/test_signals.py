"""Signals end a command wherever it is."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import nas.environment.signals
from nas.environment.signals import Termination, raise_pending_termination, termination_signals
from toy_searches import Search


@pytest.fixture(autouse=True)
def default_handlers() -> Iterator[None]:
    # Tests may run under nohup, or in the background of a shell.
    handlers = {
        signal.SIGTERM: signal.SIG_DFL,
        signal.SIGINT: signal.default_int_handler,
        signal.SIGHUP: signal.SIG_DFL,
    }
    earlier = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    yield
    after = {number: signal.signal(number, handler) for number, handler in earlier.items()}
    assert after == handlers
    raise_pending_termination()  # none is pending


def test_signal_is_raised_in_the_command() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        with pytest.raises(Termination) as error, termination_signals():
            signal.raise_signal(number)
        assert error.value.number == number


def test_command_ignores_a_signal_that_was_ignored_before() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup has it
    try:
        with termination_signals():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


class Destructor:
    """Calls a function in its destructor."""

    def __init__(self, action: Callable[[], Any]) -> None:
        self._action = action

    def __del__(self) -> None:
        self._action()


def test_signal_lost_in_a_destructor_is_raised_again(monkeypatch: pytest.MonkeyPatch) -> None:
    types: list[type[BaseException]] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: types.append(unraisable.exc_type))
    with termination_signals():
        garbage = Destructor(lambda: signal.raise_signal(signal.SIGTERM))
        del garbage
        with pytest.raises(Termination):
            raise_pending_termination()
        garbage = Destructor(lambda: 1 // 0)
        del garbage
    assert types == [ZeroDivisionError]
    garbage = Destructor(lambda: 1 // 0)
    del garbage
    assert types == [ZeroDivisionError] * 2


def test_search_raises_a_lost_signal(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(nas.environment.signals, "_SIGNALS", [(signal.SIGTERM, 0.0)])
        with pytest.raises(Termination):
            search(trials=1, space="depth-heads")
    assert len(search(trials=1, space="depth-heads")) == 1


def test_second_signal_kills_after_a_grace() -> None:
    program = (
        "import signal, nas.environment.signals as here\n"
        "here.GRACE_S = {}\n"
        "with here.termination_signals():\n"
        "    try:\n        signal.raise_signal(signal.SIGTERM)\n"
        "    except here.Termination:\n        signal.raise_signal(signal.SIGTERM)\n"
    )
    for grace, status in ((100.0, 0), (0.0, -signal.SIGTERM)):
        result = subprocess.run([sys.executable, "-c", program.format(grace)], check=False)
        assert result.returncode == status, grace
