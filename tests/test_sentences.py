"""No test matches a whole message: tests assert kinds and fields, and tests/messages.txt holds the sentences."""

import ast
import re
from pathlib import Path

_SENTENCE = re.compile(r"(?:\b[a-z]+ ){3,}[a-z]+\b")
"""Four words in a row."""


def test_no_test_matches_a_whole_message() -> None:
    sentences = [
        f"{file.name}:{part.lineno}: {part.value}"
        for file in sorted(Path(__file__).parent.rglob("test_*.py"))
        if "match=" in (text := file.read_text())
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.keyword) and node.arg == "match"
        for part in ast.walk(node.value)
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and _SENTENCE.search(part.value)
    ]
    assert not sentences
