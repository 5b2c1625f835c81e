"""The English that ships inside every CPython: pydoc's topics and the standard library's docstrings.

Sources are parsed and never imported, so nothing runs and nothing depends on the machine. Left out are tests,
what others installed, and lib2to3 and idlelib, which newer versions no longer have in full.
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
"""Characters below which a paragraph may recur: "Return the result." is the language, and nobody's text."""
_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
"""Fields of a node that hold statements, in the order of the source."""
_DOCSTRING_NODES = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def stdlib_documents() -> Mapping[str, str]:
    """Name -> text: each topic, and for each module its docstrings in the order of the source.

    A paragraph that an earlier document has is left out, whatever its line breaks: topics contain other topics and
    modules repeat each other, and what is held out must not stand among what is trained on.

    Raises:
        UserError: This Python came without its sources or without pydoc's topics.
    """
    library = Path(sysconfig.get_paths()["stdlib"])
    sources = {path.relative_to(library): path.read_bytes() for path in _sources(library)}
    if _TOPICS not in sources or len(sources) < 100:
        missing = _TOPICS if len(sources) >= 100 else "the standard library's sources"
        raise UserError(
            "missing-data",
            f"{library} lacks {missing}. Install the whole of CPython, or give another task's data.",
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
    """Every module of the standard library, in an order that is the same everywhere."""
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
    """The paragraphs of a text that were not seen before; they are seen then."""
    for paragraph in _PARAGRAPH.split(text):
        words = " ".join(paragraph.split())
        if words and (len(words) < _COMMON or words not in known_paragraphs):
            yield paragraph
        known_paragraphs.add(words)


def _topics(source: bytes) -> dict[str, str]:
    """The dictionary that the module is."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign):
            topics: dict[str, str] = ast.literal_eval(node.value)
            return topics
    raise UserError(
        "bad-data",
        f"{_TOPICS} of this Python holds no dictionary of topics. Report it, with the version of Python.",
        path=str(_TOPICS),
    )


def _docstrings(source: bytes) -> Iterator[str]:
    """The docstrings of a module, its own first; none where this Python cannot read it."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # modules that hold an error on purpose, or another version's syntax
        return
    nodes: deque[ast.AST] = deque([tree])
    while nodes:  # as `ast.walk` goes, but not into expressions, which document nothing
        node = nodes.popleft()
        if isinstance(node, _DOCSTRING_NODES) and (text := ast.get_docstring(node)):
            yield text
        nodes.extend(child for field in _BLOCKS for child in getattr(node, field, ()))
