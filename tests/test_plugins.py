"""A plug-in package, used from the command line and from Python in processes of their own."""

import inspect
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import nas
from results.records.row import Row
from search_spaces.support.errors import UserError
from search_spaces.testing.checks import CONTRACT

HERE = Path(__file__).parent
SEARCH: dict[str, str | int] = {
    "preset": "smoke",
    "trials": 4,
    "space": "depths",
    "sampler": "last",
    "budget": "params<=10k",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with plugin_package installed by pip."""
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(HERE / "plugin_package", folder / "source")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(folder / "site"), str(folder / "source")], check=True)
    return folder / "site"


def run(site: Path, folder: Path, *words: str) -> str:
    """Standard output of a process that can import the package."""
    folder.mkdir(exist_ok=True)
    environment = {
        **os.environ,
        "PYTHONPATH": str(site),
        "NAS_WORKERS": "1",
    }  # with two workers, proposals depend on timing
    done = subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def numbers(rows: list[Row]) -> list[tuple[Any, ...]]:
    """All columns but times and speeds."""
    return [(row.identity(), row.architecture, row.metrics, row.test, row.costs, row.curve) for row in rows]


CALLS = f"""
import contextlib, io, json
import nas
from search_spaces.spaces.catalog import get_space
from search_spaces.testing.contract import check_topology
from tasks.load import load_task
space = get_space("topology", load_task("digits-vit").base)
answers = {{"space": sorted({{candidate.architecture.topology for candidate in space if "weave" in str(candidate)}})}}
with contextlib.redirect_stdout(io.StringIO()) as checks:
    check_topology("weave")
answers["checks"] = checks.getvalue().splitlines()
answers["front"] = len(nas.search("woven-stripes", study="s", resources=nas.Resources(1), **{SEARCH!r}).front())
print(json.dumps(answers))
"""


@dataclass(frozen=True)
class Session:
    """The results of CALLS, and the folder that it ran in."""

    results: dict[str, Any]
    folder: Path


@pytest.fixture(scope="module")
def session(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp("called")
    return Session(json.loads(run(site, folder, "-c", CALLS)), folder)


@pytest.mark.outside
def test_command_line_and_python_give_the_same_study_of_a_plugin(site: Path, tmp_path: Path, session: Session) -> None:
    flags = [word for name, value in SEARCH.items() for word in (f"--{name}", str(value))]
    run(site, tmp_path, "-m", "nas", "search", "woven-stripes", "--study", "s", *flags)
    by_command, by_python = (
        nas.load("s", storage=f"sqlite:///{folder}/nas-runs/studies.db") for folder in (tmp_path, session.folder)
    )
    assert numbers(by_command.rows()) == numbers(by_python.rows())
    assert len(by_command) == 4
    assert len(by_command.front()) == session.results["front"] > 0
    assert {row.architecture.topology for row in by_command.rows()} == {"resnet", "weave(gain=0.5)", "weave"}
    assert by_command.rows()[1].architecture.depth == 3  # the sampler's first proposal, after the base
    for row in by_command.rows():  # counted by the task's handlers for FFTs
        assert row.costs.macs == 2 * 64 + 16 + 16 * 16 * row.architecture.depth + 32


@pytest.mark.outside
def test_plugin_topology_is_in_our_spaces_and_works_in_our_tasks(site: Path, tmp_path: Path, session: Session) -> None:
    words = ("-m", "nas", "compare", "digits-vit", "--topology", "resnet,weave(gain=0.5)", "--format", "json")
    records = json.loads(run(site, tmp_path, *words))
    assert [record["topology"] for record in records] == ["resnet", "weave(gain=0.5)"]
    assert session.results["space"] == ["weave", "weave(gain=0.5)"]


@pytest.mark.outside
def test_topology_of_a_plugin_keeps_the_contract(session: Session) -> None:
    checks = session.results["checks"]
    assert len(checks) == len(CONTRACT)
    assert all(line.startswith("weave: ") and line.endswith(" ok") for line in checks)


def test_every_function_of_nas_is_a_command() -> None:
    from nas.cli.main import app

    commands = {command.name for command in app.registered_commands}
    functions = {name.replace("_", "-") for name in nas.__all__ if name[0].islower()}
    assert functions - {"load", "load-network", "load-table", "import-rows"} <= commands
    assert "import" in commands  # a keyword of Python
    for name in nas.__all__:
        assert inspect.getdoc(getattr(nas, name))
    with pytest.raises(AttributeError, match="serach"):
        _ = nas.serach  # type: ignore[attr-defined]  # that is the point
    assert nas.__version__[0].isdigit()
    assert nas.UserError is UserError


def test_importing_nas_is_light() -> None:
    script = "import nas, sys; print(sorted({'torch', 'optuna', 'pandas', 'typer', 'sqlalchemy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout.strip() == "[]"


@pytest.mark.outside
def test_script_needs_no_guard_for_its_workers(tmp_path: Path) -> None:
    toy = HERE / "nas" / "toy_tasks.py"
    script = tmp_path / "script.py"
    arguments = "preset='smoke', trials=4, resources=nas.Resources(2), study='s'"
    script.write_text(f"import nas\n\nstudy = nas.search('{toy}:Toy', {arguments})\nprint(len(study), 'rows')\n")
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "4 rows\n", done.stderr
    assert {row.status for row in nas.load(storage=f"sqlite:///{tmp_path}/nas-runs/studies.db").rows()} == {"complete"}
