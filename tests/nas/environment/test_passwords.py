"""Passwords in URLs of any spelling: no message, Row or repr shows one."""

import shlex
import sys

import pytest

from command_line import Command
from grouped import grouped
from nas.environment.passwords import visible_part, without_passwords
from nas.environment.provenance import command as command_line
from nas.report.study import Study
from nas.store.database import printable_url, store_error
from nas.store.store import Store
from search_spaces.support.errors import UserError

SPELLINGS = [
    "postgresql://me:sesame@localhost:1/db",
    "postgresql+psycopg://me:sesame@localhost:1/db",
    "postgresql://:sesame@localhost:1/db",
    "postgresql://me:ses/ame@localhost:1/db",
    "postgresql://me:sesame@ame@localhost:1/db",
    "postgresql://me:ame sesame@localhost:1/db",
    "postgresql://me:s%65same@localhost:1/db",
    "postgresql://localhost:1/db?password=sesame",
    "postgresql://localhost:1/db?user=me&PassWord=sesame&connect_timeout=1",
    "postgresql://localhost:1/db?pass%77ord=sesame",
    "postgresql://localhost:1/db?sslpassword=sesame&passwd=sesame",
    "postgresql://me:sesame@localhost:port/db",
    "postgresql://me:sesame@[::1/db",
    "postgresql://me:sesame",
    "postgresql:/me:sesame@localhost/db",
    "postgresql//me:sesame@localhost/db",
    "postgresql:me:sesame@localhost/db",
    "me:sesame@localhost",
    "host=localhost password=sesame user=me",
    "host=localhost password='ame sesame' user=me",
    "mysql+nobody://me:sesame@localhost/db",
    "mssql+pyodbc:///?odbc_connect=DRIVER%3DX%3BPWD%3Dsesame",
    "sqlite://me:sesame@localhost/db",
]


def hides_password(text: str) -> bool:
    return not any(word in text for word in ("sesame", "s%65same", "ses/ame", "ame@"))


def test_no_message_and_no_row_shows_a_password(monkeypatch: pytest.MonkeyPatch) -> None:
    with grouped() as case:
        for url in SPELLINGS:
            with case(url):
                with pytest.raises(UserError) as error:
                    Store(url, make=True)
                assert hides_password(f"{error.value} {error.value.fields}"), error.value
                monkeypatch.setattr(sys, "argv", ["nas", "search", "--storage", url, f"--storage={url}"])
                if url != "postgresql://me:sesame":  # looks like a host and a port
                    assert hides_password(command_line())
                    assert hides_password(without_passwords(url))
                    assert hides_password(repr(Study("s", url, [])))
                    assert hides_password(Study("s", url, [])._repr_html_())
                assert hides_password(visible_part(url))


def test_commands_show_no_password(command: Command) -> None:
    with grouped() as case:
        for url in SPELLINGS[::3]:  # a sample: the code is the same as above
            with case(url):
                result = command("results", "--storage", url)
                assert (result.returncode, result.stderr.count("\n")) == (2, 1), result.stderr
                assert hides_password(result.stdout + result.stderr)


def test_messages_of_a_driver_show_no_password() -> None:
    error = OSError("cannot connect with password=sesame to postgresql://me:sesame@h/db")
    assert hides_password(str(store_error("postgresql://me:sesame@h/db", error)))


def test_other_words_stay_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["params<=100k", "depth=7,topology=dca(k=2)", "lr=1e-3", "timm:vit_small", "mine.py:Toy"]
    words.append("/a/b,tokenizer=trained")
    monkeypatch.setattr(sys, "argv", ["/usr/bin/nas", "search", *words])
    assert command_line() == shlex.join(["nas", "search", *words])


def test_printable_url_tells_stores_apart() -> None:
    assert printable_url("postgresql://me:sesame@host:1/db") == "postgresql://me:***@host:1/db"
    assert printable_url("sqlite:///a/b.db") == "a/b.db"
