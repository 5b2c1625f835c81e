"""The site builds without warnings, documents all entries and loads nothing from other hosts."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from doc_pages import ROOT
from search_spaces.topologies.registry import TOPOLOGIES
from tasks.registry import TASKS

pytest.importorskip("mkdocs", reason="mkdocs is in the extra `docs`")
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.fixture(scope="module")
def building() -> ModuleType:
    spec = spec_from_file_location("building", DOCS / "building.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def names_of_ours(registry: object) -> set[str]:
    return {name for name in registry.names() if registry.is_builtin(name)}  # type: ignore[attr-defined]


def texts_of(kind: str) -> list[str]:
    """The pages of the reference of topologies or tasks."""
    folder = DOCS / "reference" / {"topology": "topologies", "task": "tasks"}[kind]
    return [page.read_text() for page in sorted(folder.glob("*.md"))]


def test_every_topology_and_task_of_ours_is_on_its_page() -> None:
    for kind, registry in (("topology", TOPOLOGIES), ("task", TASKS)):
        text = "\n".join(texts_of(kind))
        assert set(re.findall(rf"^<!-- {kind} (\S+) -->$", text, re.MULTILINE)) == names_of_ours(registry)
        assert names_of_ours(registry) <= set(re.findall(r"^##+ (\S+)$", text, re.MULTILINE))


def test_every_topology_has_an_equation_and_every_task_its_data() -> None:
    for text in texts_of("topology"):
        assert all("```math" in part for part in re.split(r"^## ", text, flags=re.MULTILINE) if "<!-- topology" in part)
    for text in texts_of("task"):
        for part in (part for part in re.split(r"^##+ ", text, flags=re.MULTILINE) if "<!-- task" in part):
            assert re.search(r"\bData\b", part), part


def test_audits_of_a_task_match_the_table(building: ModuleType) -> None:
    audits = building.audits("digits-vit")
    assert "loss 0." in audits
    assert "levels: 2" in audits
    assert not re.search(r"\d", building.audits("digits"))  # a prefix of the name
    names = {name for name in names_of_ours(TASKS) if re.search(r"\d", building.audits(name))}
    table = (DOCS / "studies" / "audits.md").read_text().partition("|---")[2]
    assert names == set(re.findall(r"^\| (\S+) \S+", table, re.MULTILINE))


@pytest.mark.outside
def test_site_shows_docstrings_options_and_equations(site: Path) -> None:
    pages = {path.relative_to(site).as_posix(): path.read_text() for path in site.rglob("*.html")}
    topologies = "".join(text for name, text in pages.items() if name.startswith("reference/topologies/"))
    tasks = "".join(text for name, text in pages.items() if name.startswith("reference/tasks/"))
    assert "<code>layers * (2 + 2 * rank * width)</code>" in topologies
    assert "<li><code>temperature=0.01</code>: " in topologies
    assert topologies.count('<math xmlns="http://www.w3.org/1998/Math/MathML" display="block"') >= 14
    assert "ViT-Lite-6/4" in tasks
    assert "accuracy 0.9" in tasks
    assert "weight_decay" in pages["reference/presets.html"]
    assert "--reeval-fraction" in pages["reference/commands.html"]
    assert "check_topology" in pages["reference/api.html"]
    assert not [name for name, text in pages.items() if re.search(r"<!-- (topology|task|commands|presets)", text)]


@pytest.mark.outside
def test_site_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        html = page.read_text()
        sources = re.findall(r'<(?:script|img|iframe)[^>]* src="([^"]+)"|<link [^>]*href="([^"]+)"', html)
        assert not [address for pair in sources for address in pair if "//" in address], page.name


def test_links_are_rewritten_to_pages_of_the_site(building: ModuleType) -> None:
    guide = "docs/guides/queries.md"
    assert building.site_link("docs/start/install.md", "README.md") == "start/install.md"
    assert building.site_link("../../results/README.md", guide) == "../reference/results.md"
    assert building.site_link("../../results/tables", guide) == "../reference/tables.md"
    assert building.site_link("../../docs/guides/python.md", "results/tables/README.md") == "../guides/python.md"


def test_topology_is_shown_with_its_options_and_axes(building: ModuleType) -> None:
    html = building.topology("ancre")
    assert "<li><code>temperature=0.01</code>: " in html
    assert "<li><code>cascaded=true</code>: " in html
    assert re.search(r"<code>\w+ in [^<]*</code>", html)  # axes that spaces search


def test_docstring_is_shown_as_html(building: ModuleType) -> None:
    def entry() -> None:
        """g_j = sum_i b_i * e_i < 2.

            x = 1

        Readings taken:

        * `one`,
          and more
        * two
        """

    html = building.docstring(entry)
    assert "<p>g_j = sum_i b_i * e_i &lt; 2.</p>" in html
    assert "<pre><code>x = 1</code></pre>" in html
    assert "<ul><li><code>one</code>, and more</li><li>two</li></ul>" in html


@pytest.mark.browser
def test_pages_opened_as_files_can_be_searched(site: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("there is no Chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        requests: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        page.goto(f"file://{site}/reference/topologies/depth-mixing.html")
        assert page.locator("math[display=block]").count() >= 4
        page.locator("input[name=query]").click()
        page.keyboard.type("hypervolume", delay=30)
        page.locator(".md-search-result__meta", has_text="matching documents").wait_for(timeout=20_000)
        assert page.locator(".md-search-result__item").count() > 2
        assert not [url for url in requests if not url.startswith(("file:", "data:", "blob:", "about:"))]
        browser.close()
