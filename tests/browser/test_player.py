"""Stepping through recorded episodes, and finding a run's episodes by the address."""

from playwright.sync_api import Page

from tests.browser.site import OpenPage, Served, Watch

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
