"""A PostgreSQL server from Debian's binaries: on a free loopback port, with passwords, in a temporary folder."""

import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import sqlalchemy as sql

_USER, _LOW = "nas", "nobody"
_SETTINGS = ("-c fsync=off", "-c shared_buffers=16MB", "-c max_connections=60", "-c autovacuum=off")


def programs() -> Path | None:
    """The folder of initdb and pg_ctl, of the newest installed version."""
    paths = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    on_path = shutil.which("initdb")
    return paths[-1].parent if paths else Path(on_path).parent if on_path else None


def is_required() -> bool:
    """Whether tests fail, rather than skip, without the binaries."""
    return os.environ.get("NAS_TEST_POSTGRES") == "required"


@dataclass(frozen=True)
class Server:
    """A server.

    Attributes:
        folder: Its data.
        port: Its port on loopback.
        password: The password of its only user.
    """

    folder: Path
    port: int
    password: str

    def url(self, database: str = "postgres") -> str:
        """The URL of a database, as users write it."""
        return f"postgresql://{_USER}:{self.password}@127.0.0.1:{self.port}/{database}"

    def database(self) -> str:
        """Create a database; return its URL."""
        name = f"d{secrets.token_hex(4)}"
        self.ask(f"CREATE DATABASE {name}")
        return self.url(name)

    def ask(self, statement: str, url: str | None = None) -> list[tuple[object, ...]]:
        """Run a statement; return its rows."""
        address = sql.make_url(url or self.url()).set(drivername="postgresql+psycopg")
        engine = sql.create_engine(address, isolation_level="AUTOCOMMIT", poolclass=sql.NullPool)
        with engine.connect() as connection:
            answer = connection.execute(sql.text(statement))
            return [tuple(row) for row in answer] if answer.returns_rows else []

    def start(self) -> None:
        options = " ".join((*_SETTINGS, f"-c port={self.port}", "-c listen_addresses=127.0.0.1", "-k ''"))
        _run("pg_ctl", "start", "-w", "-D", self.folder, "-l", self.folder / "log", "-o", options)

    def stop(self, how: Literal["fast", "immediate"] = "immediate") -> None:
        """Stop the server; `immediate` is like a crash of the machine."""
        _run("pg_ctl", "stop", "-w", "-D", self.folder, "-m", how)

    def restart(self) -> None:
        """Crash the server and start it again."""
        self.stop()
        self.start()


@contextmanager
def a_server() -> Iterator[Server]:
    """Run a server in the context, in the folder of tests' files: a database is 300 files."""
    parent = os.environ.get("PYTEST_DEBUG_TEMPROOT")
    with TemporaryDirectory(prefix="nas-postgres-", dir=parent) as name, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        folder, password = Path(name), secrets.token_hex(8)
        server = Server(folder / "data", free.getsockname()[1], password)
        (folder / "secret").write_text(password)
        if os.getuid() == 0:  # the programs refuse root
            shutil.chown(folder, _LOW)
            shutil.chown(folder / "secret", _LOW)
        free.close()
        _run("initdb", "-D", server.folder, "-U", _USER, "--auth=scram-sha-256", "-N", f"--pwfile={folder}/secret")
        server.start()
        try:
            yield server
        finally:
            server.stop("fast")  # leaves nothing in shared memory


def _run(program: str, *words: object) -> None:
    low = {"user": _LOW, "extra_groups": []} if os.getuid() == 0 else {}
    folder = programs()
    assert folder is not None, "initdb is not installed"
    command = [str(folder / program), *map(str, words)]
    result = subprocess.run(command, capture_output=True, text=True, cwd="/", timeout=60, **low)
    assert result.returncode == 0, f"{program}: {result.stdout}{result.stderr}"
