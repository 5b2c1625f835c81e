"""The database of a store: URLs, connections, and its errors as UserError."""

import os
import shutil
import sqlite3
import stat
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import sqlalchemy as sql
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from nas.environment.passwords import visible_part, without_passwords
from nas.environment.paths import DEFAULT_STORE
from nas.store.study_names import missing_study_error
from search_spaces.support.errors import UserError

LOCK_TIMEOUT_S = 60  # of a write that waits for a lock

# libpq's names: seconds to connect, idle seconds before a keepalive, milliseconds to answer it.
_TIMEOUTS = {"connect_timeout": "10", "keepalives_idle": "30", "tcp_user_timeout": "30000"}


def parse_url(url: str) -> URL:
    """Parse a database's URL. Raises UserError for malformed text."""
    try:
        db_url = make_url(url)
    except (ArgumentError, ValueError):  # ValueError: the port is no number, and may contain a password
        text = visible_part(url)
        message = f"--storage must be a database URL such as {DEFAULT_STORE}, got {text!r}."
        raise UserError("bad-syntax", message, option="--storage", value=text) from None
    if "@" in (db_url.host or ""):
        text = without_passwords(url)
        message = f"an @ in a user name or password must be written %40 in a URL, got {text!r}."
        raise UserError("bad-syntax", message, option="--storage", value=text, part="@")
    return db_url


def check_url(url: str) -> None:
    """Raise UserError if a text is not the URL of a store."""
    is_server(parse_url(url))


def check_file(db_url: URL, url: str, make: bool) -> None:
    """Check a SQLite file, and create its folder if `make` is True.

    Raises:
        UserError: The file is missing and `make` is False, it is empty since its data was lost, it is not a file, or
            its folder cannot be created.
    """
    if db_url.database in (None, "", ":memory:"):
        text = without_passwords(url)
        message = f"--storage must be persistent, got {text!r}, which is in memory. Give sqlite:///FILE."
        raise UserError("unsupported", message, option="--storage", value=text)
    file = Path(str(db_url.database))
    try:
        if make:
            file.parent.mkdir(parents=True, exist_ok=True)
        file_stat = file.stat()
    except FileNotFoundError:
        if make:
            return
        raise missing_study_error(file) from None
    except (OSError, ValueError) as error:
        raise store_error(url, error) from error
    if not stat.S_ISREG(file_stat.st_mode):
        message = f"a store must be a regular file, got {file}. Give another --storage."
        raise UserError("bad-file", message, option="--storage", storage=printable_url(url), problem="type")
    if not file_stat.st_size:
        message = f"store {file} is empty: its contents are lost. Restore a copy, or remove the file to start over."
        raise UserError("bad-file", message, option="--storage", storage=printable_url(url), problem="empty")


def is_server(db_url: URL) -> bool:
    """Return whether a database is a PostgreSQL server, which allows several coordinators, and not a SQLite file.

    Raises:
        UserError: It is neither.
    """
    name = db_url.get_backend_name()
    if name not in ("sqlite", "postgresql", "postgres"):
        message = f"--storage must be sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME, got {name}://."
        raise UserError("unsupported", message, option="--storage", value=name, choices=("sqlite", "postgresql"))
    return name != "sqlite"


def psycopg_url(db_url: URL) -> URL:
    """Return a server's URL with the driver psycopg and with timeouts for a server that does not answer.

    Raises:
        UserError: The driver is not installed.
    """
    if find_spec("psycopg") is None:
        message = (
            f"store {without_passwords(db_url.render_as_string())} needs a driver that is not installed."
            ' Install it: pip install ".[postgres]".'
        )
        raise UserError("needs-extra", message, option="--storage", extra="postgres")
    return db_url.set(drivername="postgresql+psycopg", query={**_TIMEOUTS, **db_url.query})


def open_engine(db_url: URL, *, reading: bool = False) -> Engine:
    """Return an engine for a database. `reading` opens a SQLite file read-only.

    Raises:
        UserError: The database cannot be a store, or its driver is not installed.
    """
    if is_server(db_url):
        return sql.create_engine(psycopg_url(db_url), pool_pre_ping=True)
    if reading:
        return sql.create_engine("sqlite://", creator=_connector(Path(str(db_url.database))), poolclass=sql.NullPool)
    engine = sql.create_engine(db_url, connect_args={"timeout": LOCK_TIMEOUT_S})
    sql.event.listen(engine, "connect", enable_write_ahead_log)
    return engine


def _connector(file: Path) -> partial[sqlite3.Connection]:
    """Return a function that connects to a SQLite file for reading.

    SQLite reads a write-ahead log with a helper file beside it. If that cannot be created, the folder is read-only and
    has no writers: then a copy is read.
    """
    connect = partial(_connect_read_only, file.resolve())
    try:
        connection = connect()
        try:
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
        finally:
            connection.close()
    except sqlite3.OperationalError:
        if os.access(file.resolve().parent, os.W_OK):
            return connect  # raises again when it is used
        return partial(_connect_copy, _copy(file.resolve()))
    except sqlite3.DatabaseError:  # not a database, or a damaged one
        return connect
    return connect


def _connect_read_only(file: Path) -> sqlite3.Connection:
    """Return a connection that creates no file and changes no data.

    If possible it opens the file with mode=rw: mode=ro would leave the log and its helper file behind on closing.
    """
    is_writable = os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)
    uri = f"file:{quote(str(file))}?mode={'rw' if is_writable else 'ro'}"
    connection = sqlite3.connect(uri, uri=True, timeout=LOCK_TIMEOUT_S, check_same_thread=False)
    connection.execute("PRAGMA query_only=ON")
    return connection


def _connect_copy(folder: TemporaryDirectory[str]) -> sqlite3.Connection:
    """Connect to the copy in a temporary folder. The argument keeps the folder alive."""
    return sqlite3.connect(Path(folder.name, "store.db"), check_same_thread=False)


def _copy(file: Path) -> TemporaryDirectory[str]:
    """Copy a SQLite file and its log into a temporary folder."""
    folder = TemporaryDirectory(prefix="nas-store-")
    for ending in ("-wal", ""):
        source = Path(f"{file}{ending}")
        if source.exists():
            shutil.copyfile(source, Path(folder.name, f"store.db{ending}"))
    return folder


def create_database(url: str) -> None:
    """Create the SQLite file of a store atomically, so that an empty file means lost data. Servers are skipped.

    The caller holds the lock against concurrent creation.

    Raises:
        UserError: It cannot be created.
    """
    file = file_of(url)
    if file is None or file.exists():
        return
    new_file = file.with_name(f"{file.name}.new")
    try:
        new_file.unlink(missing_ok=True)
        connection = sqlite3.connect(new_file)
        try:
            connection.execute("PRAGMA journal_mode=WAL")  # writes the first page
        finally:
            connection.close()
        new_file.replace(file)
    except (OSError, sqlite3.Error) as error:
        raise store_error(url, error) from error


def enable_write_ahead_log(connection: Any, _: Any) -> None:
    """Let readers read during a write, and lose no commit if the machine stops."""
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")


@contextmanager
def translate_errors(url: str) -> Iterator[None]:
    """Turn errors of a database into UserErrors that name the store and a remedy."""
    try:
        yield
    except SQLAlchemyError as error:
        raise store_error(url, error) from error
    except UnicodeDecodeError as error:
        if not _is_of_sqlite(error):
            raise
        raise store_error(url, sqlite3.DatabaseError("database disk image is malformed")) from error


def _is_of_sqlite(error: UnicodeDecodeError) -> bool:
    """Return whether SQLite's error message could not be decoded, as with a damaged file; not an evaluation's error."""
    *_, (innermost, _) = traceback.walk_tb(error.__traceback__)
    file = innermost.f_code.co_filename
    return file == __file__ or "sqlalchemy" in Path(file).parts


def store_error(url: str, error: BaseException) -> UserError:
    """Return the error for a store that cannot be used, with its cause and a remedy."""
    server = is_server(make_url(url))
    remedy = "Check the server" if server else "Free the file or its disk"
    reason = without_passwords(_first_line(error.__cause__ or error))
    if "malformed" in reason:
        message = (
            f"store {printable_url(url)} is damaged: {reason.rstrip('.')}. Restore a copy, or try "
            "`sqlite3 FILE .recover`."
        )
        return UserError("bad-file", message, option="--storage", storage=printable_url(url), problem="damaged")
    if "not a database" in reason:
        message = f"store {printable_url(url)} is not a SQLite database. Give another --storage."
        return UserError("bad-file", message, option="--storage", storage=printable_url(url), problem="format")
    cause = type(error.__cause__ or error).__name__
    message = (
        f"store {printable_url(url)} cannot be used: {reason.rstrip('.')}. Stored rows are safe. {remedy} and run the"
        " same command again, or give another --storage."
    )
    fields = {"option": "--storage", "storage": printable_url(url), "server": server, "cause": cause}
    return UserError("unavailable", message, **fields)


def file_of(url: str) -> Path | None:
    """Return the file of a SQLite store; None for a server."""
    db_url = make_url(url)
    return Path(str(db_url.database)) if db_url.get_backend_name() == "sqlite" else None


def file_identity(file: Path | None) -> tuple[int, int] | None:
    """Return device and inode of a file, to detect its replacement; None for a missing or empty file."""
    try:
        file_stat = None if file is None else file.stat()
    except OSError:
        return None
    return (file_stat.st_dev, file_stat.st_ino) if file_stat is not None and file_stat.st_size else None


def printable_url(url: str) -> str:
    """Return the printable name of a database: its SQLite file, or its URL without the password."""
    return str(file_of(url) or without_passwords(url))


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
