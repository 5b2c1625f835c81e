"""Outages of servers: which errors are outages, and how long calls are retried."""

import pytest
from sqlalchemy.exc import DisconnectionError, OperationalError, ProgrammingError

import nas.store.retry
from expect import raises
from nas.store.retry import BACK, is_outage, retry_on_disconnect
from search_spaces.support.errors import UserError


class DriverError(Exception):
    """A driver's error, with or without the server's code."""

    def __init__(self, code: str | None) -> None:
        super().__init__(f"code {code}\nand more")
        self.sqlstate = code


def store_error_of(error: BaseException) -> UserError:
    """The store's error for a driver's."""
    user_error = UserError("unavailable", "the store cannot be used", server=True)
    user_error.__cause__ = error
    return user_error


def operational_error(code: str | None) -> OperationalError:
    """SQLAlchemy's error for a driver's."""
    error = OperationalError("SELECT 1", {}, DriverError(code))
    error.__cause__ = error.orig
    return error


def test_stopped_server_is_an_outage_by_any_code() -> None:
    codes = (None, "08006", "57P01", "57P02", "57P03", "57P05", "53300", "40P01")
    assert [code for code in codes if not is_outage(operational_error(code))] == []
    assert [code for code in codes if not is_outage(store_error_of(operational_error(code)))] == []


def test_other_errors_are_no_outage() -> None:
    assert not is_outage(operational_error("53100"))  # the disk is full
    assert not is_outage(ProgrammingError("SELECT 1", {}, DriverError("42P01")))
    assert not is_outage(OperationalError("SELECT 1", {}, Exception("database is locked")))  # SQLite's
    assert not is_outage(store_error_of(ValueError("no")))
    assert not is_outage(None)


def test_call_repeats_and_prints_the_outage_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda seconds: None)
    calls = []

    @retry_on_disconnect
    def ask(what: str) -> str:
        calls.append(what)
        if len(calls) < 4:
            raise store_error_of(operational_error("57P01"))
        return what

    assert ask("a") == "a"
    assert calls == ["a"] * 4
    away, back = capsys.readouterr().err.splitlines()
    assert "(code 57P01)" in away
    assert " 5 " in away
    assert back == BACK


def test_outage_is_timed_from_its_first_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    now, calls = [0.0], list[float]()
    monkeypatch.setattr("tenacity.time.monotonic", lambda: now[0])
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda seconds: now.append(now.pop() + seconds))

    @retry_on_disconnect
    def ask() -> None:
        calls.append(now[0])
        now[0] += 0 if len(calls) > 1 else 1000  # another coordinator holds the lock
        raise store_error_of(operational_error("57P01"))

    with raises("unavailable", server=True):
        ask()
    assert len(calls) > 10
    assert nas.store.retry.OUTAGE_S <= calls[-1] - 1000 < nas.store.retry.OUTAGE_S + 11


def test_other_error_is_raised_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nas.store.retry, "OUTAGE_S", 0.01)
    calls = []

    @retry_on_disconnect
    def ask() -> None:
        calls.append(1)
        raise UserError("failed", "no", option="mine")

    with raises("failed", option="mine"):
        ask()
    assert calls == [1]


def test_server_that_stays_away_raises_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nas.store.retry, "OUTAGE_S", 0.01)
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda seconds: now.append(now.pop() + seconds))
    monkeypatch.setattr("tenacity.time.monotonic", lambda: now[0])
    now, calls = [0.0], list[int]()

    @retry_on_disconnect
    def ask() -> None:
        calls.append(1)
        raise DisconnectionError("away")

    with pytest.raises(DisconnectionError):
        ask()
    assert len(calls) == 2
