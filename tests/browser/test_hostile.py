"""Text that others wrote is shown as text: nothing of it runs, and nothing of it breaks a page."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.hostile import ATTACKS, CANARY, hostile_home
from tests.browser.site import OpenPage, Served, Watch, served
from tests.conftest import run, snapshot
from toolkit.places import HOME_VARIABLE
from toolkit.site.checking import check_links

Loaded = tuple[list[str], dict[str, dict[str, object]]]
LOOK = f"""() => ({{
  ran: window.{CANARY},
  wide: document.documentElement.scrollWidth > window.innerWidth,
  found: document.querySelectorAll("img[src='x'], [onload], [onerror], [onfocus], base").length,
  text: document.body.textContent,
}})"""


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = hostile_home(tmp_path_factory.mktemp("hostile"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(HOME_VARIABLE, str(home))
        result = run("site", "build")
    assert result.code == 0, result.err
    with served(home / "site") as site:
        yield site


@pytest.fixture(scope="module", params=["one of each kind", pytest.param("all", marks=pytest.mark.slow)])
def loaded(chromium: Browser, attacked: Served, request: pytest.FixtureRequest) -> Loaded:
    """Load pages on a phone, and return what went wrong and what each page holds."""
    page = chromium.new_page(viewport={"width": 390, "height": 844})
    watch = Watch(attacked.address).on(page)
    read = {}
    for name in attacked.names if request.param == "all" else attacked.kinds().values():
        page.goto(attacked.url(name), wait_until="load")
        read[name] = page.evaluate(LOOK)
    page.close()
    return watch.wrong, read


def test_no_text_runs_asks_complains_or_widens_a_page_and_all_markup_is_text(loaded: Loaded) -> None:
    wrong, pages = loaded
    assert wrong == []
    assert [name for name, page in pages.items() if page["ran"] or page["found"] or page["wide"]] == []
    everything = " ".join(str(page["text"]) for page in pages.values())
    assert [attack for attack in ATTACKS[:9] if attack not in everything] == []


def test_every_reference_leads_to_a_file_of_the_site_and_no_file_lies_outside(attacked: Served) -> None:
    assert [str(finding) for finding in check_links(snapshot(attacked.folder))] == []
    assert {path.name for path in attacked.folder.parent.iterdir()} == {"prereg", "registers", "site"}


@pytest.mark.slow
def test_scripts_draw_on_hostile_pages_as_well(open_page: OpenPage, attacked: Served) -> None:
    page = open_page()
    watch = Watch(attacked.address).on(page)
    for name in attacked.kinds().values():
        page.goto(attacked.url(name))
        page.evaluate("scrollTo(0, document.body.scrollHeight)")
        page.wait_for_load_state("networkidle")
        assert page.evaluate(LOOK)["ran"] is None, name
    assert watch.wrong == []
