"""Leases of trials and evaluations, for several coordinators of one database. They expire if not prolonged.

A coordinator leases each trial that it evaluates. It also leases the evaluation by its identity, so that an
architecture is trained once in the whole store. A coordinator that was halted for longer than its lease finds its work
adopted by another. This is harmless: Rows are stored once in any case (see `nas.store.store`).
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
from nas.store.schema import LEASES, create
from nas.store.store import Store

LEASE_S = 60.0
"""Seconds after which a lease expires unless it is prolonged."""

BEAT_S = 10.0
"""Seconds between heartbeats. Each prolongs all leases of a coordinator."""


class Leases(ABC):
    """The trials and evaluations that a coordinator works on."""

    @abstractmethod
    def acquire(self, name: str) -> bool:
        """Acquire a lease, and return whether this coordinator has it now."""

    @abstractmethod
    def release(self, name: str) -> None:
        """Release a lease if this coordinator still has it."""


@final
class NoLeases(Leases):
    """Leases for a single coordinator: every one is granted."""

    def acquire(self, name: str) -> bool:
        return True

    def release(self, name: str) -> None:
        """Do nothing."""


@final
class DatabaseLeases(Leases):
    """Leases of one coordinator among several, in a table of a PostgreSQL database. The clock is the server's.

    Attributes:
        holder: The coordinator: host, process id, and a random id, since process ids are reused.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.holder = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:12]}"

    def acquire(self, name: str) -> bool:
        """Acquire a lease that is free or has expired. None expires within LEASE_S of a restart of the server.

        Raises:
            sqlalchemy.exc.SQLAlchemyError: The database cannot be used.
        """
        with self._engine.begin() as connection:
            return connection.execute(_ACQUIRE, {"name": name, **self._lease()}).first() is not None

    def release(self, name: str) -> None:
        """Release a lease if it was not adopted. Raises as `acquire` does."""
        with self._engine.begin() as connection:
            connection.execute(_RELEASE, {"name": name, "holder": self.holder})

    def prolong(self) -> None:
        """Prolong all leases by LEASE_S from now. Raises as `acquire` does."""
        with self._engine.begin() as connection:
            connection.execute(_PROLONG, self._lease())

    def release_all(self) -> None:
        """Release all leases. Raises as `acquire` does."""
        with self._engine.begin() as connection:
            connection.execute(_RELEASE_ALL, {"holder": self.holder})

    def _lease(self) -> dict[str, object]:
        return {"holder": self.holder, "length": timedelta(seconds=LEASE_S)}


@contextmanager
def leases_in(store: Store) -> Iterator[Leases]:
    """Yield the leases of a store, and release them at the end so that others can continue at once.

    A SQLite file needs no leases. Ranks of a distributed training take none: they would have to agree on who waits.

    Raises:
        UserError: The database cannot be used.
    """
    if not store.is_shared or "TORCHELASTIC_RUN_ID" in os.environ:
        yield NoLeases()
        return
    retry_on_disconnect(_make_table)(store)
    leases, over = DatabaseLeases(store.engine), Event()
    heart = Thread(target=_prolong_periodically, args=(leases, over), daemon=True)
    heart.start()
    try:
        yield leases
    finally:
        over.set()
        heart.join(timeout=BEAT_S)
        with suppress(SQLAlchemyError):  # leases expire anyway
            leases.release_all()


def _make_table(store: Store) -> None:
    with translate_errors(store.url), schema_lock(store.url):
        create(store.engine, LEASES)


def _prolong_periodically(leases: DatabaseLeases, over: Event) -> None:
    while not over.wait(BEAT_S):
        with suppress(SQLAlchemyError):  # functions that need the server report an outage
            leases.prolong()


# Nobody can prolong a lease during an outage, so none expires before the server has been up for a lease's time.
_ACQUIRE = sql.text(
    "INSERT INTO nas_leases (name, holder, until) VALUES (:name, :holder, clock_timestamp() + :length) "
    "ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until = excluded.until "
    "WHERE nas_leases.holder = excluded.holder "
    "OR greatest(nas_leases.until, pg_postmaster_start_time() + :length) < clock_timestamp() RETURNING name"
)
_PROLONG = sql.text("UPDATE nas_leases SET until = clock_timestamp() + :length WHERE holder = :holder")
_RELEASE = sql.text("DELETE FROM nas_leases WHERE name = :name AND holder = :holder")
_RELEASE_ALL = sql.text("DELETE FROM nas_leases WHERE holder = :holder")
