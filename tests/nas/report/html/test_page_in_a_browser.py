"""A report as people meet it: in Chromium, headless, wide and narrow, light and dark, without a network."""

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
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture
def opened(browser: Any, file: str) -> Iterator[Open]:
    """Open the report; at the end there must have been no message, no error and no request but for the file."""
    told, requests, read = list[str](), list[str](), list[str]()

    def opening(width: int = 1100, scheme: str = "light", file: str = file) -> Any:
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.on("console", lambda message: told.append(message.text))
        page.on("pageerror", lambda error: told.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        read.append(file)
        page.goto(file)
        page.wait_for_selector("body[data-drawn]")
        return page

    yield opening
    assert not told
    assert requests == read


def shown(page: Any) -> list[str]:
    """The topologies of the rows that the table shows, in order."""
    return [row.inner_text().split("\t")[1] for row in page.locator("#architectures tbody tr:visible").all()]


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1100, "light")])
def test_page_fits_the_window_and_its_text_is_readable(opened: Open, width: int, scheme: str) -> None:
    page = opened(width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for chart in page.locator(".chart svg.marks").all():
        box = chart.bounding_box()
        assert box["x"] + box["width"] <= width
        assert chart.evaluate("svg => svg.width.baseVal.value") == pytest.approx(
            box["width"], abs=1
        )  # drawn, not shrunk
    assert page.locator("#front svg.marks").bounding_box()["width"] > 0.9 * width
    background, text = (
        page.evaluate(f"getComputedStyle(document.body).{name}") for name in ("backgroundColor", "color")
    )
    label = page.locator("#front .role-axis-label text").first
    assert label.evaluate("label => getComputedStyle(label).fill") == text
    (dark, light) = (background, text) if scheme == "dark" else (text, background)
    assert sum(levels(dark)) < 150 < 600 < sum(levels(light))


def test_page_of_a_single_architecture(opened: Open, study: Study, tmp_path: Path) -> None:
    Study("one", "rows.jsonl", study.rows()[:1]).report(tmp_path / "one.html")
    assert len(shown(opened(file=(tmp_path / "one.html").as_uri()))) == 1


def test_topologies_with_one_point_have_no_means(opened: Open, study: Study, tmp_path: Path) -> None:
    Study("three", "rows.jsonl", study.rows()[:6]).report(tmp_path / "three.html")
    page = opened(file=(tmp_path / "three.html").as_uri())
    assert page.locator("#equal-cost .mark-symbol path").count() == 3


def levels(colour: str) -> list[int]:
    return [int(level) for level in colour.removeprefix("rgb(").removesuffix(")").split(",")]


def test_markup_in_names_is_text_everywhere(opened: Open, evil: str) -> None:
    page = opened()
    assert page.evaluate("document.body.dataset.evil") is None
    assert page.locator("h1").inner_text() == f"small {evil}"
    assert page.locator("nav button").last.inner_text() == "resnet"
    points = page.locator("#front .mark-symbol path")
    points.last.hover()
    assert page.locator("#vg-tooltip-element b, #vg-tooltip-element script").count() == 0


def test_tooltip_of_a_point_has_its_values(opened: Open, study: Study) -> None:
    page = opened()
    page.locator("#front .mark-symbol path").first.hover()
    label = page.locator("#vg-tooltip-element.visible")
    label.wait_for()
    first = study.summaries()[0].record
    for text in (first["key"], first["topology"], "±", "flops"):
        assert text in label.inner_text()


def test_table_is_filtered_and_sorted(opened: Open, evil: str) -> None:
    page = opened()
    assert len(shown(page)) == 9
    page.locator("#filter").fill("DCA")
    assert shown(page) == ["dca(k=2)"] * 3
    assert re.findall(r"\d+", page.locator("#shown").inner_text()) == ["3", "9"]
    page.locator("#filter").fill("DCA, k=2")
    assert shown(page) == ["dca(k=2)"] * 3
    page.locator("#filter").fill("")
    page.get_by_role("button", name="accuracy", exact=True).click()
    assert shown(page)[:2] == [evil, "resnet"]
    assert shown(page)[-1] == "dca(k=2)"
    page.get_by_role("button", name="accuracy", exact=True).click()
    assert shown(page)[0] == "dca(k=2)"
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("accuracy")


def test_topology_is_hidden_and_shown_again(opened: Open) -> None:
    page = opened()
    button, points = page.get_by_role("button", name="resnet"), page.locator("#front .mark-symbol path")
    before = points.count()
    button.click()
    page.wait_for_function("document.querySelectorAll('#front .mark-symbol path').length == 6")
    assert button.get_attribute("aria-pressed") == "false"
    assert "resnet" not in shown(page)
    button.click()
    page.wait_for_function("document.querySelectorAll('#front .mark-symbol path').length == 9")
    assert (before, len(shown(page))) == (9, 9)


@pytest.fixture(scope="module")
def network_file(network_study: Study, tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("wired") / "report.html"
    network_study.report(path, wirings=True)
    return path.as_uri()


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1100, "light")])
def test_wirings_fit_into_their_boxes(
    opened: Open, network_file: str, network_study: Study, width: int, scheme: str
) -> None:
    page = opened(width, scheme, network_file)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    number = len(tables.contenders(network_study.summaries()))
    assert number == page.locator("[data-of]").count() > 0
    for name in (f"{kind}-{i}" for kind in ("wiring", "depth") for i in range(number)):
        box, drawn = (page.locator(which).bounding_box() for which in (f"#{name}", f"#{name} svg.marks"))
        assert 0.35 * width < drawn["width"] <= box["width"] + 1
        texts = [text.bounding_box() for text in page.locator(f"#{name} svg text:visible").all()]
        for start, extent in (("x", "width"), ("y", "height")):  # none is cut off
            assert max(text[start] + text[extent] for text in texts) <= drawn[start] + drawn[extent] + 1
    page.locator("#wiring-0 .mark-rect path").last.hover()
    label = page.locator("#vg-tooltip-element.visible")
    label.wait_for()
    for text in ("head", "2 feed-forward", "share", "%", "gain"):
        assert text in label.inner_text()


def test_wiring_is_hidden_with_its_topology_and_keeps_its_width(opened: Open, network_file: str) -> None:
    page = opened(file=network_file)
    part, chart = page.locator("[data-of]").first, page.locator("#wiring-0 svg.marks")
    button = page.locator(f"[data-topology='{part.get_attribute('data-of')}']")
    before = chart.bounding_box()["width"]
    button.click()
    page.wait_for_function("document.querySelector('[data-of]').offsetHeight == 0")
    page.set_viewport_size({"width": 700, "height": 900})
    page.set_viewport_size({"width": 1100, "height": 900})
    button.click()
    page.wait_for_function(f"document.querySelector('#wiring-0 svg.marks').clientWidth == {round(before)}")
