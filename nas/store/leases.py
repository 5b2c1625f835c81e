"""Leases of trials and evaluations among coordinators of one database; they expire with their holder.

A trial of a study is held by the coordinator that evaluates it, an evaluation by its identity: in the whole store an
architecture is trained once. Rows are stored once in any case (see `nas.store.store`): a coordinator that was halted
for longer than its lease finds its work taken over when it comes back, and harms nothing.
"""

import os
import socket
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from threading import Event, Thread
from typing import final

import sqlalchemy as sql
from sqlalchemy.engine import Engine
from sqlalchemy.exc import SQLAlchemyError

from nas.store.database import translate_errors
from nas.store.locks import schema_lock
from nas.store.retry import retry_on_disconnect
from nas.store.store import Store

LEASE_S = 60.0
"""Seconds after which a lease ends that nobody has prolonged."""

BEAT_S = 10.0
"""Seconds between two heartbeats, each of which prolongs all leases of a coordinator."""


class Leases(ABC):
    """The trials and evaluations that a coordinator works at."""

    @abstractmethod
    def acquire(self, name: str) -> bool:
        """Acquire a lease; whether this coordinator has it now."""

    @abstractmethod
    def release(self, name: str) -> None:
        """Give a lease back, if it is still this coordinator's."""


@final
class NoLeases(Leases):
    """Leases of a single coordinator: it has all of them."""

    def acquire(self, name: str) -> bool:
        """Succeed always."""
        return True

    def release(self, name: str) -> None:
        """Do nothing."""


@final
class DatabaseLeases(Leases):
    """Leases of one coordinator among several, in a table of a PostgreSQL database. The clock is the server's.

    Attributes:
        holder: The coordinator: host, process, and what tells it from an earlier one of the same number.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.holder = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:12]}"

    def acquire(self, name: str) -> bool:
        """Acquire a lease that is free or has expired. After an outage of the server, leases have their whole time.

        Raises:
            sqlalchemy.exc.SQLAlchemyError: The database cannot be used.
        """
        with self._engine.begin() as connection:
            return connection.execute(_ACQUIRE, {"name": name, **self._lease()}).first() is not None

    def release(self, name: str) -> None:
        """Give it back, if it was not taken over. Raises as `acquire` does."""
        with self._engine.begin() as connection:
            connection.execute(_RELEASE, {"name": name, "holder": self.holder})

    def prolong(self) -> None:
        """Prolong all leases to their whole time from now. Raises as `acquire` does."""
        with self._engine.begin() as connection:
            connection.execute(_PROLONG, self._lease())

    def release_all(self) -> None:
        """Give back all of them. Raises as `acquire` does."""
        with self._engine.begin() as connection:
            connection.execute(_RELEASE_ALL, {"holder": self.holder})

    def _lease(self) -> dict[str, object]:
        return {"holder": self.holder, "length": timedelta(seconds=LEASE_S)}


@contextmanager
def leases_in(store: Store) -> Iterator[Leases]:
    """The leases of a store, released at the end so that others can go on at once. A file has no leases.

    Of processes that train together (torchrun) none has leases: they would have to agree who waits.

    Raises:
        UserError: The database cannot be used.
    """
    if not store.is_shared or "TORCHELASTIC_RUN_ID" in os.environ:
        yield NoLeases()
        return
    retry_on_disconnect(_make_table)(store)
    leases, over = DatabaseLeases(store.engine), Event()
    heart = Thread(target=_beat, args=(leases, over), daemon=True)
    heart.start()
    try:
        yield leases
    finally:
        over.set()
        heart.join(timeout=BEAT_S)
        with suppress(SQLAlchemyError):  # they end by themselves as well
            leases.release_all()


def _make_table(store: Store) -> None:
    with translate_errors(store.url), schema_lock(store.url):
        _TABLES.create_all(store.engine)


def _beat(leases: DatabaseLeases, over: Event) -> None:
    while not over.wait(BEAT_S):
        with suppress(SQLAlchemyError):  # of a server that is away, those tell who have something to ask
            leases.prolong()


_TABLES = sql.MetaData()
sql.Table(
    "nas_leases",
    _TABLES,
    sql.Column("name", sql.Text, primary_key=True),
    sql.Column("holder", sql.Text, index=True, nullable=False),
    sql.Column("until", sql.DateTime(timezone=True), nullable=False),
)

# While a server was away nobody could prolong a lease: none is over before it has been there for a lease's time.
_ACQUIRE = sql.text(
    "INSERT INTO nas_leases (name, holder, until) VALUES (:name, :holder, clock_timestamp() + :length) "
    "ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until "
    "WHERE nas_leases.holder = excluded.holder "
    "OR greatest(nas_leases.until, pg_postmaster_start_time() + :length) < clock_timestamp() RETURNING name"
)
_PROLONG = sql.text("UPDATE nas_leases SET until = clock_timestamp() + :length WHERE holder = :holder")
_RELEASE = sql.text("DELETE FROM nas_leases WHERE name = :name AND holder = :holder")
_RELEASE_ALL = sql.text("DELETE FROM nas_leases WHERE holder = :holder")
