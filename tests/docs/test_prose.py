"""Pages can be skimmed: short lines, sentences and pages, and the words of the glossary."""

import re
from collections.abc import Iterator
from pathlib import Path

from doc_pages import PAGES, ROOT
from grouped import grouped

MAX_WORDS, MAX_COLUMNS, MAX_LINES, MAX_STUDY_LINES, MAX_NUMBERS = 25, 120, 150, 80, 2
LONGER = {"docs/studies/claims-table.md": 150}
"""Pages that are one table -> their most lines."""

RETIRED = {
    r"wir(?:ing|ings|e|ed|es)": "topology",
    r"dearer|dearest": "higher-cost",
    r"(?:goes|go|going|went) on": "resumes, continues",
    r"(?:tell|tells|told) (?:apart|from)": "differs significantly",
    r"confirm(?:s|ed|ing)?": "re-evaluate",
    r"fresh seeds?": "held-out seeds",
    r"at front": "on the front",
    r"likeliest": "most probable",
    r"beside": "next to, compared with",
    r"what there is|as (?:it|they) stands?|of yours|of ours|by turns|just so|whatever": "plain words",
}
"""Words that the glossary retires -> what to say instead."""

_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_ITEM = re.compile(r"\s*(?:[-*]|\d+\.) ")
_NUMBER = re.compile(r"(?<![\w.-])\d[\d,.]*\d?%?(?!\w)")


def without_code(text: str) -> str:
    """The text with empty lines in place of fenced code and comments, so that line numbers stay."""
    return _COMMENT.sub(
        lambda part: "\n" * part[0].count("\n"), _BLOCK.sub(lambda part: "\n" * part[0].count("\n"), text)
    )


def paragraphs(text: str) -> Iterator[str]:
    """Each paragraph and each item of a list, without code, tables, quotations and headings."""
    lines: list[str] = []
    for line in [*without_code(text).splitlines(), ""]:
        is_prose = bool(line.strip()) and not line.lstrip().startswith(("|", ">", "#", "<", ":::"))
        if not is_prose or _ITEM.match(line):
            if lines:
                yield " ".join(lines)
            lines = []
        if is_prose and (lines or not line.startswith("    ") or _ITEM.match(line)):
            lines.append(_ITEM.sub("", line, count=1).strip())


def plain(paragraph: str) -> str:
    """A paragraph with one word for each piece of code, equation and quotation, and links as their text."""
    paragraph = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", paragraph)
    paragraph = re.sub(r"\$?`[^`]*`\$?|\"[^\"]*\"", "Code", paragraph)
    paragraph = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph)
    return re.sub(r"\b(e\.g|i\.e|et al|cf|vs|[A-Z])\.", r"\1", paragraph)


def sentences(paragraph: str) -> list[str]:
    return re.split(r"(?<=[.!?:;])\s+(?=[A-Z(*])", plain(paragraph))


def faults(path: Path) -> Iterator[str]:
    """What is wrong with a page."""
    text, name = path.read_text(), path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
    most = LONGER.get(name, MAX_STUDY_LINES if "/studies/" in name else 100 if name == "README.md" else MAX_LINES)
    if len(text.splitlines()) > most:
        yield f"{len(text.splitlines())} lines, at most {most}"
    for number, line in enumerate(without_code(text).splitlines(), 1):
        if len(line) > MAX_COLUMNS and not line.startswith(("|", "    ", "!", "[")):
            yield f"line {number} has {len(line)} columns"
        if not line.startswith("    "):
            for pattern, instead in RETIRED.items():
                bare = re.sub(r"`[^`]*`|\]\([^)]*\)", "", line)
                yield from (
                    f"line {number}: {word[0]!r}: {instead}" for word in re.finditer(rf"(?i)\b(?:{pattern})\b", bare)
                )
    for paragraph in paragraphs(text):
        if re.search(r"\([^()]*\([^()]*\)", plain(paragraph)):
            yield f"nested parentheses: {paragraph[:60]}"
        for sentence in sentences(paragraph):
            words, numbers = re.findall(r"[\w%][\w%'.,/+-]*", sentence), _NUMBER.findall(sentence)
            if len(words) > MAX_WORDS:
                yield f"{len(words)} words: {sentence[:60]}"
            if len(numbers) > MAX_NUMBERS:
                yield f"{len(numbers)} numbers: {sentence[:60]}"


def test_pages_can_be_skimmed() -> None:
    assert len(PAGES) > 60
    with grouped() as case:
        for page in PAGES:
            with case(page.relative_to(ROOT).as_posix()):
                assert [*faults(page)] == []


def test_faults_of_a_page_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Read `code` here. It has two short sentences.\n\n    nas search digits-vit\n\n| wide | " + "x" * 130 + " |\n"
    )
    assert [*faults(page)] == []
    page.write_text(
        "\n".join(
            ["It goes on.", "word " * 26 + "end.", "", "One (two (three)).", "x" * 121, "1, 2 and 3 are numbers."]
        )
    )
    assert len([*faults(page)]) == 6
    page.write_text("\n" * 151)
    assert [*faults(page)] == ["151 lines, at most 150"]
