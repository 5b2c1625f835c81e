"""A sandboxed DuckDB: in memory, with files, network and settings locked, and bounded work."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Timer
from typing import Any

import duckdb
import pyarrow as pa

from search_spaces.support.errors import Kind

SECONDS = 10.0
"""Time limit of a query."""

_CONFIG: Mapping[str, Any] = {
    "allow_community_extensions": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_external_access": "false",
    "lock_configuration": "true",
    "max_expression_depth": "200",  # planning a sum of 500 terms takes seconds, of 800 half a minute
    "memory_limit": "1GB",
    "python_enable_replacements": "false",
    "extension_directory": "nowhere",  # otherwise settings and errors reveal the home folder
    "secret_directory": "nowhere",
    "temp_directory": "",
    "threads": "1",
}

_KINDS: Mapping[type[duckdb.Error], Kind] = {
    duckdb.BinderException: "wrong-type",
    duckdb.CatalogException: "unknown-name",
    duckdb.ConversionException: "wrong-type",
    duckdb.InvalidInputException: "bad-data",
    duckdb.OutOfRangeException: "out-of-range",
    duckdb.PermissionException: "unsupported",
}
"""DuckDB's error class -> kind of UserError; all others are "bad-syntax"."""


@contextmanager
def rows_in_memory(table: pa.Table) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a connection that sees only a copy of a table, named `rows`."""
    with duckdb.connect(":memory:", config=dict(_CONFIG)) as connection:
        connection.register("selected", table)
        connection.execute("CREATE TABLE rows AS FROM selected")
        connection.unregister("selected")
        yield connection


@contextmanager
def time_limit(connection: duckdb.DuckDBPyConnection, seconds: float) -> Iterator[None]:
    """Interrupt a connection's query after this time, with duckdb.InterruptException."""
    timer = Timer(seconds, connection.interrupt)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def kind_of(error: Exception) -> Kind:
    """Return the kind of a DuckDB error."""
    return next((kind for error_class, kind in _KINDS.items() if isinstance(error, error_class)), "bad-syntax")


def reason_of(error: Exception) -> str:
    """Return DuckDB's reason in one line, without full stop and without its advice on settings."""
    text = str(error).partition(": ")[2].partition("\n")[0].partition(" Use ")[0]
    return "".join(character for character in text if character.isprintable()).rstrip(".!")
