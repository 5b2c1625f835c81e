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
def as_before() -> Iterator[None]:
    # Tests may have been begun with nohup, or in a shell's background.
    own = {signal.SIGTERM: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    outside = {number: signal.signal(number, handler) for number, handler in own.items()}
    yield
    after = {number: signal.signal(number, handler) for number, handler in outside.items()}
    assert after == own
    raise_pending_termination()  # nobody has any more


def test_signal_is_raised_in_the_command() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        with pytest.raises(Termination) as asked, termination_signals():
            signal.raise_signal(number)
        assert asked.value.number == number


def test_ignored_signal_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup has it
    try:
        with termination_signals():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


class Going:
    """What raises where nobody hears of it."""

    def __init__(self, goes: Callable[[], Any]) -> None:
        self._goes = goes

    def __del__(self) -> None:
        self._goes()


def test_signal_lost_in_a_destructor_is_raised_again(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[type[BaseException]] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda dropped: told.append(dropped.exc_type))
    with termination_signals():
        going = Going(lambda: signal.raise_signal(signal.SIGTERM))
        del going
        with pytest.raises(Termination):
            raise_pending_termination()
        going = Going(lambda: 1 // 0)
        del going
    assert told == [ZeroDivisionError]
    going = Going(lambda: 1 // 0)
    del going
    assert told == [ZeroDivisionError] * 2


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
        done = subprocess.run([sys.executable, "-c", program.format(grace)], check=False)
        assert done.returncode == status, grace
