"""The site: true, whole, safe to open; and the page of a study."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, Result
from tests.unit.decisions.rows_study import registered_study
from tests.unit.site.reading import Read, made_by, page_of, rendered
from tests.unit.site.sizes import GOALS, WHOLE, sizes
from toolkit.decisions.case import Case
from toolkit.prereg.record import read_amendment
from toolkit.prereg.verification import Standing
from toolkit.rules.plan import Plan
from toolkit.site.material import Material
from toolkit.site.page import Page
from toolkit.site.pages import home, luck, probe, registration, rule, study
from toolkit.site.pages import home as home_page
from toolkit.site.pages import registration as registration_page
from toolkit.structs import replace
from toolkit.verification.registered import open_case

SITE = CHECKOUT / "site"


def shipped(name: str) -> Read:
    return Read((SITE / name).read_text(encoding="utf-8"))


@pytest.mark.slow
def test_the_shipped_site_is_what_the_registers_give(toolkit: Callable[..., Result]) -> None:
    result = toolkit("site", "check")
    assert result.code == 0, result.err


@pytest.mark.parametrize("what", sorted(GOALS.keys() - {WHOLE}))
def test_the_shipped_site_is_no_larger_than_promised(what: str) -> None:
    assert sizes(SITE)[what] <= GOALS[what]


def test_a_rule_of_two_seeds_draws_two_seeds(case: Case) -> None:
    page = (SITE / "published/H4.html").read_text(encoding="utf-8")
    series = {point.series for point in case.engine.curve("c4_auc_group")}
    assert series == {"seed 0", "seed 1", "mean", "replication"}
    assert "Thin lines are 2 seeds" in page
    assert "replication that decides nothing" in page


def test_an_amended_rule_shows_what_was_frozen() -> None:
    text = shipped("published/H1b.html").text
    assert "As frozen, before amendment A1" in text
    assert "each(probe_outcome_gate1 < 1)" in text


def amended(case: Case, *texts: tuple[str, str]) -> Material:
    """Return a site's material once amendments were recorded."""
    new = tuple(read_amendment(text.encode(), label) for label, text in texts)
    registration = replace(case.registration, amendments=(*case.registration.amendments, *new))
    return Material((open_case(case.study, registration),))


def an_amendment(label: str, relation: str, bar: str) -> tuple[str, str]:
    return label, (
        f'[amendment]\nid = "{label}"\ndated = "2027-01-0{label[1]}"\ntitle = "t"\n'
        f'seen = "Seen {label}."\nreason = "Why."\nchanges = ["c"]\n{relation} = ["N1"]\n'
        f'[rules.N1]\nkind = "prediction"\ntitle = "New"\ntext = "At least {bar}."\n'
        f'[[rules.N1.criteria]]\nid = "a"\ntext = "It is."\ntest = "mean(c2_auc) >= {bar}"\n'
    )


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules' pages without charts, which take longer than all else of them."""
    monkeypatch.setattr(rule, "rule_charts", lambda *_: ())


@pytest.mark.usefixtures("undrawn")
def test_an_added_rule_is_shown_as_added_and_never_as_frozen(case: Case) -> None:
    material = amended(case, an_amendment("A2", "adds", "0.02"))
    page = page_of(material, "published/N1.html", rule).text
    assert "Added by amendment A2 (2027-01-02), what had been seen: Seen A2." in page
    assert "The amendment adds this rule. Why." in page
    for text in ("As frozen", "As added", "riginally", "unchanged"):
        assert text not in page
    front = page_of(material, "index.html", home_page).text
    assert front.count("added by amendment A2") == front.count("added by") == 1


@pytest.mark.usefixtures("undrawn")
def test_an_added_rule_that_was_replaced_shows_what_was_added(case: Case) -> None:
    both = an_amendment("A2", "adds", "0.02"), an_amendment("A3", "replaces", "0.04")
    page = page_of(amended(case, *both), "published/N1.html", rule).text
    assert "Added by amendment A2 (2027-01-02), what had been seen: Seen A2." in page
    assert "As added by amendment A2, before amendment A3 At least 0.02." in page
    assert "What had been seen: Seen A3." in page
    assert "As frozen" not in page


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{ 7*7 }}"


@pytest.mark.usefixtures("undrawn")
def test_hostile_text_in_registration_and_registers_is_shown_as_text(case: Case) -> None:
    registration = replace(
        case.registration,
        deviations=tuple(replace(d, title=HOSTILE, text=HOSTILE) for d in case.registration.deviations),
        rules=case.registration.rules.replace('title = "Recovery"', f'title = """{HOSTILE}"""'),
    )
    hostile = open_case(case.study, registration)
    names = ("index.html", "registrations/paired-rollouts.html", "published/index.html", "published/H3.html")
    for name in names:
        page = page_of(Material((hostile,)), name, home_page, registration_page, study, rule)
        assert "img" not in page.tags
        assert all(source or kind == "application/json" for source, kind in page.scripts)
    assert HOSTILE in page.text


def test_a_computed_interval_says_what_it_was_computed_from(case: Case, tmp_path: Path) -> None:
    rows = open_case(registered_study(tmp_path, case), case.registration)
    text = page_of(Material((rows,)), "rows/H2a.html", rule).text
    assert "computed from episode rows, 10,000 resamples (percentile bootstrap" in text
    assert "published" not in text.partition("Estimate")[2].partition("Rows")[0]


def test_a_close_call_is_shown(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    close = replace(case.decide("H2a"), close_calls=("a test could turn",))
    monkeypatch.setattr(Case, "decide_all", lambda _: (close,))
    page = page_of(Material((case,)), "published/H2a.html", rule)
    assert "Close call: a test could turn." in page.text


def test_a_published_study_says_that_its_rows_never_were(case: Case, pages: dict[str, Page]) -> None:
    text = Read(rendered(pages["published/index.html"])).text
    assert "its episode rows were never published" in text
    assert "Never published: episodes" in text
    assert all(decision.title in text for decision in case.decide_all())


def test_runs_that_did_not_run_and_tables_that_are_not_there_are_named(some: Case) -> None:
    text = page_of(Material((some,)), "rows/index.html", study).text
    assert "6 of 6" in text
    assert all(f"{arm}, seed 0 1 2" in text for arm in ("independent", "paired"))
    assert "0 of 6: not run" in text
    assert "Not in the registers of this study: launches" in text
    assert "counts of training groups" not in text  # it never trained here, so that nothing of it is missing


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


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("room", [home, study, rule, probe, luck, registration])
def test_every_page_with_verdicts_says_what_they_stand_on(case, room, monkeypatch) -> None:
    if room is rule:
        some = case.decide_all()[:1]  # each page is made in one way
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
