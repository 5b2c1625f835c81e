"""Light commands start without torch, and files are small. `lint-imports` checks the layers."""

import subprocess
import sys

from source_trees import ROOT, files

PACKAGES = ("nas", "tasks", "search_spaces", "results")
FILES = [path for package in PACKAGES for path in files(package)]


def test_files_are_small() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in FILES}
    assert {path: lines for path, lines in lengths.items() if lines > 400} == {}


PROGRAM = """
import sys

def loaded(what):
    found = [name for name in ("torch", "timm", "lightning_fabric", "optuna") if name in sys.modules]
    assert not found, f"{what} loads {found}"

def run(*words):
    sys.argv = ["nas", *words]
    try:
        nas.cli.main.main()
    except SystemExit:
        pass

import nas
loaded("nas")
import results.records.row, results.query.query, results.stats.pareto, results.records.export
loaded("results")
import nas.cli.main
run("--help")
loaded("--help")
run("-q", "list")
loaded("list")
import nas.cli.printers.query
loaded("nas.cli.printers.query")
"""
"""Start one command after the other in one process; print the first that loads a forbidden module."""


def test_light_commands_start_without_torch() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
