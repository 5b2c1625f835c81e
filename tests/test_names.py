"""Classes and modules have unique names, apart from listed exceptions."""

import ast
from collections import defaultdict

from source_trees import ROOT, files, nodes

PACKAGES = ("nas", "results", "search_spaces", "tasks")


def test_no_two_classes_have_one_name() -> None:
    places = defaultdict[str, list[str]](list)
    for package in PACKAGES:
        for path in files(package):
            for node in nodes(path):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(str(path.relative_to(ROOT)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


ALIKE = {
    **dict.fromkeys(
        ("audit", "compare", "evaluate", "export", "load", "profile", "retrofit", "tournament"),
        "a function of nas.api, and its work",
    ),
    **dict.fromkeys(("base", "contract", "registry", "recipe", "task"), "the same part of several packages"),
    **dict.fromkeys(("costs", "effects", "query", "files"), "a printer or a command, and what it prints"),
    "checkpoint": "of a trained network, and of a training under way",
    "count": "closed forms, and the counter that they are held against",
    "progress": "the status line, and a search's",
    "run": "a search, and the argument of Task.fit",
}
"""Module names used more than once, with the reason."""


def test_no_two_modules_have_one_name() -> None:
    places = defaultdict[str, list[str]](list)
    for package in PACKAGES:
        for path in files(package):
            if path.stem not in ("__init__", "__main__") and "templates" not in path.parts:
                places[path.stem].append(str(path.relative_to(ROOT)))
    alike = {name: where for name, where in places.items() if len(where) > 1}
    assert {name: where for name, where in alike.items() if name not in ALIKE} == {}
    assert ALIKE.keys() <= alike.keys()
