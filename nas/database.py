"""The database behind a store: how it is opened, what its errors are told as, and what it is called."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sql
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from nas.places import DEFAULT_STORE
from search_spaces.errors import UserError

PATIENCE_S = 60  # how long a write waits for somebody else's lock


def parsed_url(url: str) -> URL:
    """A database's URL in parts. Raises UserError for a text that is none."""
    try:
        return make_url(url)
    except ArgumentError:
        raise UserError(f"--storage must be a database URL such as {DEFAULT_STORE}, got {url!r}.") from None


def check_file(parsed: URL, url: str, make: bool) -> None:
    """See to a SQLite file's folder. Raises UserError where the file is not there and is not to be made, or cannot."""
    if parsed.database in (None, "", ":memory:"):
        raise UserError(f"a study must outlive its command, got the storage {url!r} in memory. Give sqlite:///FILE.")
    file = Path(str(parsed.database))
    if not make and not file.exists():
        raise UserError(f"there is no study in {file}. Make one with `nas search`, or give --storage.")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unusable(url, error) from error


def open_engine(parsed: URL) -> Engine:
    """What talks to a database. Raises UserError where its driver is not installed."""
    if parsed.get_backend_name() != "sqlite":
        try:
            return sql.create_engine(parsed, pool_pre_ping=True)
        except (ImportError, NoSuchModuleError) as error:
            reason = _first_line(error)
            raise UserError(f"the driver of store {parsed.render_as_string()} is not installed: {reason}") from error
    engine = sql.create_engine(parsed, connect_args={"timeout": PATIENCE_S})
    sql.event.listen(engine, "connect", write_ahead)
    return engine


def write_ahead(connection: Any, _: Any) -> None:
    """Let readers read while somebody writes, and lose nothing when the machine stops."""
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")


@contextmanager
def clear_errors(url: str) -> Iterator[None]:
    """Turn what a database raises into a UserError that names the store and what to do."""
    try:
        yield
    except SQLAlchemyError as error:
        raise unusable(url, error) from error


def unusable(url: str, error: BaseException) -> UserError:
    """That a store cannot be used, why, and what to do."""
    return UserError(
        f"store {shown_url(url)} cannot be used: {_first_line(error.__cause__ or error)}. What it holds is kept; free"
        " the file or its disk and run the same command again, or give another --storage."
    )


def shown_url(url: str) -> str:
    """What people call a database: a SQLite file, or the URL without its password."""
    parsed = make_url(url)
    return str(parsed.database) if parsed.get_backend_name() == "sqlite" else parsed.render_as_string()


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
