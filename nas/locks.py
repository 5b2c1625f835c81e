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
    """Hold a study against a second coordinator. Other databases than SQLite are held by whoever runs them."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        yield
        return
    path = Path(f"{Path(str(parsed.database)).resolve()}.{slug(name)}.lock")
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except OSError as error:
        if not isinstance(error, Timeout):
            raise unusable(url, error) from error
        raise UserError(f"study {name!r} is being written to by another process, which holds {path}.") from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def making_schema(url: str) -> Iterator[None]:
    """Hold a SQLite file while its tables are made: two first commands may come at once."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        yield
        return
    lock = FileLock(f"{Path(str(parsed.database)).resolve()}.lock")
    try:
        lock.acquire(timeout=PATIENCE_S)
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
        while True:
            try:
                lock.acquire(timeout=0 if not waited else -1)
            except Timeout:
                if not waits:
                    raise UserError(f"another process does this very evaluation in {folder}. Wait for it.") from None
                warnings.warn(f"another process does this very evaluation in {folder}: it is waited for.", Notice, 2)
                waited = True
                continue
            if Path(lock.lock_file).exists():
                break
            lock.release()  # of a file that its holder has removed meanwhile
    except OSError as error:
        warnings.warn(f"{folder} cannot be held: {error.strerror}.", Notice, 2)
        yield False
        return
    try:
        yield waited
    finally:
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()
