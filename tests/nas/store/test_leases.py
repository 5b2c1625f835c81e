"""Leases and study locks on a real PostgreSQL server; SQLite has no leases."""

import time
from collections.abc import Iterator

import pytest
import sqlalchemy as sql

import nas.store.leases
import nas.store.locks
from nas.store.database import open_engine
from nas.store.leases import DatabaseLeases, NoLeases, leases_in
from nas.store.locks import study_lock
from nas.store.optuna_study import open_storage
from nas.store.retry import is_outage
from nas.store.store import Store
from postgres_server import Server
from waiting import run_at_once, until


@pytest.fixture
def store(postgres: Server) -> Iterator[Store]:
    store = Store(postgres.database(), make=True)
    yield store
    store.engine.dispose()


@pytest.fixture
def pair(store: Store, monkeypatch: pytest.MonkeyPatch) -> tuple[DatabaseLeases, DatabaseLeases]:
    """The leases of two coordinators without heartbeats."""
    monkeypatch.setattr(nas.store.leases, "LEASE_S", 0.3)
    with leases_in(store):
        return DatabaseLeases(store.engine), DatabaseLeases(store.engine)


def test_lease_has_one_holder_until_its_release(pair: tuple[DatabaseLeases, DatabaseLeases]) -> None:
    first, second = pair
    assert first.acquire("a")
    assert not second.acquire("a")
    assert first.acquire("a"), "who holds it may ask again: an answer may have been lost"
    second.release("a")
    assert not second.acquire("a"), "nobody gives back what another one has"
    first.release("a")
    assert second.acquire("a")
    assert second.acquire("b")
    second.release_all()
    assert first.acquire("a")
    assert first.acquire("b")


def test_expired_lease_is_taken_over(pair: tuple[DatabaseLeases, DatabaseLeases]) -> None:
    first, second = pair
    assert first.acquire("a")
    until(lambda: second.acquire("a"), "the lease ended")
    first.prolong()
    assert not first.acquire("a")


def test_one_of_many_requests_at_once_gets_the_lease(store: Store) -> None:
    with leases_in(store):
        answers: list[bool] = []
        run_at_once(lambda number: answers.append(DatabaseLeases(store.engine).acquire("a")), 12)
    assert sorted(answers) == [False] * 11 + [True]


def test_heartbeat_prolongs_leases_and_the_end_releases_them(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nas.store.leases, "LEASE_S", 1.0)
    monkeypatch.setattr(nas.store.leases, "BEAT_S", 0.05)
    other = DatabaseLeases(store.engine)
    with leases_in(store) as leases:
        assert leases.acquire("a")
        for _ in range(3):
            time.sleep(0.4)  # longer than a lease in total
            assert not other.acquire("a")
    assert other.acquire("a")


def test_leases_outlive_a_restart_of_the_server(
    postgres: Server, pair: tuple[DatabaseLeases, DatabaseLeases], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = pair
    assert first.acquire("a")
    postgres.stop()
    time.sleep(0.3)  # as long as the lease
    postgres.start()
    monkeypatch.setattr(nas.store.leases, "LEASE_S", 30.0)
    assert not second.acquire("a")
    monkeypatch.setattr(nas.store.leases, "LEASE_S", 0.1)
    until(lambda: second.acquire("a"), "the lease ended")


def test_files_and_distributed_processes_have_no_leases(
    store: Store, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    with leases_in(Store(f"sqlite:///{tmp_path}/studies.db", make=True)) as leases:
        assert isinstance(leases, NoLeases)
        assert leases.acquire("a")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "r")
    with leases_in(store) as leases:
        assert isinstance(leases, NoLeases)


def test_study_lock_has_one_holder_at_a_time(store: Store) -> None:
    at_once: list[int] = []
    inside: list[int] = []

    def take(number: int) -> None:
        engine = open_engine(sql.make_url(store.url))
        with study_lock(engine, "s"):
            inside.append(number)
            time.sleep(0.05)
            at_once.append(len(inside))
            inside.remove(number)
        engine.dispose()

    run_at_once(take, 4)
    assert at_once == [1, 1, 1, 1]


def test_lost_connection_loses_the_lock_and_cannot_write(postgres: Server, store: Store) -> None:
    engine = open_storage(store.url).engine

    def ask() -> object:
        with engine.connect() as connection:
            return connection.execute(sql.text("SELECT 1")).scalar()

    def lose() -> None:
        with study_lock(engine, "s"):
            assert ask() == 1
            postgres.restart()
            for _ in range(3):  # no new connection, however many attempts
                with pytest.raises(sql.exc.SQLAlchemyError):
                    ask()

    for _ in range(2):
        with pytest.raises(sql.exc.SQLAlchemyError) as error:
            lose()
        assert is_outage(error.value)
    with study_lock(engine, "s"):
        assert ask() == 1
    engine.dispose()


def test_silent_coordinator_loses_its_lock(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nas.store.locks, "LOCK_S", 0.3)
    patience = sql.make_url(store.url).update_query_dict({"options": "-c lock_timeout=20s"})
    silent, other = open_storage(store.url).engine, open_engine(patience)
    turns = []
    with pytest.raises(sql.exc.SQLAlchemyError) as error, study_lock(silent, "s"), study_lock(other, "s"):
        turns.append(True)
    assert turns
    assert is_outage(error.value)
    silent.dispose()
    other.dispose()
