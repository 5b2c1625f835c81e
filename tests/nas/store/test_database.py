"""How databases are addressed, and what is said of those that cannot be used. The server is a real one."""

import sqlite3
from pathlib import Path
from threading import Thread

import pytest
import sqlalchemy as sql

import nas.store.database
from expect import check, raises
from nas.store.database import is_server, printable_url, psycopg_url, store_error
from nas.store.store import Store
from postgres_server import Server
from search_spaces.support.errors import UserError


def test_server_url_gets_our_driver_and_keeps_the_users_options() -> None:
    for name in ("postgresql", "postgres", "postgresql+psycopg2"):
        found = psycopg_url(sql.make_url(f"{name}://u:p@h:1/d?connect_timeout=3&sslmode=require"))
        assert found.drivername == "postgresql+psycopg"
        assert (found.username, found.password, found.host, found.port, found.database) == ("u", "p", "h", 1, "d")
        assert found.query["connect_timeout"] == "3"
        assert found.query["sslmode"] == "require"
        assert found.query["tcp_user_timeout"] == "30000"


def test_other_databases_are_refused(tmp_path: Path) -> None:
    assert is_server(sql.make_url("postgresql://h/d"))
    assert not is_server(sql.make_url("sqlite:///f"))
    with raises("unsupported", option="--storage", value="mysql", choices=("sqlite", "postgresql")):
        Store("mysql://u:p@h/d", make=True)


def test_missing_driver_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nas.store.database, "find_spec", lambda name: None)
    with raises("needs-extra", option="--storage", extra="postgres") as refused:
        Store("postgresql://u:p@h/d", make=True)
    assert "u:***@h/d" in str(refused.value)


def test_wrong_password_or_address_is_refused_at_once(postgres: Server) -> None:
    for url in (postgres.url().replace(postgres.password, "wrong"), "postgresql://u:wrong@127.0.0.1:1/d"):
        with raises("unavailable", storage=printable_url(url), server=True) as refused:
            Store(url, make=True)
        assert "wrong" not in f"{refused.value} {refused.value.fields}"


def test_unusable_file_and_unusable_server_are_told_apart() -> None:
    locked = store_error("sqlite:///f", sqlite3.OperationalError("locked"))
    check(locked, "unavailable", storage="f", server=False)
    gone = store_error("postgresql://h/d", ValueError("gone"))
    check(gone, "unavailable", storage="postgresql://h/d", server=True)


def test_tables_made_at_once_by_many_are_one_store(postgres: Server) -> None:
    url, failed = postgres.database(), []

    def make() -> None:
        try:
            Store(url, make=True)
        except UserError as error:
            failed.append(error)

    threads = [Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert Store(url).studies() == []
