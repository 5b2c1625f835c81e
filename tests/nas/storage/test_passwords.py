"""Passwords in URLs, however they are spelt: no message, Row or repr shows one."""

import shlex
import sys
from pathlib import Path

import pytest

from nas.provenance import command
from nas.storage.database import shown_url, unusable
from nas.storage.passwords import shape_of, without_passwords
from nas.storage.store import Store
from nas.study import Study
from own_process import in_own_process
from search_spaces.errors import UserError

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


@pytest.mark.parametrize("url", SPELLINGS)
def test_no_message_and_no_row_shows_a_password(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError) as refused:
        Store(url, make=True)
    assert hidden(str(refused.value)), refused.value
    monkeypatch.setattr(sys, "argv", ["nas", "search", "--storage", url, f"--storage={url}"])
    if url != "postgresql://me:sesame":  # a host and a port, as far as anybody can tell
        assert hidden(command())
        assert hidden(without_passwords(url))
        assert hidden(repr(Study("s", url, [])))
        assert hidden(Study("s", url, [])._repr_html_())
    assert hidden(shape_of(url))


@pytest.mark.parametrize("url", [url for url in SPELLINGS if "sqlite" not in url])
def test_the_command_line_shows_no_password(url: str, tmp_path: Path) -> None:
    words = ["results", "--storage", url]
    if url in SPELLINGS[::6]:  # the others are the same in this process
        done = in_own_process(*words, cwd=tmp_path)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert hidden(done.stdout + done.stderr)


def test_what_a_driver_says_is_shown_without_passwords() -> None:
    error = OSError("cannot connect with password=sesame to postgresql://me:sesame@h/db")
    assert hidden(str(unusable("postgresql://me:sesame@h/db", error)))


@pytest.mark.parametrize(
    "word",
    ["params<=100k", "depth=7,topology=dca(k=2)", "lr=1e-3", "timm:vit_small", "mine.py:Toy", "/a/b,tokenizer=trained"],
)
def test_other_words_stay_as_they_are(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/nas", "search", word])
    assert command() == shlex.join(["nas", "search", word])


def test_what_tells_stores_apart_is_shown() -> None:
    assert shown_url("postgresql://me:sesame@host:1/db") == "postgresql://me:***@host:1/db"
    assert shown_url("sqlite:///a/b.db") == "a/b.db"
