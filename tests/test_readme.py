"""The README is short and tested."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_readme_is_short_and_shows_a_picture() -> None:
    assert len(README.splitlines()) <= 100
    assert "](docs/pictures/mnist1d-vit-front.png)" in README


def test_readme_opens_with_two_blocks_of_commands() -> None:
    search, tests = re.findall(r"^```bash\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)[:2]
    assert "venv" in search
    assert "nas search mnist1d-vit" in search
    assert "venv" in tests
    assert "pytest" in tests


def test_pages_have_no_placeholders() -> None:
    for page in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "results/README.md"):
        assert not re.search(r"[A-Z]{3,}_HERE|TODO|FIXME", (ROOT / page).read_text()), page
