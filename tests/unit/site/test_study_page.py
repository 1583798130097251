"""The page of a study: what was registered to run, what ran, and what is missing."""

from dataclasses import replace
from posixpath import normpath

import pytest

from tests.unit.site.reading import Read, made_by, page_of, rendered
from toolkit.decisions.case import Case
from toolkit.prereg.verification import Standing
from toolkit.rules.plan import Plan
from toolkit.site.material import Material
from toolkit.site.pages import home, luck, probe, registration, rule, run, study


def test_a_published_study_says_that_its_rows_never_were(case: Case) -> None:
    text = page_of(Material((case,)), "published/index.html", study).text
    assert "its episode rows were never published" in text
    assert "Never published: episodes" in text


def test_runs_that_did_not_run_and_tables_that_are_not_there_are_named(some: Case) -> None:
    text = page_of(Material((some,)), "rows/index.html", study).text
    assert "6 of 6" in text
    assert all(f"{arm}, seed 0 1 2" in text for arm in ("independent", "paired"))
    assert "0 of 6: not run" in text
    assert "Not in the registers of this study: launches" in text
    assert "counts of training groups" not in text  # it never trained here, so that nothing of it is missing


def test_links_lead_to_pages_that_are_there(some: Case) -> None:
    pages = made_by(Material((some,)), study, run, rule)
    links = Read(rendered(pages["rows/index.html"], pages)).links
    inside = {normpath(f"rows/{link}") for link in links if link.endswith(".html")}
    assert "rows/runs/C2-paired-1.html" in inside
    assert inside <= {*pages, "index.html"}


def test_every_verdict_of_the_study_is_listed(case: Case) -> None:
    text = page_of(Material((case,)), "published/index.html", study).text
    assert all(decision.title in text for decision in case.decide_all())


def test_runs_that_enter_no_decision_are_not_called_not_run(some: Case) -> None:
    plan = some.book.plan
    pilot = replace(plan.cells[0], tier=0, condition="C9", role="pilot", seeds=(900, 901))
    roles = tuple(role for role in plan.roles if role != "pilot")
    book = replace(some.book, plan=Plan(roles, (*plan.cells, pilot)))
    text = page_of(Material((replace(some, book=book),)), "rows/index.html", study).text
    matrix = text[text.index("The registered matrix") : text.index("What is missing")]
    assert matrix.index("C9") < matrix.index("C2")
    told = matrix[matrix.index("C9") : matrix.index("C2")]
    assert "role pilot: enters no decision; no rows of it in this study" in told
    assert "not run" not in told
    assert "tier 0, C9, paired and independent: 4 runs of role pilot" in text[text.index("What is missing") :]


@pytest.mark.parametrize("room", [home, study, rule, probe, luck, registration])
def test_every_page_with_verdicts_says_what_they_stand_on(case, room, monkeypatch) -> None:
    monkeypatch.setattr(rule, "rule_charts", lambda *_: ())
    if room is rule:
        some = case.decide_all()[:3]  # each page is made in one way
        monkeypatch.setattr(Case, "decide_all", lambda _: some)
    for standing, told in (
        (
            Standing("demonstration"),
            "demonstration (authorities made for the occasion: proves nothing to others)",
        ),
        (Standing("failed", ("amendments before runs",)), "FAILED: amendments before runs"),
    ):
        pages = made_by(Material((replace(case, standing=standing),)), room)
        assert pages
        for page in pages.values():
            assert f"rest on: {told}" in Read(rendered(page)).text, page.name
