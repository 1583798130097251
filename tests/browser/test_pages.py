"""Every page loads: no error, nothing against its policy or from elsewhere; once there nothing moves."""

import gzip
from xml.etree import ElementTree as ET

import pytest
from playwright.sync_api import Response

from tests.browser.site import MOST_SHIFT, SHIFT, STILL, OpenPage, Served, Watch, shift_of
from toolkit.site.checking import HOME_WITH_SCRIPTS, HOME_WITHOUT_SCRIPTS


@pytest.mark.parametrize("pages", ["one of each kind", pytest.param("all", marks=pytest.mark.slow)])
def test_a_page_loads_without_a_word_of_complaint_and_asks_nobody_else(open_page, site, watch, pages) -> None:
    # So low that no chart comes into view: what scripts draw is another test's, and takes its time.
    page = open_page(height=90)
    watch.on(page)
    for name in site.names if pages == "all" else site.kinds().values():
        page.goto(site.url(name), wait_until="load")
    assert watch.wrong == []


@pytest.mark.parametrize("quick", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_charts_say_the_mark_that_is_pointed_at_without_a_complaint(open_page, site, quick) -> None:
    root = site.folder.as_uri()
    page = open_page()
    watch = Watch(root).on(page)
    for name in list(site.kinds(quick=quick).values())[:: 3 if quick else 1]:
        page.goto(f"{root}/{name}")
        mark = page.locator("figure.chart svg:visible .mark").first
        if mark.count():
            mark.scroll_into_view_if_needed()
            mark.hover(force=True)
            assert page.locator("output.told").text_content() in page.locator(".mark").evaluate_all(
                "marks => marks.map(mark => mark.getAttribute('aria-label'))"
            )
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.wait_for_load_state("networkidle")
    assert watch.wrong == []


def test_without_scripts_the_first_chart_of_every_kind_of_page_is_there(open_page, site) -> None:
    page, shown = open_page(java_script_enabled=False), set()
    for kind, name in site.kinds().items():
        page.goto(site.url(name))
        drawing = page.locator("figure.chart svg:visible").first
        if page.locator("figure.chart").count():
            box = drawing.bounding_box()
            assert box is not None, name
            assert min(box["width"], box["height"]) > 50, (name, box)
            shown.add(kind)
    assert "rule" in shown


def test_reading_the_front_page_to_its_end_takes_no_more_than_was_promised(open_page, site) -> None:
    page = open_page()
    answers: list[Response] = []
    page.on("response", lambda answer: answers.append(answer))  # noqa: PLW0108 - it takes no built-in
    page.goto(site.url("index.html"))
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.wait_for_load_state("networkidle")
    sizes = {answer.url: len(gzip.compress(answer.body())) for answer in answers if answer.ok}
    assert sum(sizes.values()) < HOME_WITH_SCRIPTS
    assert sum(size for url, size in sizes.items() if not url.endswith(".js")) < HOME_WITHOUT_SCRIPTS


def test_a_figure_is_saved_with_its_looks_and_its_rows_and_says_the_same_on_a_phone(open_page, root) -> None:
    page = open_page(400)
    watch = Watch(root).on(page)
    page.goto(f"{root}embedded/H2a.html")
    figure = page.locator("figure:has(svg.narrow)").first
    said = [
        figure.locator(f"svg.{drawing} .mark").evaluate_all("marks => marks.map((m) => m.ariaLabel)")
        for drawing in ("wide", "narrow")
    ]
    assert said[0] == said[1] != []
    saved = {}
    for name in ("CSV", "SVG"):
        with page.expect_download() as download:
            figure.get_by_role("button", name=name).click()
        saved[name] = download.value.path().read_text("utf-8")
    assert saved["CSV"].splitlines()[0] == figure.get_attribute("data-columns")
    assert len(saved["CSV"].splitlines()) == len(said[0]) + 1
    drawn = ET.fromstring(saved["SVG"])  # noqa: S314 - our own drawing
    bar = next(part for part in drawn.iter("{http://www.w3.org/2000/svg}path") if part.get("class") == "bar")
    assert "stroke: rgb(0, 114, 178)" in str(bar.get("style"))
    assert watch.wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_on_a_page_of_any_kind_moves_while_it_loads(open_page, site, width) -> None:
    page = open_page(width)
    page.add_init_script(SHIFT)
    moved = {name: shift_of(page, site.url(name)) for name in site.kinds().values()}
    assert {name: shift for name, shift in moved.items() if shift >= MOST_SHIFT} == {}


def test_a_page_that_moves_is_seen_to(open_page: OpenPage, site: Served) -> None:
    page = open_page()
    page.add_init_script(SHIFT)
    shift_of(page, site.url("index.html"))
    page.evaluate(
        """() => {
        const late = document.createElement("div");
        late.style.height = "400px";
        document.querySelector("main").prepend(late);
    }"""
    )
    assert page.evaluate(STILL) >= MOST_SHIFT
