"""The English inside every CPython: pydoc's topics and the standard library's docstrings.

Sources are parsed, not imported, so nothing is executed and nothing depends on the machine. Tests, site-packages,
lib2to3 and idlelib are left out; newer versions lack the last two in full.
"""

import ast
import hashlib
import json
import re
import sys
import sysconfig
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path

from search_spaces.support.cache import cache_bytes
from search_spaces.support.errors import UserError

_SKIP_FOLDERS = frozenset({"site-packages", "dist-packages", "test", "tests", "lib2to3", "idlelib", "__pycache__"})
_TOPICS = Path("pydoc_data", "topics.py")
_PARAGRAPH = re.compile(r"\n\s*\n")
_COMMON = 40
"""Characters below which a paragraph may recur: "Return the result." is a common phrase."""
_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
"""Fields of a node that hold statements, in source order."""
_DOCSTRING_NODES = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def stdlib_documents() -> Mapping[str, str]:
    """Return name -> text: one text for each topic, and one for each module's docstrings in source order.

    A paragraph that occurs in an earlier document is left out, whatever its line breaks. Topics contain other topics
    and modules repeat each other, and held-out text must not occur in training text.

    Raises:
        UserError: This Python lacks its sources or pydoc's topics.
    """
    library = Path(sysconfig.get_paths()["stdlib"])
    sources = {path.relative_to(library): path.read_bytes() for path in _sources(library)}
    if _TOPICS not in sources or len(sources) < 100:
        missing = _TOPICS if len(sources) >= 100 else "the standard library's sources"
        raise UserError(
            "missing-data",
            f"{library} lacks {missing}. Install all of CPython, or use a task with other data.",
            path=str(library),
            sources=len(sources),
        )
    digest = hashlib.sha256(sys.version.partition(" ")[0].encode())
    for name, source in sources.items():
        digest.update(f"{name.as_posix()} {len(source)}\n".encode() + source)
    text = cache_bytes(f"stdlib/{digest.hexdigest()}.texts", lambda: json.dumps(_documents(sources)).encode())
    documents: dict[str, str] = json.loads(text)
    return documents


def _sources(library: Path) -> Iterator[Path]:
    """Yield every module of the standard library, in an order that is the same on all machines."""
    for path in sorted(library.iterdir(), key=lambda path: path.name):
        if path.is_dir() and path.name not in _SKIP_FOLDERS:
            yield from _sources(path)
        elif path.suffix == ".py":
            yield path


def _documents(sources: Mapping[Path, bytes]) -> dict[str, str]:
    texts = {f"topic {name}": text for name, text in _topics(sources[_TOPICS]).items()}
    texts |= {path.as_posix(): "\n\n".join(_docstrings(source)) for path, source in sources.items()}
    known_paragraphs: set[str] = set()
    documents = {name: "\n\n".join(_new_paragraphs(text, known_paragraphs)) for name, text in texts.items()}
    return {name: text for name, text in documents.items() if text}


def _new_paragraphs(text: str, known_paragraphs: set[str]) -> Iterator[str]:
    """Yield the paragraphs of a text that are not yet known, and add them to the known ones."""
    for paragraph in _PARAGRAPH.split(text):
        words = " ".join(paragraph.split())
        if words and (len(words) < _COMMON or words not in known_paragraphs):
            yield paragraph
        known_paragraphs.add(words)


def _topics(source: bytes) -> dict[str, str]:
    """Return the dictionary that the module assigns."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign):
            topics: dict[str, str] = ast.literal_eval(node.value)
            return topics
    raise UserError(
        "bad-data",
        f"{_TOPICS} of this Python has no dictionary of topics. Report this with the Python version.",
        path=str(_TOPICS),
    )


def _docstrings(source: bytes) -> Iterator[str]:
    """Yield the docstrings of a module, its own first; none if this Python cannot parse it."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # some modules hold errors on purpose, or another version's syntax
        return
    nodes: deque[ast.AST] = deque([tree])
    while nodes:  # like `ast.walk`, but without expressions, which hold no docstrings
        node = nodes.popleft()
        if isinstance(node, _DOCSTRING_NODES) and (text := ast.get_docstring(node)):
            yield text
        nodes.extend(child for field in _BLOCKS for child in getattr(node, field, ()))
