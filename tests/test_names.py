"""One name, one thing: classes and modules that are called alike, but for those that are meant to be."""

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
