"""A report in headless Chromium: wide and narrow, light and dark, without a network."""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nas.report import tables
from nas.report.study import Study

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.browser

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
Open = Callable[..., Any]


@pytest.fixture(scope="module")
def file(study: Study, tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("report") / "report.html"
    study.report(path)
    return path.as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser: Any, file: str) -> Iterator[Open]:
    """Open the report; at the end, check that it gave no message or error and requested only its file."""
    messages, requests, files = list[str](), list[str](), list[str]()

    def new_page(width: int = 1100, scheme: str = "light", file: str = file) -> Any:
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        files.append(file)
        page.goto(file)
        page.wait_for_selector("body[data-drawn]")
        return page

    yield new_page
    assert not messages
    assert requests == files


def visible_topologies(page: Any) -> list[str]:
    """The topologies of the visible rows, in order."""
    return [row.inner_text().split("\t")[2] for row in page.locator("#architectures tbody tr:visible").all()]


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1100, "light")])
def test_page_fits_the_window_and_its_text_is_readable(open_page: Open, width: int, scheme: str) -> None:
    page = open_page(width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for chart in page.locator(".chart svg.marks").all():
        box = chart.bounding_box()
        assert box["x"] + box["width"] <= width
        assert chart.evaluate("svg => svg.width.baseVal.value") == pytest.approx(box["width"], abs=1)  # not shrunk
    assert page.locator("#front svg.marks").bounding_box()["width"] > 0.9 * width
    background, text = (
        page.evaluate(f"getComputedStyle(document.body).{name}") for name in ("backgroundColor", "color")
    )
    label = page.locator("#front .role-axis-label text").first
    assert label.evaluate("label => getComputedStyle(label).fill") == text
    (dark, light) = (background, text) if scheme == "dark" else (text, background)
    assert sum(levels(dark)) < 150 < 600 < sum(levels(light))


def test_page_of_a_single_architecture(open_page: Open, study: Study, tmp_path: Path) -> None:
    Study("one", "rows.jsonl", study.rows()[:1]).report(tmp_path / "one.html")
    assert len(visible_topologies(open_page(file=(tmp_path / "one.html").as_uri()))) == 1


def test_topologies_with_one_point_have_no_means(open_page: Open, study: Study, tmp_path: Path) -> None:
    Study("three", "rows.jsonl", study.rows()[:6]).report(tmp_path / "three.html")
    page = open_page(file=(tmp_path / "three.html").as_uri())
    assert page.locator("#equal-cost .mark-symbol path").count() == 3


def levels(color: str) -> list[int]:
    return [int(level) for level in color.removeprefix("rgb(").removesuffix(")").split(",")]


def test_markup_in_names_is_text_everywhere(open_page: Open, evil: str) -> None:
    page = open_page()
    assert page.evaluate("document.body.dataset.evil") is None
    assert page.locator("h1").inner_text() == f"small {evil}"
    assert page.locator("nav button").last.inner_text() == "resnet"
    points = page.locator("#front .mark-symbol path")
    points.last.hover()
    assert page.locator("#vg-tooltip-element b, #vg-tooltip-element script").count() == 0


def test_tooltip_of_a_point_has_its_values(open_page: Open, study: Study) -> None:
    page = open_page()
    page.locator("#front .mark-symbol path").first.hover()
    label = page.locator("#vg-tooltip-element.visible")
    label.wait_for()
    first = study.summaries()[0].record
    for text in (first["key"], first["topology"], "±", "flops"):
        assert text in label.inner_text()


def test_table_filters_and_sorts(open_page: Open, evil: str) -> None:
    page = open_page()
    assert len(visible_topologies(page)) == 9
    page.locator("#filter").fill("DCA")
    assert visible_topologies(page) == ["dca(k=2)"] * 3
    assert re.findall(r"\d+", page.locator("#shown").inner_text()) == ["3", "9"]
    page.locator("#filter").fill("DCA, k=2")
    assert visible_topologies(page) == ["dca(k=2)"] * 3
    page.locator("#filter").fill("")
    page.get_by_role("button", name="accuracy", exact=True).click()
    assert visible_topologies(page)[:2] == [evil, "resnet"]
    assert visible_topologies(page)[-1] == "dca(k=2)"
    page.get_by_role("button", name="accuracy", exact=True).click()
    assert visible_topologies(page)[0] == "dca(k=2)"
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("accuracy")


def test_topology_is_hidden_and_shown_again(open_page: Open) -> None:
    page = open_page()
    button, points = page.get_by_role("button", name="resnet"), page.locator("#front .mark-symbol path")
    before = points.count()
    button.click()
    page.wait_for_function("document.querySelectorAll('#front .mark-symbol path').length == 6")
    assert button.get_attribute("aria-pressed") == "false"
    assert "resnet" not in visible_topologies(page)
    button.click()
    page.wait_for_function("document.querySelectorAll('#front .mark-symbol path').length == 9")
    assert (before, len(visible_topologies(page))) == (9, 9)


@pytest.fixture(scope="module")
def network_file(network_study: Study, tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("wired") / "report.html"
    network_study.report(path, topologies=True)
    return path.as_uri()


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1100, "light")])
def test_wirings_fit_into_their_boxes(
    open_page: Open, network_file: str, network_study: Study, width: int, scheme: str
) -> None:
    page = open_page(width, scheme, network_file)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    number = len(tables.contenders(network_study.summaries()))
    assert number == page.locator("[data-of]").count() > 0
    for name in (f"{kind}-{i}" for kind in ("wiring", "depth") for i in range(number)):
        box, chart = (page.locator(which).bounding_box() for which in (f"#{name}", f"#{name} svg.marks"))
        assert 0.35 * width < chart["width"] <= box["width"] + 1
        texts = [text.bounding_box() for text in page.locator(f"#{name} svg text:visible").all()]
        for start, extent in (("x", "width"), ("y", "height")):  # no text is cut off
            assert max(text[start] + text[extent] for text in texts) <= chart[start] + chart[extent] + 1
    page.locator("#wiring-0 .mark-rect path").last.hover()
    label = page.locator("#vg-tooltip-element.visible")
    label.wait_for()
    for text in ("head", "2 feed-forward", "share", "%", "gain"):
        assert text in label.inner_text()


def test_wiring_is_hidden_with_its_topology_and_keeps_its_width(open_page: Open, network_file: str) -> None:
    page = open_page(file=network_file)
    part, chart = page.locator("[data-of]").first, page.locator("#wiring-0 svg.marks")
    button = page.locator(f"[data-topology='{part.get_attribute('data-of')}']")
    before = chart.bounding_box()["width"]
    button.click()
    page.wait_for_function("document.querySelector('[data-of]').offsetHeight == 0")
    page.set_viewport_size({"width": 700, "height": 900})
    page.set_viewport_size({"width": 1100, "height": 900})
    button.click()
    page.wait_for_function(f"document.querySelector('#wiring-0 svg.marks').clientWidth == {round(before)}")
