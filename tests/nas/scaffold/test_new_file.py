"""`nas new-task` and `nas new-topology` write files that keep their contract, and overwrite nothing."""

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
from command_line import Command
from expect import raises
from grouped import grouped
from nas.scaffold import new_file
from nas.workers.resources import Resources
from search_spaces.support.errors import Kind
from search_spaces.topologies.base import Topology
from tasks.base import Task

HERE = Path(__file__).parents[2]
TEMPLATES = HERE.parent / "nas" / "scaffold" / "templates"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_other_tests_tasks: None) -> None:
    monkeypatch.chdir(tmp_path)


def run(*words: str, **more: str) -> str:
    environment = {**os.environ, "NAS_WORKERS": "1", **more}
    result = subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.outside
def test_new_task_keeps_the_contract_and_works_in_a_search() -> None:
    new = nas.new_task("two-moons")
    assert new.file == Path("two_moons.py")
    assert "new" not in new.file.read_text().lower()  # no name of the template is left
    checks = run("two_moons.py").splitlines()
    assert len(checks) > 8
    assert all(line.startswith("check: ") and line.endswith(" ok") for line in checks)
    study = nas.search("two_moons.py:TwoMoons", preset="smoke", trials=3, resources=Resources(1))
    assert {row.status for row in study.rows()} == {"complete"}
    assert {row.task for row in study.rows()} == {"two-moons"}
    assert nas.evaluate("two_moons.py:TwoMoons", topology="dca(k=2)").metrics["accuracy"] > 0.85


def test_command_prints_the_next_commands(command: Command) -> None:
    result = command("new-task", "moons")
    assert result.returncode == 0
    head, *commands = result.stdout.splitlines()
    assert head.startswith("moons.py ")
    assert [line.split("#")[0].strip() for line in commands] == [
        "python moons.py",
        "nas evaluate moons.py:Moons --preset smoke",
        "nas search moons.py:Moons --trials 8",
    ]


def test_documented_task_equals_the_template() -> None:
    assert nas.new_task("moons").file.read_text() == (HERE / "tasks" / "moons.py").read_text()


AFTER_INSTALLATION = """
import sys
from nas.cli.main import main
from search_spaces.testing.contract import check_topology
for words in ("list topologies", "evaluate digits-vit --preset smoke --topology gated-skip(per_entry=true)"):
    sys.argv = ["nas", *words.split()]
    try:
        main()
    except SystemExit as end:
        assert not end.code, end.code
check_topology("gated-skip(per_entry=true)")
"""


@pytest.mark.outside
def test_new_topology_keeps_the_contract_after_installation(tmp_path: Path) -> None:
    new = nas.new_topology("gated-skip")
    assert new.file == Path("gated_skip.py")
    checks = run("gated_skip.py").splitlines()
    assert len(checks) > 8
    assert {line.partition(": ")[0] for line in checks} == {"GatedSkip", "GatedSkip(per_entry=true)"}
    docstring = new.file.read_text().split('"""')[1]
    project = docstring[docstring.index("    [build-system]") : docstring.index("Shapes:")]
    Path("pyproject.toml").write_text(textwrap.dedent(project))
    pip = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    run(*pip, "--target", "site", ".")
    output = run("-c", AFTER_INSTALLATION, PYTHONPATH="site")
    assert "gated-skip" in output
    assert "broken" not in output
    assert "complete" in output


NAMES: list[tuple[Any, str, Kind, dict[str, Any]]] = [
    (nas.new_task, "", "bad-syntax", {"option": "NAME"}),
    (nas.new_task, "Moons", "bad-syntax", {"option": "NAME"}),
    (nas.new_task, "two moons", "bad-syntax", {"option": "NAME"}),
    (nas.new_task, "../moons", "bad-syntax", {"option": "NAME"}),
    (nas.new_task, "moons-", "bad-syntax", {"option": "NAME"}),
    (nas.new_task, "m" * 61, "bad-syntax", {"option": "NAME", "most": 60}),
    (nas.new_task, "digits-vit", "exists", {"option": "NAME", "ours": True}),
    (nas.new_topology, "dca", "exists", {"option": "NAME", "ours": True}),
    (nas.new_topology, "recipe", "conflict", {"option": "NAME"}),
    (nas.new_task, "none", "conflict", {"option": "NAME", "class_name": "None"}),
    (nas.new_task, "exception", "conflict", {"option": "NAME", "class_name": "Exception"}),
    (nas.new_task, "tensor-splits", "conflict", {"option": "NAME", "class_name": "TensorSplits"}),
    (nas.new_topology, "stack-spec", "conflict", {"option": "NAME", "class_name": "StackSpec"}),
    (nas.new_task, "class", "bad-syntax", {"option": "--output", "path": "class.py"}),
    (nas.new_task, "random", "conflict", {"option": "--output", "module": "random"}),
    (nas.new_topology, "torch", "conflict", {"option": "--output", "module": "torch"}),
]


def test_wrong_names_are_errors_and_write_nothing() -> None:
    with grouped() as case:
        for function, name, kind, fields in NAMES:
            value = {"value": name} if fields["option"] == "NAME" else {}
            with case(name), raises(kind, **value, **fields):
                function(name)
    assert not list(Path().iterdir())


def test_wrong_files_are_errors() -> None:
    Path("folder.py").mkdir()
    Path("link.py").symlink_to("elsewhere.py")
    files: list[tuple[str, Kind]] = [
        ("moons.txt", "unsupported"),
        ("my-moons.py", "bad-syntax"),
        ("__main__.py", "bad-syntax"),
        ("nowhere/moons.py", "unwritable"),
        ("folder.py", "exists"),
        ("link.py", "exists"),
    ]
    with grouped() as case:
        for output, kind in files:
            with case(output), raises(kind, option="--output", path=output):
                nas.new_task("moons", output=output)
    assert not Path("elsewhere.py").exists()


def test_existing_file_stays_as_it_is() -> None:
    Path("moons.py").write_text("mine")
    with raises("exists", option="--output", path="moons.py"):
        nas.new_task("moons")
    assert Path("moons.py").read_text() == "mine"
    nas.new_task("moons", output="mine.py")
    assert "class Moons(" in Path("mine.py").read_text()
    assert "python mine.py" in Path("mine.py").read_text()


def test_file_of_another_process_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_file, "_check_file", lambda file: file.write_text("mine"))
    with raises("exists", option="--output", path="moons.py"):
        nas.new_task("moons")
    assert Path("moons.py").read_text() == "mine"


def test_full_disk_leaves_no_partial_file(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __init__(self, file: Any) -> None:
            self.file = file

        def __enter__(self) -> "Full":
            return self

        def __exit__(self, *error: object) -> None:
            self.file.close()

        def write(self, text: str) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    open_file = Path.open
    monkeypatch.setattr(Path, "open", lambda self, *a, **k: Full(open_file(self, *a, **k)) if a == ("x",) else open_file(self, *a, **k))  # fmt: skip  # noqa: E501
    with raises("unwritable", option="--output", path="moons.py"):
        nas.new_task("moons")
    assert not Path("moons.py").exists()


def test_templates_run_as_they_are() -> None:
    modules = {name: runpy.run_path(str(TEMPLATES / f"{name}.py")) for name in ("task", "topology")}
    assert issubclass(modules["task"]["NewTask"], Task)
    assert issubclass(modules["topology"]["NewTopology"], Topology)
