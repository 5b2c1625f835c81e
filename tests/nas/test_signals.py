"""What is asked of a command reaches it, wherever it is just then."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import nas.signals
from nas.signals import Terminated, end_if_asked, ended_when_asked
from toy_searches import Search


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    # Tests may have been begun with nohup, or in a shell's background.
    own = {signal.SIGTERM: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    outside = {number: signal.signal(number, handler) for number, handler in own.items()}
    yield
    after = {number: signal.signal(number, handler) for number, handler in outside.items()}
    assert after == own
    end_if_asked()  # nobody has any more


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_is_raised_where_the_command_is(number: signal.Signals) -> None:
    with pytest.raises(Terminated) as asked, ended_when_asked():
        signal.raise_signal(number)
    assert asked.value.number == number


def test_what_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup has it
    try:
        with ended_when_asked():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


class Going:
    """What raises where nobody hears of it."""

    def __init__(self, goes: Callable[[], Any]) -> None:
        self._goes = goes

    def __del__(self) -> None:
        self._goes()


def test_what_was_raised_to_nobody_is_asked_again_and_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[type[BaseException]] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda dropped: told.append(dropped.exc_type))
    with ended_when_asked():
        going = Going(lambda: signal.raise_signal(signal.SIGTERM))
        del going
        with pytest.raises(Terminated):
            end_if_asked()
        going = Going(lambda: 1 // 0)
        del going
    assert told == [ZeroDivisionError]
    going = Going(lambda: 1 // 0)
    del going
    assert told == [ZeroDivisionError] * 2


def test_a_search_asks_again(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(search(trials=1)) == 1
    with monkeypatch.context() as patch:
        patch.setattr(nas.signals, "_ASKED", [(signal.SIGTERM, 0.0)])
        with pytest.raises(Terminated):
            search(trials=2)
    assert len(search(trials=2)) == 2


@pytest.mark.parametrize(("grace", "status"), [(100.0, 0), (0.0, -signal.SIGTERM)])
def test_a_second_one_at_once_is_the_first_and_a_later_one_kills(grace: float, status: int) -> None:
    program = (
        "import signal, nas.signals as here\n"
        f"here.GRACE_S = {grace}\n"
        "with here.ended_when_asked():\n"
        "    try:\n        signal.raise_signal(signal.SIGTERM)\n"
        "    except here.Terminated:\n        signal.raise_signal(signal.SIGTERM)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == status
