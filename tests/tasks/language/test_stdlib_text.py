import ast
import inspect
import re
import string
import sys
import sysconfig
from collections import Counter
from pathlib import Path

import pytest

from expect import raises
from tasks.language import stdlib as module
from tasks.language.corpus import Corpus, stdlib_corpus
from tasks.language.shards import TextShard, read
from tasks.language.stdlib import stdlib_documents


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return stdlib_corpus()


def texts(shards: tuple[TextShard, ...]) -> list[str]:
    return [text for shard in shards for _, text in read(shard) if text]


def test_documents_have_topics_and_docstrings(corpus: Corpus) -> None:
    documents = stdlib_documents()
    assert "topic for" in documents
    assert inspect.cleandoc(string.__doc__ or "").splitlines()[0] in documents["string.py"]
    assert sum(map(len, documents.values())) > 1_500_000


@pytest.mark.parametrize("name", ["typing.py", "subprocess.py", "locale.py", "abc.py"])
def test_docstrings_are_those_of_every_definition_in_order(name: str) -> None:
    def paragraphs(text: str) -> list[str]:
        return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text) if part.strip()]

    documents = stdlib_documents()
    nodes = ast.walk(ast.parse(Path(sysconfig.get_paths()["stdlib"], name).read_bytes()))
    definitions = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    naive = [ast.get_docstring(node) or "" for node in nodes if isinstance(node, definitions)]
    expected = [paragraph for text in naive for paragraph in paragraphs(text)]
    assert set(expected) <= {paragraph for text in documents.values() for paragraph in paragraphs(text)}
    remaining = iter(expected)  # without duplicates of earlier documents
    assert all(paragraph in remaining for paragraph in paragraphs(documents[name]))


def test_documents_have_no_tests_and_no_installed_packages() -> None:
    parts = {part for name in stdlib_documents() for part in Path(name).parts}
    assert not parts & {"site-packages", "dist-packages", "test", "tests", "lib2to3", "idlelib"}


def test_every_document_is_in_one_split(corpus: Corpus) -> None:
    splits = [texts(shards) for shards in (corpus.train, corpus.validation, corpus.test)]
    assert Counter(text for split in splits for text in split) == Counter(stdlib_documents().values())
    sizes = [sum(map(len, split)) for split in splits]
    assert sizes[0] > 0.8 * sum(sizes)
    assert min(sizes) > 0.01 * sum(sizes)


def test_no_held_out_paragraph_is_in_training(corpus: Corpus) -> None:
    def paragraphs(shards: tuple[TextShard, ...]) -> set[str]:
        every = {" ".join(part.split()) for text in texts(shards) for part in re.split(r"\n\s*\n", text)}
        return {paragraph for paragraph in every if len(paragraph) >= 40}

    assert not paragraphs(corpus.train) & (paragraphs(corpus.validation) | paragraphs(corpus.test))


def test_reading_imports_none_of_the_modules() -> None:
    module_names = {name for node in ast.walk(ast.parse(inspect.getsource(module))) for name in _imports(node)}
    assert module_names <= {"search_spaces.support.errors", "search_spaces.support.cache", *sys.stdlib_module_names}
    assert "pydoc_data" not in module_names


def _imports(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [name.name for name in node.names]
    return [str(node.module).removesuffix(".abc")] if isinstance(node, ast.ImportFrom) else []


def test_the_fingerprint_is_reproducible(corpus: Corpus) -> None:
    assert stdlib_corpus().fingerprint == corpus.fingerprint
    assert re.fullmatch("[0-9a-f]{64}", corpus.fingerprint)


def test_refuses_a_python_without_its_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"stdlib": str(tmp_path)})
    with raises("missing-data", path=str(tmp_path), sources=0):
        stdlib_documents()
