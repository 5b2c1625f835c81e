"""Passwords in URLs, however they are spelt: no message, Row or repr shows one."""

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


def hidden(text: str) -> bool:
    return not any(word in text for word in ("sesame", "s%65same", "ses/ame", "ame@"))


def test_no_message_and_no_row_shows_a_password(monkeypatch: pytest.MonkeyPatch) -> None:
    with grouped() as case:
        for url in SPELLINGS:
            with case(url):
                with pytest.raises(UserError) as refused:
                    Store(url, make=True)
                assert hidden(f"{refused.value} {refused.value.fields}"), refused.value
                monkeypatch.setattr(sys, "argv", ["nas", "search", "--storage", url, f"--storage={url}"])
                if url != "postgresql://me:sesame":  # a host and a port, as far as anybody can tell
                    assert hidden(command_line())
                    assert hidden(without_passwords(url))
                    assert hidden(repr(Study("s", url, [])))
                    assert hidden(Study("s", url, [])._repr_html_())
                assert hidden(visible_part(url))


def test_commands_show_no_password(command: Command) -> None:
    with grouped() as case:
        for url in SPELLINGS[::3]:  # others are the same in this process
            with case(url):
                done = command("results", "--storage", url)
                assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
                assert hidden(done.stdout + done.stderr)


def test_words_of_a_driver_are_shown_without_passwords() -> None:
    error = OSError("cannot connect with password=sesame to postgresql://me:sesame@h/db")
    assert hidden(str(store_error("postgresql://me:sesame@h/db", error)))


def test_other_words_are_shown_as_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["params<=100k", "depth=7,topology=dca(k=2)", "lr=1e-3", "timm:vit_small", "mine.py:Toy"]
    words.append("/a/b,tokenizer=trained")
    monkeypatch.setattr(sys, "argv", ["/usr/bin/nas", "search", *words])
    assert command_line() == shlex.join(["nas", "search", *words])


def test_shown_url_tells_stores_apart() -> None:
    assert printable_url("postgresql://me:sesame@host:1/db") == "postgresql://me:***@host:1/db"
    assert printable_url("sqlite:///a/b.db") == "a/b.db"
