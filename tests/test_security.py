"""The security promises for foreign files and names, with a test each.

Only code named on the command line (FILE.py:CLASS, MODULE:CLASS) and installed code runs. All else is data.

- Nothing is unpickled, except by torch with weights only: no checkpoint, weights or cache, whatever its digest.
- Nothing is imported from the working directory or a folder of data.
- Checkpoints and Rows name no code to run.
- Sizes are bounded: lines of rows, documents, records, tokenizers and images.
- Folders of data: only regular files are read, never pipes, sockets or devices. Links to files are followed.
- Archives are not unpacked to the disk and may only hold files and folders below their own, without links.
- Terminals get text without control characters, notebooks plain text, spreadsheets no formulas.
- A study's name creates no file outside the store's folder.
- Passwords are never shown: see tests/nas/environment/test_passwords.py.
"""

import hashlib
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError

import nas
from command_line import run_nas
from expect import raises, warns
from grouped import grouped
from nas.store.locks import only_writer
from nas.store.store import Store
from nas.store.study_names import check_name
from search_spaces.architecture.checkpoint import WEIGHTS, Record, read_weights, save_checkpoint
from search_spaces.support.cache import cache_arrays, cache_bytes
from search_spaces.support.errors import printable
from tasks.language.corpus import folder_corpus
from tasks.training.checkpoint import Checkpoint
from toy_rows import LITTLE, a_row
from toy_searches import TOYS, a_search

SMALL = ["--space", "head-dim", "--sampler", "random"]
HOSTILE = "\x1b[31mred\x1b]0;title\x07 \x9b31m\u202etxet\u2066 <b>bold</b>"


class Bomb:
    """A pickle that leaves a mark when it is loaded."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """The file that hostile code would create."""
    return tmp_path / "it-ran"


def test_pickle_is_no_checkpoint_even_with_its_digest(tmp_path: Path, mark: Path) -> None:
    training = Checkpoint(tmp_path / "run", "a run")
    training.save({"step": 1})
    (path,) = (tmp_path / "run").iterdir()
    name = path.name.split(".")
    path.unlink()
    torch.save({"run": "a run", "state": Bomb(mark)}, tmp_path / "bomb")
    for content in ((tmp_path / "bomb").read_bytes(), pickle.dumps(Bomb(mark))):
        digest = hashlib.sha256(content).hexdigest()
        (tmp_path / "run" / f"{name[0]}.000002.{digest}.ckpt").write_bytes(content)
        with warns("bad-file", path=str(tmp_path / "run" / f"{name[0]}.000002.{digest}.ckpt")):
            assert training.load() is None
    assert not mark.exists()


def test_pickle_is_neither_weights_nor_cache(tmp_path: Path, mark: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NAS_CACHE", str(tmp_path / "cache"))
    bomb = pickle.dumps(Bomb(mark))
    save_checkpoint(tmp_path / "network", {"w": torch.zeros(2)}, _record())
    (tmp_path / "network" / WEIGHTS).write_bytes(bomb)
    with raises("bad-file", path=str(tmp_path / "network" / WEIGHTS)):
        read_weights(tmp_path / "network")
    cache_bytes("a", lambda: b"text")
    (tmp_path / "cache" / "a").write_bytes(hashlib.sha256(bomb).hexdigest().encode() + b"\n" + bomb)
    with pytest.raises(SafetensorError):
        cache_arrays("a", dict)
    assert not mark.exists()


def _record() -> Record:
    return Record(task="any", task_version=1, architecture=LITTLE, step=1)


NAS, MODULE = [str(Path(sys.executable).with_name("nas"))], [sys.executable, "-m", "nas"]
SEARCH = ["search", f"{TOYS}:Toy", "--preset", "smoke", "--trials", "2", "--workers", "2", *SMALL]


@pytest.mark.parametrize(
    "command",
    [
        pytest.param([*NAS, *SEARCH], marks=pytest.mark.outside),
        pytest.param([*MODULE, "cost", f"{TOYS}:Toy"], marks=pytest.mark.outside),
        [*MODULE, "results", "--from", "digits-vit-topologies", "--where", "depth>1"],
    ],
    ids=("search", "cost", "results"),
)
def test_nothing_is_imported_from_the_working_directory(tmp_path: Path, mark: Path, command: list[str]) -> None:
    for module in ("numpy", "torch", "optuna", "joblib", "typer", "rich", "duckdb", "sqlalchemy", "tasks"):
        (tmp_path / f"{module}.py").write_text(f"import os\nos.makedirs({str(mark)!r}, exist_ok=True)\n")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not mark.exists()


def test_nothing_is_imported_from_a_folder_of_data(tmp_path: Path, mark: Path) -> None:
    for module in ("torch", "dataset", "__init__", "loading_script", "tokenizer"):
        (tmp_path / f"{module}.py").write_text(f"import os\nos.makedirs({str(mark)!r}, exist_ok=True)\n")
    (tmp_path / "train.jsonl").write_text(json.dumps({"text": "some text"}) + "\n")
    folder_corpus(tmp_path, "text")
    assert not mark.exists()


def test_task_named_in_a_checkpoint_is_not_run(tmp_path: Path, mark: Path) -> None:
    program = tmp_path / "mine.py"
    program.write_text(f"import os\nos.makedirs({str(mark)!r}, exist_ok=True)\n")
    settings = {"reference": f"{program}:Mine", "preset": "smoke"}
    record = Record(task=f"{program}:Mine", task_version=1, architecture=LITTLE, step=1, settings=settings)
    save_checkpoint(tmp_path / "network", {"w": torch.zeros(2)}, record)
    with raises("missing-value", option="--task", task=f"{program}:Mine"):
        nas.retrofit(tmp_path / "network", "dca", storage=f"sqlite:///{tmp_path}/s.db")
    assert not mark.exists()


@pytest.mark.parametrize("count", [2, pytest.param(7, marks=pytest.mark.slow)])
def test_study_of_any_printable_name_stays_in_its_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.chdir(tmp_path)
    names = ("../../outside", "'; DROP TABLE nas_rows; --", "a/b", "it's", 'a "b"', "..", "%s{0}")
    url = a_search(tmp_path / "in")["storage"]
    for number, name in enumerate(map(check_name, names)):
        if number < count:
            assert len(nas.search(**{**a_search(tmp_path / "in"), "trials": 1, "study": name})) == 1
        else:  # used like a search uses it
            store = Store(url, make=True)
            with only_writer(url, name):
                store.add(a_row(seed=number), name, 0)
            store.close()
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    assert {path.parent for path in tmp_path.rglob("*.lock")} <= {tmp_path / "in" / "store"}
    for name in names:
        study = nas.load(name, storage=url)
        assert (study.name, len(study)) == (name, 1)


def test_unprintable_study_names_are_refused(tmp_path: Path) -> None:
    for name in ("a\nb", "a\x1b[31m", "a\u202eb", " ", " a", "a,b", "all", "\ud800"):
        with raises("bad-syntax", option="--study", value=name) as error:
            check_name(name)
        assert printable(str(error.value)) == str(error.value)
    with raises("too-large", option="--study", value="a" * 101, most=100):
        nas.search(**{**a_search(tmp_path), "study": "a" * 101})
    assert not list(tmp_path.glob("*/*.db"))


@pytest.fixture
def hostile_store(tmp_path: Path) -> str:
    """A store whose rows contain text that terminals, browsers and spreadsheets would execute."""
    url = f"sqlite:///{tmp_path}/studies.db"
    store = Store(url, make=True)
    for seed, text in enumerate((HOSTILE, "=1+1", "+1", "-1", "@SUM(A1)")):
        row = a_row(seed=seed, preset=text, recipe={f"note{seed}": text}, status="failed", error=text, metrics={})
        store.add(row, "evaluations")
        store.add(a_row(seed=seed, preset=text, recipe={HOSTILE: text}), "evaluations")
    return url


def test_no_control_of_a_row_reaches_the_terminal(
    tmp_path: Path, hostile_store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = (
        ["results", "--columns", "all", "--limit", "1"],
        ["results", "--columns", "preset,error,status"],
        ["front", "--plot", "front.png"],
        ["list", "studies"],
        ["results", "--columns", HOSTILE],
    )
    with grouped() as case:
        for words in commands:
            with case(" ".join(words)):
                done = run_nas(capsys, *words, "--storage", hostile_store)
                assert printable(done.stdout) == done.stdout
                assert printable(done.stderr) == done.stderr
                assert done.returncode in (0, 2)
                assert "Traceback" not in done.stderr


def test_controls_are_escaped_and_other_text_is_kept() -> None:
    assert printable("tab\tline\nÄ é 漢 🙂") == "tab\tline\nÄ é 漢 🙂"
    assert (
        printable("\x1b\x9b\u202a\u202e\u2066\u2069\x7f\r\0")
        == r"\u001b\u009b\u202a\u202e\u2066\u2069\u007f\u000d\u0000"
    )
    assert json.loads(f'"{printable(chr(0x9B) + chr(0x202E))}"') == "\x9b\u202e"


def test_notebooks_show_text_and_spreadsheets_run_nothing(
    hostile_store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    study = nas.load("evaluations", storage=hostile_store)
    for html in (study._repr_html_(), *(row._repr_html_() for row in study.rows())):
        assert "<b>" not in html
    words = ["results", "--storage", hostile_store, "--format", "csv", "--columns", "preset,error"]
    done = run_nas(capsys, *words)
    assert done.stdout.count("\n") == 11
    for line in done.stdout.splitlines():
        assert not any(cell.lstrip('"').startswith(("=", "+", "-", "@")) for cell in line.split(","))
