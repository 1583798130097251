"""What pages compute in the reader's browser is what the toolkit computes."""

import pytest
from playwright.sync_api import Page

from tests.browser.site import OpenPage, Served, Watch
from tests.conftest import run

SLIDE = """(input, value) => {
  input.value = value;
  input.dispatchEvent(new Event("input", { bubbles: true }));
}"""


def rows(page: Page, table: str) -> list[list[str]]:
    """Return the cells of a table's body."""
    cells: list[list[str]] = page.locator(f"{table} tbody tr").evaluate_all(
        "rows => rows.map((row) => [...row.children].map((cell) => cell.textContent.trim()))"
    )
    return cells


@pytest.mark.parametrize(
    "asked",
    [
        ("H2a", "--study", "published"),
        ("H5", "--study", "tiny-lm"),
        pytest.param(("--all",), marks=pytest.mark.slow),
    ],
)
def test_a_hypothesis_is_decided_again_as_recorded(open_page, site, watch, asked) -> None:
    decided = run("decide", *asked, "--json").json()
    decisions = [decision for decision in decided if decision["kind"] == "hypothesis"]
    page = open_page()
    watch.on(page)
    reached = {}
    for decision in decisions:
        page.goto(site.url(f"{decision['study']}/{decision['rule']}.html"))
        page.get_by_role("button", name="Decide it again here").click()
        status = page.locator(".decide-status").filter(has_text="here: ")
        status.wait_for(timeout=60_000)
        reached[decision["study"], decision["rule"]] = status.inner_text()
    expected = {
        (d["study"], d["rule"]): (
            f"Reached here: {d['verdict'].replace('_', ' ')}. Recorded: {d['verdict'].replace('_', ' ')}. "
            "They agree, in every criterion."
        )
        for d in decisions
    }
    assert reached == expected
    assert watch.wrong == []


def test_a_what_if_says_that_it_is_none_of_the_registered_and_leaves_the_verdict_alone(
    open_page: OpenPage, site: Served, watch: Watch
) -> None:
    page = open_page()
    watch.on(page)
    page.goto(site.url("embedded/H2a.html"))
    page.get_by_text("What if? (not registered").click()
    before = page.locator(".whatif tbody").inner_text()
    page.get_by_label("The mean AUC difference is at least 0.03: 0.03").fill("0.001")
    page.get_by_label("without seed 0").check()
    after = page.locator(".whatif tbody")
    assert after.inner_text() != before
    assert "-0.00117" in after.inner_text()  # the mean of seeds 1 and 2
    assert "not registered" in page.locator(".whatif .note").inner_text()
    assert page.locator(".whatif .verdict").count() == 0
    assert page.locator('[data-shown="verdict"]').inner_text() == "miss"
    assert watch.wrong == []


def test_the_rows_of_an_endpoint_are_listed_when_they_are_asked_for(open_page, site) -> None:
    page = open_page()
    page.goto(site.url("embedded/H2a.html"))
    page.locator(".proof[data-state=good]").wait_for()
    details = page.locator("details[data-endpoint=c2_auc]")
    assert details.locator("tbody tr").count() == 0
    details.locator("summary").click()
    details.locator("tbody tr").first.wait_for()
    assert details.locator("tbody tr").count() == int(details.locator("[data-rows]").inner_text()) == 36


def test_the_sliders_show_the_bandit_of_the_command_line(open_page, site, watch) -> None:
    page = open_page()
    watch.on(page)
    page.goto(site.url("theory.html"))
    for name, value in (("logit", "1"), ("size", "4"), ("rate", "0.2")):
        page.locator(f"#bandit input[name={name}]").evaluate(SLIDE, value)
    settings = ("--logit", "1", "--group-size", "4", "--flip-rate", "0.2")
    expected = run("theory", "bandit", *settings, "--json").json()
    trace = "mean_centred"
    for _ in range(2):
        shown = {row[0]: [float(cell) for cell in row[1:3]] for row in rows(page, "#bandit .numbers")}
        for title, pair in (
            ("reward contrast", expected["contrast_variance"]),
            (f"{trace.replace('_', '-')} gradient", expected[trace]["trace"]),
        ):
            (variances,) = (value for name, value in shown.items() if name.endswith(title))
            assert variances == pytest.approx([pair["independent"], pair["paired"]], abs=1e-6)
        page.get_by_label("standardized").check()
        trace = "standardized"
    assert watch.wrong == []


def test_any_events_draw_is_the_command_lines(open_page: OpenPage, site: Served) -> None:
    page = open_page()
    page.goto(site.url("world.html"))
    for name, value in (("seed", "18446744073709551615"), ("resource", 'O-"7"\u202e'), ("repeat", "3")):
        page.locator(f"#draw input[name={name}]").fill(value)
    page.locator("#draw select[name=tool]").select_option("get_order")
    expected = run("draw", "18446744073709551615", "get_order", 'O-"7"\u202e', "3", "--json").json()
    page.locator("#draw .drawn code", has_text=expected["digest"]).wait_for()
    shown = page.locator("#draw .drawn dd code").all_inner_texts()
    assert shown[0] == expected["digest"]
    assert [float(text) for text in shown[1:4]] == [expected[key] for key in ("gate", "type", "magnitude")]
