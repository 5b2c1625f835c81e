"""What keeps processes out of each other's way: in a study, while tables are made, in an evaluation's folder."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout
from sqlalchemy.engine import make_url

from nas.database import PATIENCE_S, unusable
from nas.places import slug
from search_spaces.errors import Notice, UserError


@contextmanager
def only_writer(url: str, name: str) -> Iterator[None]:
    """Hold a study against a second coordinator. Other databases than SQLite are held by whoever runs them.

    Raises:
        UserError: Another process holds it, or the lock's file cannot be made.
    """
    with _file_lock(url, f".{slug(name)}.lock", 0, f"study {name!r} is being written to by another process"):
        yield


@contextmanager
def making_schema(url: str) -> Iterator[None]:
    """Hold a SQLite file while its tables are made: two first commands may come at once. Raises as `only_writer`."""
    with _file_lock(url, ".lock", PATIENCE_S, "its tables are being made by another process"):
        yield


@contextmanager
def _file_lock(url: str, ending: str, patience: float, busy: str) -> Iterator[None]:
    """A lock beside a SQLite file, links resolved; nothing for other databases."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        yield
        return
    lock = FileLock(f"{Path(str(parsed.database)).resolve()}{ending}")
    try:
        lock.acquire(timeout=patience)
    except Timeout:
        raise UserError(f"{busy}, which holds {lock.lock_file}. Wait for it, or give another --study.") from None
    except OSError as error:
        raise unusable(url, error) from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def held(folder: str | None, *, waits: bool = True) -> Iterator[bool]:
    """Hold an evaluation's folder against another process, which is waited for; whether that was so.

    Raises:
        UserError: Another process holds it, and it is not to be waited for.
    """
    if folder is None:
        yield False
        return
    lock, waited = FileLock(f"{folder}.lock"), False
    try:
        Path(folder).parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        if not waits:
            raise UserError(f"another process does this very evaluation in {folder}. Wait for it.") from None
        warnings.warn(f"another process does this very evaluation in {folder}: it is waited for.", Notice, 2)
        lock.acquire()
        waited = True
    except OSError as error:
        warnings.warn(f"{folder} cannot be held: {error.strerror}.", Notice, 2)
        yield False
        return
    try:
        yield waited
    finally:
        Path(lock.lock_file).unlink(missing_ok=True)  # who waits for it takes a new one: filelock sees to it
        lock.release()
