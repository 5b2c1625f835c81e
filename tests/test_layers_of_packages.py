"""Who may import whom, and what must start without torch."""

import ast
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from source_trees import ROOT, files, nodes

OURS = ("nas", "tasks", "search_spaces", "results")
MAY_IMPORT = {
    "nas": {"nas", "tasks", "search_spaces", "results"},
    "tasks": {"tasks", "search_spaces", "results.records.columns"},
    "search_spaces": {"search_spaces"},
    "results": {
        "results",
        "search_spaces.architecture.architecture",
        "search_spaces.support.errors",
        "search_spaces.support.files",
        "search_spaces.architecture.canonical_text",
        "search_spaces.architecture.block_segments",
        "search_spaces.support.spec",
    },
}
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in OURS
    for path in files(package)
}
FILES = list(MODULES.values())


def imports(path: Path) -> set[str]:
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return {name for name in found if name.partition(".")[0] in OURS}


def test_no_package_imports_one_above_it() -> None:
    wrong: dict[str, set[str]] = {}
    for path in FILES:
        allowed = MAY_IMPORT[path.relative_to(ROOT).parts[0]]
        upward = {name for name in imports(path) if name not in allowed and name.partition(".")[0] not in allowed}
        if upward:
            wrong[str(path.relative_to(ROOT))] = upward
    assert wrong == {}


def needed(name: str) -> set[str]:
    """Our modules that one imports as it runs, those that its functions import included."""
    tree = nodes(MODULES[name])
    only_for_types = {
        id(inner)
        for node in tree
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for inner in ast.walk(node)
    }
    found = set[str]()
    for node in tree:
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


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = {name: needed(name) for name in MODULES}
    for package in OURS:
        inside = {name: needs for name, needs in graph.items() if name.partition(".")[0] == package}
        within = {name: {other for other in needs if other in inside} for name, needs in inside.items()}
        assert circle(within) == []


def test_circle_is_found_wherever_it_hides() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert circle({"a": {"b"}, "b": {"c", "d"}, "c": set(), "d": {"b"}}) == ["b", "d", "b"]


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
import nas.cli.results
loaded("nas.cli.results")
"""
"""One process starts one thing after the other, and tells the first that loads what it must not."""


def test_light_commands_start_without_torch() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
