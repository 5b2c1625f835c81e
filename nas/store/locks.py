"""Locks of a study, of a database during the creation of its tables, and of an evaluation's folder.

A SQLite file has a lock file beside it. A server has advisory locks, which end with the connection that holds them.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Never

import sqlalchemy as sql
from filelock import FileLock, Timeout
from sqlalchemy.engine import Engine, make_url
from sqlalchemy.exc import DisconnectionError, SQLAlchemyError

from nas.environment.paths import slug
from nas.store.database import LOCK_TIMEOUT_S, create_database, is_server, open_engine, store_error
from search_spaces.support.errors import Notice, UserError
from search_spaces.support.progress import status_if_slow


@contextmanager
def only_writer(url: str, name: str) -> Iterator[None]:
    """Lock a study in a SQLite file against a second coordinator. A server allows several: see `study_lock`.

    Raises:
        UserError: Another process holds the lock, or its file cannot be created.
    """
    busy = f"study {name!r} is being written to by another process"
    with _file_lock(url, f".{slug(name)}.lock", 0, busy, option="--study", value=name):
        yield


@contextmanager
def schema_lock(url: str) -> Iterator[None]:
    """Lock a database during the creation of its tables, against other first commands. Raises as `only_writer`."""
    if is_server(make_url(url)):
        engine = open_engine(make_url(url))
        try:
            with engine.begin() as connection:
                connection.execute(_LOCK_TABLES)
                yield
        finally:
            engine.dispose()  # close its connections even if the server refused
        return
    with _file_lock(url, ".lock", LOCK_TIMEOUT_S, "its tables are being created by another process"):
        create_database(url)
        yield


@contextmanager
def study_lock(engine: Engine, study: str) -> Iterator[None]:
    """Lock a study: only this coordinator reads and writes it; the others wait.

    On a server the lock belongs to a connection. A coordinator that loses the connection, or is idle for LOCK_S, loses
    the lock. It cannot write until it locks again: its engine has one connection and refuses to reconnect. A SQLite
    file has one coordinator and needs no lock.

    Raises:
        sqlalchemy.exc.SQLAlchemyError: The lock was lost.
    """
    if engine.dialect.name != "postgresql":
        yield
        return
    name = f"nas study {study}"
    with status_if_slow(f"waiting for another coordinator of study {study} ..."), engine.begin() as connection:
        connection.execute(_LOCK, {"name": name, "most": f"{LOCK_S * 1000:.0f}ms"})
    sql.event.listen(engine, "do_connect", _refuse_reconnection)
    try:
        yield
    except BaseException:
        with suppress(SQLAlchemyError):
            _unlock(engine, name)
        raise
    else:
        _unlock(engine, name)
    finally:
        sql.event.remove(engine, "do_connect", _refuse_reconnection)


def _unlock(engine: Engine, name: str) -> None:
    with engine.begin() as connection:
        connection.execute(_UNLOCK, {"name": name})


LOCK_S = 120.0
"""Idle seconds after which a coordinator loses the lock: a halted one must not block the others."""

_LOCK = sql.text(
    "SELECT set_config('idle_session_timeout', :most, false), pg_advisory_lock(hashtextextended(:name, 0))"
)
_UNLOCK = sql.text(
    "SELECT pg_advisory_unlock(hashtextextended(:name, 0)), set_config('idle_session_timeout', '0', false)"
)
_LOCK_TABLES = sql.text("SELECT pg_advisory_xact_lock(hashtextextended('nas tables', 0))")


def _refuse_reconnection(*_: Any) -> Never:
    raise DisconnectionError("the connection that locked the study was lost")


@contextmanager
def _file_lock(url: str, ending: str, patience: float, busy: str, **fields: Any) -> Iterator[None]:
    """Lock a SQLite file by a file beside it, with links resolved; do nothing for other databases."""
    db_url = make_url(url)
    if db_url.get_backend_name() != "sqlite":
        yield
        return
    lock = FileLock(f"{Path(str(db_url.database)).resolve()}{ending}")
    try:
        Path(lock.lock_file).parent.mkdir(parents=True, exist_ok=True)
        Path(lock.lock_file).touch()  # raises at once if impossible; FileLock would wait
        lock.acquire(timeout=patience)
    except Timeout:
        message = f"{busy}, which locks {lock.lock_file}. Wait for it, or give another --study."
        raise UserError("in-use", message, path=lock.lock_file, **fields) from None
    except OSError as error:
        raise store_error(url, error) from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def folder_lock(folder: str | None, *, waits: bool = True) -> Iterator[bool]:
    """Lock an evaluation's folder, and yield whether another process had it.

    Raises:
        UserError: Another process has it, and `waits` is False.
    """
    if folder is None:
        yield False
        return
    lock, had_to_wait = FileLock(f"{folder}.lock"), False
    try:
        Path(folder).parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        if not waits:
            message = f"another process runs the same evaluation in {folder}. Wait for it."
            raise UserError("in-use", message, path=folder) from None
        message = f"another process runs the same evaluation in {folder}: waiting for it."
        warnings.warn(Notice("in-use", message, path=folder), stacklevel=2)
        lock.acquire()
        had_to_wait = True
    except OSError as error:
        notice = Notice("unwritable", f"{folder} cannot be locked: {error.strerror}.", path=folder)
        warnings.warn(notice, stacklevel=2)
        yield False
        return
    try:
        yield had_to_wait
    finally:
        Path(lock.lock_file).unlink(missing_ok=True)  # filelock has waiting processes create a new one
        lock.release()
