"""Addresses of databases, and errors of those that cannot be used; the server is a real one."""

import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sql

import nas.store.database
from expect import check, raises
from nas.store.database import is_server, printable_url, psycopg_url, store_error
from nas.store.store import Store
from postgres_server import Server
from search_spaces.support.errors import UserError
from waiting import run_at_once


def test_server_url_gets_our_driver_and_keeps_the_users_options() -> None:
    for name in ("postgresql", "postgres", "postgresql+psycopg2"):
        url = psycopg_url(sql.make_url(f"{name}://u:p@h:1/d?connect_timeout=3&sslmode=require"))
        assert url.drivername == "postgresql+psycopg"
        assert (url.username, url.password, url.host, url.port, url.database) == ("u", "p", "h", 1, "d")
        assert url.query["connect_timeout"] == "3"
        assert url.query["sslmode"] == "require"
        assert url.query["tcp_user_timeout"] == "30000"


def test_other_databases_are_an_error(tmp_path: Path) -> None:
    assert is_server(sql.make_url("postgresql://h/d"))
    assert not is_server(sql.make_url("sqlite:///f"))
    with raises("unsupported", option="--storage", value="mysql", choices=("sqlite", "postgresql")):
        Store("mysql://u:p@h/d", make=True)


def test_missing_driver_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nas.store.database, "find_spec", lambda name: None)
    with raises("needs-extra", option="--storage", extra="postgres") as error:
        Store("postgresql://u:p@h/d", make=True)
    assert "u:***@h/d" in str(error.value)


def test_wrong_password_or_address_fails_at_once(postgres: Server) -> None:
    for url in (postgres.url().replace(postgres.password, "wrong"), "postgresql://u:wrong@127.0.0.1:1/d"):
        with raises("unavailable", storage=printable_url(url), server=True) as error:
            Store(url, make=True)
        assert "wrong" not in f"{error.value} {error.value.fields}"


def test_unusable_file_and_unusable_server_are_told_apart() -> None:
    file_error = store_error("sqlite:///f", sqlite3.OperationalError("locked"))
    check(file_error, "unavailable", storage="f", server=False)
    server_error = store_error("postgresql://h/d", ValueError("gone"))
    check(server_error, "unavailable", storage="postgresql://h/d", server=True)


def test_parallel_creation_gives_one_store(postgres: Server) -> None:
    url, errors = postgres.database(), []

    def make(number: int) -> None:
        try:
            Store(url, make=True)
        except UserError as error:
            errors.append(error)

    run_at_once(make, 6)
    assert not errors
    assert Store(url).studies() == []
