"""Pages in a browser: how they look, who can use them, search, and players."""

import gzip
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from playwright.sync_api import Page, Response, expect

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


PHONE, DESKTOP = (390, 844), (1280, 900)
LOOKS: dict[str, tuple[tuple[int, int], dict[str, Any]]] = {
    "phone": (PHONE, {"has_touch": True, "is_mobile": True}),
    "desktop": (DESKTOP, {}),
    "dark": (DESKTOP, {"color_scheme": "dark"}),
    "print": ((794, 1123), {}),
}
# As much of a long page as anybody looks at.
TALLEST = 3000
WIDTHS = "() => [document.documentElement.scrollWidth, window.innerWidth]"


def test_pages_keep_to_the_width_of_a_phone(open_page, site) -> None:
    page = open_page(*PHONE, has_touch=True, is_mobile=True)
    for name in site.kinds().values():
        page.goto(site.url(name))
        taken, there = page.evaluate(WIDTHS)
        assert taken <= there, name


@pytest.mark.slow
@pytest.mark.parametrize("look", LOOKS)
def test_pages_keep_to_the_width_of_their_screen(open_page, site, artefacts, look) -> None:
    """And pictures of them are kept, for people to look at."""
    (width, height), options = LOOKS[look]
    page = open_page(width, height, **options)
    if look == "print":
        page.emulate_media(media="print")
    wide = {}
    for kind, name in site.kinds().items():
        page.goto(site.url(name))
        taken, there = page.evaluate(WIDTHS)
        if taken > there:
            wide[name] = (taken, there)
        tall = min(page.evaluate("document.documentElement.scrollHeight"), TALLEST)
        box = {"x": 0, "y": 0, "width": width, "height": max(tall, height)}
        page.screenshot(path=artefacts / f"{kind}-{look}.png", full_page=True, clip=box)
    print(f"pictures: {artefacts}")
    assert wide == {}


SERIOUS = ("serious", "critical")
# Everything that a pointer could use, in the order of the page; of radio buttons the keyboard stops at one.
USABLE = """() => {
  const all = [...document.querySelectorAll(
    "a[href], button, input, select, textarea, summary, [tabindex='0'], video[controls]")];
  const usable = all.filter(
    (e) => !e.disabled && e.type !== "hidden" && e.type !== "radio" && e.checkVisibility());
  usable.forEach((e, i) => { e.dataset.stop = String(i); });
  return usable.map((e) => e.outerHTML.slice(0, 90));
}"""
STOP = """() => {
  const e = document.activeElement;
  if (!e || e === document.body) return null;
  const style = getComputedStyle(e);
  const box = e.getBoundingClientRect();
  const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  const seen = (outlined || style.boxShadow !== "none") && box.width > 0 && box.height > 0;
  return [e.dataset.stop ?? null, seen, e.outerHTML.slice(0, 90)];
}"""


@pytest.mark.parametrize("quick", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(open_page: OpenPage, site: Served, scheme: str, quick: bool) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page, axe, violations = open_page(color_scheme=scheme), Axe(), set()
    names = list(site.kinds(quick=quick).values())
    options: dict[str, object] = {"resultTypes": ["violations"]}
    if quick:
        names = names[::2] if scheme == "light" else names[1::4]
    if scheme == "dark":  # nothing else than colours depends on it
        options["runOnly"] = ["color-contrast", "link-in-text-block"]
    for name in names:
        page.goto(site.url(name))
        for violation in axe.run(page, options=options).response["violations"]:
            if violation["impact"] in SERIOUS:
                targets = {str(node["target"]) for node in violation["nodes"]}
                violations.add(f"{name}: {violation['id']}: {len(targets)} places, such as {min(targets)}")
    assert violations == set()


def test_the_first_stop_of_the_keyboard_skips_to_the_content(open_page: OpenPage, site: Served) -> None:
    page = open_page()
    page.goto(site.url("index.html"))
    page.keyboard.press("Tab")
    link = page.locator(":focus")
    assert link.get_attribute("href") == "#content"
    box = link.bounding_box()
    assert box is not None
    assert min(box["x"], box["y"]) >= 0
    page.keyboard.press("Enter")
    assert page.url.endswith("#content")


@pytest.mark.slow
def test_the_keyboard_reaches_everything_and_shows_where_it_is(open_page: OpenPage, site: Served) -> None:
    page, missed, unseen = open_page(), set(), set()
    for name in site.kinds().values():
        page.goto(site.url(name))
        usable, reached = page.evaluate(USABLE), set()
        for _ in range(len(usable) + 20):
            page.keyboard.press("Tab")
            stop = page.evaluate(STOP)
            if stop is None:
                break
            if not stop[1]:
                unseen.add(f"{name}: {stop[2]}")
            if stop[0] is not None:
                reached.add(int(stop[0]))
        missed |= {f"{name}: {element}" for i, element in enumerate(usable) if i not in reached}
    assert missed == set()
    assert unseen == set()


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


RUN = "embedded/runs/c2-paired-s1.html"
FILTERED = "#phase=periodic&regime=faults_p025"


def status(page: Page) -> str:
    return page.locator("#player > [role=status]").inner_text()


def test_buttons_and_arrows_step_through_episodes_that_meet_the_same_draws(open_page, site) -> None:
    page = open_page()
    page.goto(f"{site.address}world.html")
    assert status(page).startswith("Call 1 of ")
    assert "meet the same draw" in status(page)
    assert page.locator(".pair:not([hidden]) .call.same").count() == 2
    page.get_by_role("button", name="Next").click()
    page.keyboard.press("ArrowRight")
    assert status(page).startswith("Call 3 of ")
    page.get_by_role("button", name="Previous").click()
    assert status(page).startswith("Call 2 of ")
    page.get_by_role("button", name="All").click()
    page.locator("#player select").select_option("3")
    assert status(page).startswith("Call 1 of ")  # another episode starts at its first call
    assert page.locator("details.pair:not([hidden])").count() == 1


def test_a_runs_episodes_are_those_that_the_address_asks_for_and_filters_stay_in_it(open_page, site) -> None:
    page = open_page()
    page.goto(f"{site.address}{RUN}{FILTERED}")
    page.wait_for_selector("#episodes tbody tr")
    assert page.locator("#episodes [role=status]").inner_text().startswith("768 episodes of ")
    page.locator("#episodes select[name=outcome]").select_option("failed")
    assert page.url.endswith(f"{FILTERED}&outcome=failed")
    assert page.locator("#episodes [role=status]").inner_text().endswith("; 0 succeeded.")


def test_a_runs_rows_and_settings_are_read_from_its_registers_where_somebody_opens_them(
    open_page: OpenPage, site: Served, watch: Watch
) -> None:
    page = open_page()
    watch.on(page)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{site.address}{RUN}")
    assert not any("/data/" in url for url in asked), "nothing is loaded that nobody asked for"
    page.locator("details[data-rows=runs] > summary").click()
    page.locator("details[data-rows=runs] dt", has_text="at noise").wait_for()
    page.locator("details[data-rows=groups] > summary").click()
    page.locator("details[data-rows=groups] tbody tr").first.wait_for()
    assert page.locator("details[data-rows=groups] tbody tr").count() == 50
    assert {url.rpartition("/data/")[2] for url in asked if "/data/" in url} == {
        "embedded.js",  # the manifest, which says where the file of all runs lies
        "embedded/runs/train-00000-of-00001.js",
        "embedded/groups/c2-paired-s1.js",
    }
    assert watch.wrong == []


def test_episodes_of_a_run_open_in_the_player(open_page: OpenPage, site: Served) -> None:
    page = open_page()
    page.goto((site.folder / RUN).as_uri())
    page.locator("details[data-played] > summary").click()
    status = page.locator("details[data-played] [role=status]")
    status.wait_for()
    assert status.inner_text().startswith("Call 1 of ")
    page.locator("details[data-played]").get_by_role("button", name="Next").click()
    assert status.inner_text().startswith("Call 2 of ")
    outcomes = page.locator("details[data-played] option").all_inner_texts()
    assert {words.rpartition(": ")[2] for words in outcomes} == {"succeeded", "failed"}
