"""Who may import whom, and what must start without torch."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = ("nas", "tasks", "search_spaces", "results")
MAY_IMPORT = {
    "nas": {"nas", "tasks", "search_spaces", "results"},
    "tasks": {"tasks", "search_spaces"},
    "search_spaces": {"search_spaces"},
    "results": {"results", "search_spaces.architecture", "search_spaces.errors", "search_spaces.spec"},
}
FILES = [path for package in OURS for path in sorted((ROOT / package).rglob("*.py"))]


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return {name for name in found if name.partition(".")[0] in OURS}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_imports_upward(path: Path) -> None:
    allowed = MAY_IMPORT[path.relative_to(ROOT).parts[0]]
    wrong = {name for name in imports(path) if name not in allowed and name.partition(".")[0] not in allowed}
    assert not wrong


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_are_small(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 300
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            assert node.end_lineno - node.lineno < 50, node.name


@pytest.mark.parametrize(
    "program",
    [
        "import nas",
        "import results.row, results.query, results.pareto, results.export",
        "import nas.cli, sys; sys.argv = ['nas', '--help']\ntry: nas.cli.main()\nexcept SystemExit: pass",
        "import nas.commands.results",
    ],
)
def test_these_start_without_torch(program: str) -> None:
    heavy = "[name for name in ('torch', 'timm', 'lightning') if name in sys.modules]"
    script = f"{program}\nimport sys; sys.stderr.write(' '.join({heavy}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stderr == ""
