"""All pages and their command lines."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / page for page in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "CODE_OF_CONDUCT.md")),
    *(ROOT / "results" / page for page in ("README.md", "tables/README.md", "tables/published/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    return [code for name, code in _BLOCK.findall(page.read_text()) if name == language]


def command_lines(page: Path) -> list[str]:
    """Each line of a page's shell blocks, fenced or indented, with continued lines joined."""
    text = page.read_text()
    fences = "\n".join(code for language, code in _BLOCK.findall(text) if language in ("", "bash"))
    indents = "\n".join(re.findall(r"^ {4,}(.+)$", _BLOCK.sub("", text), re.MULTILINE))
    lines = re.sub(r"\\\n\s*", "", f"{fences}\n{indents}").splitlines()
    return [line.strip() for line in lines if line.strip()]
