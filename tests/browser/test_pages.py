"""Every page loads: no error, nothing against its policy, nothing from elsewhere, no link to nowhere."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

from tests.browser.site import DRAWN, Served, Watch
from toolkit.website.checking import HOME_WITH_SCRIPTS, HOME_WITHOUT_SCRIPTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page, Response

    OpenPage = Callable[..., Page]

# What a browser makes of every reference, and everything that a fragment can name.
READ = """() => ({
  links: [...document.querySelectorAll("a[href], link[href], script[src], img[src]")]
    .map((e) => e.href || e.src),
  ids: [...document.querySelectorAll("[id]")].map((e) => e.id),
})"""


@pytest.mark.parametrize("pages", ["one of each kind", pytest.param("all", marks=pytest.mark.slow)])
def test_a_page_loads_without_a_word_of_complaint_and_asks_nobody_else(
    open_page: OpenPage, site: Served, watch: Watch, pages: str
) -> None:
    # So low that no chart comes into view: what scripts draw is another test's, and takes its time.
    page = open_page(height=90)
    watch.on(page)
    for name in site.names if pages == "all" else site.kinds().values():
        page.goto(site.url(name), wait_until="load")
    assert watch.wrong == []


def test_every_link_leads_to_a_file_and_every_fragment_to_an_id(open_page: OpenPage, site: Served) -> None:
    """As a browser reads them, on the largest page of each kind; `toolkit site check` follows all."""
    page, read, broken = open_page(height=90), {}, set()
    for name in site.kinds().values():
        page.goto(site.url(name))
        read[name] = page.evaluate(READ)
    for name, found in read.items():
        for link in found["links"]:
            if link.startswith("data:"):
                continue
            place, _, fragment = link.removeprefix(site.address).partition("#")
            target = unquote(place) or "index.html"
            if not (site.folder / target).is_file() or (
                fragment
                and "=" not in fragment  # a question to a script
                and target in read
                and unquote(fragment) not in read[target]["ids"]
            ):
                broken.add(f"{name}: {link}")
    assert broken == set()


def test_charts_are_drawn_again_by_scripts_without_a_complaint(
    open_page: OpenPage, site: Served, watch: Watch
) -> None:
    page = open_page()
    watch.on(page)
    for name in site.kinds().values():
        page.goto(site.url(name))
        figures = page.locator("figure.chart:has(.specification)")
        if figures.count() and figures.first.is_visible():
            figures.first.scroll_into_view_if_needed()
            page.wait_for_function(DRAWN)
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.wait_for_load_state("networkidle")
    assert watch.wrong == []


def test_pages_work_from_a_folder_as_well(open_page: OpenPage, site: Served) -> None:
    page, root = open_page(), site.folder.as_uri()
    watch = Watch(root).on(page)
    for name in site.kinds().values():
        page.goto(f"{root}/{name}")
        figures = page.locator("figure.chart:has(.specification)")
        if figures.count() and figures.first.is_visible():
            figures.first.scroll_into_view_if_needed()
            page.wait_for_function(DRAWN)
    assert watch.wrong == []


def test_without_scripts_the_first_chart_of_every_kind_of_page_is_there(
    open_page: OpenPage, site: Served
) -> None:
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


def test_reading_the_front_page_to_its_end_takes_no_more_than_was_promised(
    open_page: OpenPage, site: Served
) -> None:
    page = open_page()
    answers: list[Response] = []
    page.on("response", lambda answer: answers.append(answer))  # noqa: PLW0108 - it takes no built-in
    page.goto(site.url("index.html"))
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.wait_for_load_state("networkidle")
    sizes = {answer.url: len(gzip.compress(answer.body())) for answer in answers if answer.ok}
    assert sum(sizes.values()) < HOME_WITH_SCRIPTS
    assert sum(size for url, size in sizes.items() if not url.endswith(".js")) < HOME_WITHOUT_SCRIPTS
