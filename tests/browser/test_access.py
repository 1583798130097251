"""Who cannot see well, hear, or use a mouse reads every kind of page as well."""

import pytest

from tests.browser.site import OpenPage, Served

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
