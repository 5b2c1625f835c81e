"""Sentences are held by tests/messages.txt: tests ask for kinds and fields, and edits of a text break one snapshot."""

import ast
import re
from pathlib import Path

_SENTENCE = re.compile(r"(?:\b[a-z]+ ){3,}[a-z]+\b")
"""Four words in a row."""


def test_no_test_expects_a_message_by_its_words() -> None:
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
