"""How databases are addressed, and what is said of those that cannot be used. The server is a real one."""

import sqlite3
from pathlib import Path
from threading import Thread

import pytest
import sqlalchemy as sql

import nas.storage.database
from nas.storage.database import address, is_server, unusable
from nas.storage.store import Store
from postgres_server import Server
from search_spaces.errors import UserError


def test_a_server_is_addressed_with_our_driver_and_what_the_user_says_of_it() -> None:
    for name in ("postgresql", "postgres", "postgresql+psycopg2"):
        found = address(sql.make_url(f"{name}://u:p@h:1/d?connect_timeout=3&sslmode=require"))
        assert found.drivername == "postgresql+psycopg"
        assert (found.username, found.password, found.host, found.port, found.database) == ("u", "p", "h", 1, "d")
        assert found.query["connect_timeout"] == "3"
        assert found.query["sslmode"] == "require"
        assert found.query["tcp_user_timeout"] == "30000"


def test_other_databases_are_refused(tmp_path: Path) -> None:
    assert is_server(sql.make_url("postgresql://h/d"))
    assert not is_server(sql.make_url("sqlite:///f"))
    with pytest.raises(UserError, match=r"sqlite:///FILE or postgresql://.*, got mysql://"):
        Store("mysql://u:p@h/d", make=True)


def test_a_driver_that_is_not_there_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nas.storage.database, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r'u:\*\*\*@h/d .*pip install "\.\[postgres\]"'):
        Store("postgresql://u:p@h/d", make=True)


def test_a_wrong_password_or_address_is_told_at_once(postgres: Server) -> None:
    for url in (postgres.url().replace(postgres.password, "wrong"), "postgresql://u:wrong@127.0.0.1:1/d"):
        with pytest.raises(UserError, match=r"store postgresql://\w+:\*\*\*@127.*(password|refused)") as told:
            Store(url, make=True)
        assert "\n" not in str(told.value)
        assert "wrong" not in str(told.value)


def test_what_is_to_be_done_depends_on_what_the_store_is() -> None:
    assert "free the file or its disk" in str(unusable("sqlite:///f", sqlite3.OperationalError("locked")))
    assert "see to the server" in str(unusable("postgresql://h/d", ValueError("gone")))


def test_two_that_make_the_tables_at_once_make_one_store(postgres: Server) -> None:
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


def test_a_server_whose_tables_are_older_has_rows_of_a_trial_once(postgres: Server) -> None:
    url = postgres.database()
    Store(url, make=True)
    postgres.ask("DROP INDEX nas_rows_once", url)
    Store(url, make=True)
    assert postgres.ask("SELECT indexname FROM pg_indexes WHERE indexname = 'nas_rows_once'", url)
