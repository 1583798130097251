"""Ways to a page and within it: the search, the list of contents, links that leave the site."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.site import MOST_SHIFT, SHIFT, STILL, OpenPage, Served, Watch

RULE = "published/H2a.html"
BOX, LIST, OPTION = "[role=search] input", "#search-results", "#search-results [role=option]"


def found(page: Page, words: str) -> str:
    """Return the first name that the search finds."""
    page.locator(BOX).fill(words)
    option = page.locator(OPTION).first
    expect(option).to_be_visible()
    return option.locator("span").inner_text()


def test_a_slash_begins_a_search_that_the_keyboard_alone_ends(open_page, site) -> None:
    page, root = open_page(), site.folder.as_uri() + "/"
    watch = Watch(root).on(page)
    page.goto(root + "embedded/runs/c0-clean-s0.html")
    page.keyboard.press("/")
    expect(page.locator(BOX)).to_be_focused()
    assert found(page, "h2a").startswith("H2a")
    for key, marked in (("ArrowDown", 1), ("ArrowUp", 0), ("ArrowUp", page.locator(OPTION).count() - 1)):
        page.keyboard.press(key)
        expect(page.locator(BOX)).to_have_attribute("aria-activedescendant", f"found-{marked}")
        expect(page.locator(OPTION).nth(marked)).to_have_attribute("aria-selected", "true")
    assert found(page, "h2a learning published").startswith("H2a")
    page.keyboard.press("Enter")
    page.wait_for_url(root + RULE)
    assert watch.wrong == []


def test_rules_runs_columns_studies_registrations_and_words_are_found(open_page, site) -> None:
    page = open_page()
    page.goto(site.url("index.html"))
    page.locator(BOX).focus()
    page.wait_for_selector(LIST, state="attached")
    for words, name in (
        ("c0-clean-s0 embedded", "Run c0-clean-s0 (embedded)"),
        ("evaluations successes", "evaluations.successes"),
        ("study coupled", "Study coupled: "),
        ("registration small-lm", "Registration small-lm: "),
        ("luck share", "luck share"),
    ):
        names = [found(page, words), *page.locator(f"{OPTION} span").all_inner_texts()]
        assert any(text.startswith(name) for text in names), names
    page.locator(BOX).fill("nothingofthekind")
    expect(page.locator(OPTION)).to_have_text("Nothing found")
    page.keyboard.press("Escape")
    expect(page.locator(LIST)).to_be_hidden()


def test_what_the_search_needs_is_loaded_when_it_is_used(open_page: OpenPage, site: Served) -> None:
    page, asked = open_page(), set()
    page.on("request", lambda request: asked.add(request.url.rpartition("/")[2]))
    page.goto(site.url("index.html"), wait_until="networkidle")
    assert not {"search.js", "search-index.js"} & asked
    page.locator(BOX).focus()
    page.wait_for_selector(LIST, state="attached")
    assert {"search.js", "search-index.js"} <= asked


def test_a_long_page_lists_its_sections_in_the_margin_and_folded_on_a_phone(open_page, site) -> None:
    wide = open_page(1280)
    wide.goto(site.url(RULE))
    entry = wide.locator(".contents a").last
    expect(entry).to_be_visible()
    assert entry.bounding_box()["x"] > wide.locator("h1").bounding_box()["x"] + 800
    phone = open_page(390, java_script_enabled=False)
    phone.goto(site.url(RULE))
    expect(phone.locator(".contents a").last).to_be_hidden()
    phone.locator(".contents summary").click()
    phone.locator(".contents a").last.click()
    assert phone.url.endswith("#provenance")
    expect(phone.locator(BOX)).to_be_hidden()  # without scripts no search is offered


def test_a_link_to_the_citation_unfolds_it(open_page: OpenPage, site: Served) -> None:
    page = open_page()
    page.goto(site.url(RULE))
    page.locator("footer").get_by_role("link", name="Cite").click()
    expect(page.locator("#cite")).to_be_visible()
    assert "@misc{" in page.locator("#cite").inner_text()


@pytest.mark.parametrize("name", ["index.html", RULE, "data.html"])
def test_nothing_moves_while_a_page_loads_and_the_search_opens(open_page, site, name) -> None:
    page = open_page()
    page.add_init_script(SHIFT)
    page.goto(site.url(name), wait_until="load")
    page.keyboard.press("/")
    page.wait_for_selector(LIST, state="attached")
    assert page.evaluate(STILL) < MOST_SHIFT
