"""Who may import whom, and what must start without torch."""

import ast
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = ("nas", "tasks", "search_spaces", "results")
MAY_IMPORT = {
    "nas": {"nas", "tasks", "search_spaces", "results"},
    "tasks": {"tasks", "search_spaces", "results.columns"},
    "search_spaces": {"search_spaces"},
    "results": {
        "results",
        "search_spaces.architecture",
        "search_spaces.errors",
        "search_spaces.files",
        "search_spaces.one_text",
        "search_spaces.runs",
        "search_spaces.spec",
    },
}
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in OURS
    for path in sorted((ROOT / package).rglob("*.py"))
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


def needed(name: str) -> set[str]:
    """Our modules that one imports as it runs, those that its functions import included."""
    tree = ast.parse(MODULES[name].read_text())
    only_for_types = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for inner in ast.walk(node)
    }
    found = set[str]()
    for node in ast.walk(tree):
        if id(node) in only_for_types:
            continue
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = {f"{node.module}.{each.name}" for each in node.names}
            found |= inside if inside <= MODULES.keys() else {*inside, node.module}
    return found & MODULES.keys() - {name}


def circle(graph: Mapping[str, set[str]]) -> list[str]:
    """Modules that import one another in a ring; none where there is no such ring."""
    done = set[str]()

    def walk(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        for other in sorted(graph[name]):
            ring = walk(other, [*path, name])
            if ring:
                return ring
        done.add(name)
        return []

    return next((ring for name in sorted(graph) if (ring := walk(name, []))), [])


@pytest.mark.parametrize("package", OURS)
def test_no_module_imports_itself_in_a_circle(package: str) -> None:
    graph = {name: needed(name) for name in MODULES}
    inside = {name: needs for name, needs in graph.items() if name.partition(".")[0] == package}
    within = {name: {other for other in needs if other in inside} for name, needs in inside.items()}
    assert circle(within) == []


def test_a_circle_is_found_wherever_it_hides() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert circle({"a": {"b"}, "b": {"c", "d"}, "c": set(), "d": {"b"}}) == ["b", "d", "b"]


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
        "import nas.cli, sys; sys.argv = ['nas', '-q', 'list']\ntry: nas.cli.main()\nexcept SystemExit: pass",
        "import nas.commands.results",
    ],
)
def test_these_start_without_torch(program: str) -> None:
    heavy = "[name for name in ('torch', 'timm', 'lightning_fabric', 'optuna') if name in sys.modules]"
    script = f"{program}\nimport sys; sys.stderr.write(' '.join({heavy}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stderr == ""
