"""Output that cannot be written, closed streams, and plug-ins that end the program."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from command_line import Command, CommandResult
from nas.store.store import Store
from own_process import in_own_process
from toy_rows import a_row
from toy_searches import STORE, TOYS

EXITS = """
import sys
sys.path.insert(0, {folder!r})
from toy_tasks import Toy

class AtMaking(Toy):
    name = "at-making"

    def __init__(self, data=None):
        sys.exit(0)

class AtPreparing(Toy):
    name = "at-preparing"

    def prepare(self):
        sys.exit(0)
"""

WITHOUT_READER = "import os; reader, writer = os.pipe(); os.close(reader); os.dup2(writer, 1)"


def nas(*words: str, out: Path | None = None) -> CommandResult:
    return in_own_process("-q", *words, out=out)


@pytest.fixture(autouse=True)
def _folder_with_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Store(STORE, make=True).add(a_row(), "s")


@pytest.mark.outside
def test_a_full_disk_is_reported_in_one_line() -> None:
    for form in ("table", "csv"):
        result = nas("results", "--format", form, out=Path("/dev/full"))
        assert result.returncode == 2
        assert "No space left on device" in result.stderr
        assert len(result.stderr.splitlines()) == 1


@pytest.mark.outside
def test_a_reader_that_closes_the_pipe_is_no_error() -> None:
    for words in (["search", "--help"], ["list", "topologies"], ["results", "--format", "csv"]):
        result = in_own_process("-q", *words, first=partial(exec, WITHOUT_READER, {}))
        assert (result.returncode, result.stderr) == (1, ""), words
    reader, writer = os.pipe()
    os.close(reader)
    try:
        command = [sys.executable, "-m", "nas", "-q", *words]
        real = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=300, check=False)
    finally:
        os.close(writer)
    assert (real.returncode, real.stderr) == (1, "")


def test_a_closed_output_fails_before_the_work() -> None:
    command = [sys.executable, "-m", "nas", "evaluate", f"{TOYS}:Toy"]
    close_stdout = "import os, sys; os.close(1); os.execv(sys.argv[1], sys.argv[1:])"
    result = subprocess.run(
        [sys.executable, "-c", close_stdout, *command], stderr=subprocess.PIPE, text=True, check=False
    )
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("nas: ")
    assert Store(STORE).studies() == ["s"]


def test_without_standard_error_rows_are_printed_alone() -> None:
    Store(STORE, make=True).add(a_row(seed=1), "s")
    assert "seed" in nas("results").stderr
    words = [sys.executable, "-m", "nas", "results", "--format", "csv"]
    result = subprocess.run(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, preexec_fn=lambda: os.close(2), text=True, check=False
    )  # fmt: skip
    assert result.returncode == 0
    assert len(result.stdout.splitlines()) == 3
    assert result.stdout.startswith('"task"')


def test_unwritable_output_fails_before_the_training(command: Command) -> None:
    Path("folder").mkdir()
    words = ("evaluate", f"{TOYS}:Toy", "--preset", "smoke")
    for output, reason in (("folder", "Is a directory"), ("/proc/x.csv", "No such file")):
        error = command(*words, "--output", output, "--format", "csv").assert_error("unwritable", path=output)
        assert reason in str(error)
    picture = "pictrues/front.png"
    result = command("search", f"{TOYS}:Toy", "--preset", "smoke", "--plot", picture)
    result.assert_error("unwritable", path=picture, folder="pictrues")
    assert not Path("pictrues").exists()
    assert Store(STORE).studies() == ["s"]
    assert not list(Path("folder").iterdir())


@pytest.mark.outside
def test_error_names_the_plugin_that_ends_the_program() -> None:
    Path("exits.py").write_text(EXITS.format(folder=str(TOYS.parent)))
    for name in ("AtMaking", "AtPreparing"):
        result = nas("search", f"exits.py:{name}", "--preset", "smoke", "--trials", "1", "--workers", "1")
        assert result.returncode == 2
        assert "SystemExit: 0 (exits.py, line " in result.stderr.splitlines()[-1]
        assert "Traceback" not in result.stderr


def test_an_unwritable_result_stays_in_the_store(command: Command) -> None:
    Path("full.csv").symlink_to("/dev/full")
    result = command("evaluate", f"{TOYS}:Toy", "--preset", "smoke", "-o", "full.csv")
    assert result.returncode == 2
    (row,) = Store(STORE).read(["evaluations"]).rows
    where = f"identity = '{row.identity()}'"
    assert f'--study all --where "{where}" -o FILE' in result.stderr.splitlines()[-1]
    assert command("results", "--study", "all", "--where", where, "-o", "a.csv").returncode == 0
    assert row.identity() in Path("a.csv").read_text()
    result = command("evaluate", f"{TOYS}:Stumbling", "--arch", "depth=1", "--preset", "smoke", "-o", "full.csv")
    assert "No space left" in result.stderr
    assert "RuntimeError: a layer broke" in result.stderr
