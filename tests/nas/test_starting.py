"""`nas new-task` and `nas new-topology`: what they write keeps its contract, and takes nothing's place."""

import errno
import os
import runpy
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import nas
from nas import starting
from nas.cli import main
from search_spaces.errors import UserError
from search_spaces.topologies.base import Topology
from tasks.base import Task

HERE = Path(__file__).parents[1]
TEMPLATES = HERE.parent / "nas" / "templates"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # Other tests have loaded tasks from files, which puts the folders of these on the path, moons.py's among them.
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != str(HERE / "tasks")])


def run(*words: str, **more: str) -> str:
    environment = {**os.environ, "NAS_WORKERS": "1", **more}
    done = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.outside
def test_a_new_task_keeps_the_contract_and_is_searched() -> None:
    written = nas.new_task("two-moons")
    assert written.file == Path("two_moons.py")
    assert "new" not in written.file.read_text().lower()  # nothing is left of the template's names
    checks = run("two_moons.py").splitlines()
    assert len(checks) > 8
    assert all(line.startswith("check: ") and line.endswith(" ok") for line in checks)
    study = nas.search("two_moons.py:TwoMoons", preset="smoke", trials=3, workers=1)
    assert {row.status for row in study.rows()} == {"complete"}
    assert {row.task for row in study.rows()} == {"two-moons"}
    assert nas.evaluate("two_moons.py:TwoMoons", topology="dca(k=2)").metrics["accuracy"] > 0.85


def test_what_is_printed_is_what_to_run_next(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["nas", "new-task", "moons"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 0
    head, *commands = capsys.readouterr().out.splitlines()
    assert head == "moons.py written, complete as it is. Next:"
    assert [line.split("#")[0].strip() for line in commands] == [
        "python moons.py",
        "nas evaluate moons.py:Moons --preset smoke",
        "nas search moons.py:Moons --trials 8",
    ]


def test_the_task_that_the_documentation_shows_is_what_is_written() -> None:
    assert nas.new_task("moons").file.read_text() == (HERE / "tasks" / "moons.py").read_text()


ONCE_INSTALLED = """
import sys
from nas.cli import main
from search_spaces.testing import check_topology
for words in ("list topologies", "evaluate digits-vit --preset smoke --topology gated-skip(per_entry=true)"):
    sys.argv = ["nas", *words.split()]
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
check_topology("gated-skip(per_entry=true)")
"""


@pytest.mark.outside
def test_a_new_topology_keeps_the_contract_and_wires_networks_once_it_is_installed(tmp_path: Path) -> None:
    written = nas.new_topology("gated-skip")
    assert written.file == Path("gated_skip.py")
    checks = run("gated_skip.py").splitlines()
    assert len(checks) > 8
    assert all(line.startswith("GatedSkip: ") for line in checks)
    docstring = written.file.read_text().split('"""')[1]
    project = docstring[docstring.index("    [build-system]") : docstring.index("Shapes:")]
    Path("pyproject.toml").write_text(textwrap.dedent(project))
    pip = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    run(*pip, "--target", "site", ".")
    found = run("-c", ONCE_INSTALLED, PYTHONPATH="site")
    assert "gated-skip" in found
    assert "broken" not in found
    assert "complete" in found


@pytest.mark.parametrize(
    ("door", "name", "says"),
    [
        (nas.new_task, "", "is of lower-case letters"),
        (nas.new_task, "Moons", "got 'Moons'. Give another, such as my-task."),
        (nas.new_task, "two moons", "is of lower-case letters"),
        (nas.new_task, "../moons", "is of lower-case letters"),
        (nas.new_task, "moons-", "is of lower-case letters"),
        (nas.new_task, "m" * 61, "at most 60"),
        (nas.new_task, "digits-vit", "task 'digits-vit' is this project's already"),
        (nas.new_topology, "dca", "topology 'dca' is this project's already"),
        (nas.new_topology, "recipe", "taken for the recipe's"),
        (nas.new_task, "none", "would be class None"),
        (nas.new_task, "exception", "would be class Exception"),
        (nas.new_task, "tensor-splits", "would be class TensorSplits"),
        (nas.new_topology, "wiring", "would be class Wiring"),
        (nas.new_task, "class", "must be a module"),
        (nas.new_task, "random", "before the module 'random'"),
        (nas.new_topology, "torch", "before the module 'torch'"),
    ],
)
def test_a_name_that_cannot_be_is_a_line_and_writes_nothing(door: Any, name: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        door(name)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not list(Path().iterdir())


@pytest.mark.parametrize(
    ("output", "says"),
    [
        ("moons.txt", "must be a module"),
        ("my-moons.py", "must be a module"),
        ("__main__.py", "must be a module"),
        ("nowhere/moons.py", "there is no folder nowhere"),
        ("folder.py", "is there already"),
        ("link.py", "is there already"),
    ],
)
def test_a_file_that_cannot_be_is_a_line(output: str, says: str) -> None:
    Path("folder.py").mkdir()
    Path("link.py").symlink_to("elsewhere.py")
    with pytest.raises(UserError) as caught:
        nas.new_task("moons", output=output)
    assert says in str(caught.value)
    assert not Path("elsewhere.py").exists()


def test_no_file_is_overwritten() -> None:
    Path("moons.py").write_text("mine")
    with pytest.raises(UserError, match=r"moons.py is there already, and nothing is overwritten. Give another --out"):
        nas.new_task("moons")
    assert Path("moons.py").read_text() == "mine"
    nas.new_task("moons", output="mine.py")
    assert "class Moons(" in Path("mine.py").read_text()
    assert "python mine.py" in Path("mine.py").read_text()


def test_no_file_is_overwritten_that_comes_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "_check_file", lambda file: file.write_text("mine"))
    with pytest.raises(UserError, match="is there already"):
        nas.new_task("moons")
    assert Path("moons.py").read_text() == "mine"


def test_a_full_disk_leaves_no_half_of_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __init__(self, file: Any) -> None:
            self.file = file

        def __enter__(self) -> "Full":
            return self

        def __exit__(self, *error: object) -> None:
            self.file.close()

        def write(self, text: str) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    opened = Path.open
    monkeypatch.setattr(Path, "open", lambda self, *a, **k: Full(opened(self, *a, **k)) if a == ("x",) else opened(self, *a, **k))  # fmt: skip  # noqa: E501
    with pytest.raises(UserError, match=r"moons.py cannot be written: No space left on device"):
        nas.new_task("moons")
    assert not Path("moons.py").exists()


def test_the_templates_are_whole_as_they_stand() -> None:
    """What is made of them is checked above, with other names."""
    made = {name: runpy.run_path(str(TEMPLATES / f"{name}.py")) for name in ("task", "topology")}
    assert issubclass(made["task"]["NewTask"], Task)
    assert issubclass(made["topology"]["NewTopology"], Topology)
