"""What pages say: what is missing, what came later, what verdicts stand on; and others' words as text."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from tests.conftest import CHECKOUT, Result
from tests.unit.site.reading import Read, made_by, page_of, pages_of, rendered
from tests.unit.site.sizes import GOALS, WHOLE, sizes
from toolkit import registrations
from toolkit.decisions.case import Case
from toolkit.places import Home
from toolkit.prereg.record import known_authorities, read_amendment
from toolkit.prereg.registration import load_registration
from toolkit.prereg.verification import Reader, Standing, verify_registration
from toolkit.rules.plan import Plan
from toolkit.site.environment import markdown, ticked
from toolkit.site.material import Material
from toolkit.site.pages import home as front_page
from toolkit.site.pages import luck, probe, registration, rule, study
from toolkit.site.pages.registration import touching_runs
from toolkit.structs import replace
from toolkit.verification.registered import open_case

SITE = CHECKOUT / "site"
EMBEDDED, PUBLISHED = "registrations/embedded.html", "registrations/paired-rollouts.html"
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{ 7*7 }} `a <b>`"


@pytest.mark.slow
def test_the_shipped_site_is_what_the_registers_give(toolkit: Callable[..., Result]) -> None:
    result = toolkit("site", "check")
    assert result.code == 0, result.err


@pytest.mark.parametrize("what", sorted(GOALS.keys() - {WHOLE}))
def test_the_shipped_site_is_no_larger_than_promised(what: str) -> None:
    assert sizes(SITE)[what] <= GOALS[what]


def amended(case: Case, *added: tuple[str, str, str]) -> Material:
    """Return a site's material once amendments were recorded: id, relation, bar of the rule N1."""
    new = [
        read_amendment(
            f'[amendment]\nid = "{label}"\ndated = "2027-01-0{label[1]}"\ntitle = "t"\n'
            f'seen = "Seen {label}."\nreason = "Why."\nchanges = ["c"]\n{relation} = ["N1"]\n'
            f'[rules.N1]\nkind = "prediction"\ntitle = "New"\ntext = "At least {bar}."\n'
            f'[[rules.N1.criteria]]\nid = "a"\ntext = "It is."\ntest = "mean(c2_auc) >= {bar}"\n'.encode(),
            f"amendments/{label}.toml",
        )
        for label, relation, bar in added
    ]
    registered = replace(case.registration, amendments=(*case.registration.amendments, *new))
    return Material((open_case(case.study, registered),))


def verified(home: Home, month: int) -> Material:
    """Return the embedded registration as it is verified in a month of 2026 or after."""
    folder = home.registration_folder("embedded")
    reader = Reader(known_authorities(), datetime(2026 + month // 13, month % 12 or 12, 1, tzinfo=UTC))
    return Material(
        (), (), (verify_registration(folder, reader),), registrations=(load_registration(folder),)
    )


@pytest.fixture(scope="module")
def sites(case: Case, some: Case, embedded: Case, home: Home) -> dict[str, Material]:
    added = ("A2", "adds", "0.02")
    close = replace(case.decide("H2a"), close_calls=("a test could turn",))
    pilot = replace(some.book.plan.cells[0], tier=0, condition="C9", role="pilot", seeds=(900, 901))
    roles = tuple(role for role in some.book.plan.roles if role != "pilot")
    beside = replace(some.book, plan=Plan(roles, (*some.book.plan.cells, pilot)))
    any_verdict = dict.fromkeys(embedded.book.rules, close)
    judged = {v.registration: v for v in registrations.verify_frozen(home, (case.study, embedded.study))}
    return {
        "published": Material((case,), (), (judged["paired-rollouts"],)),
        "embedded": Material((replace(embedded, _decided=any_verdict),), (), (judged["embedded"],)),
        "alone": verified(home, 12),
        "rows": Material((some,)),
        "added": amended(case, added),
        "replaced": amended(case, added, ("A3", "replaces", "0.04")),
        "close": Material((replace(case, _decided={"H2a": close}),)),
        "pilot": Material((replace(some, book=beside),)),
    }


SEEN = "Added by amendment A2 (2027-01-02), what had been seen: Seen A2."
PILOT = "role pilot: enters no decision; no rows of it in this study"
# Site, page → what it says; after a minus, what it does not.
SAID = {
    ("published", "published/index.html"): (
        "its episode rows were never published",
        "Never published: episodes",
    ),
    ("published", "published/runs/t1-c2-paired-s1.html"): (
        *("The episodes of this run were never published", "Not run, and would read it: P5, P8."),
        *("Read by H1a, H1b", "- Training steps"),
    ),
    ("published", "published/runs/t1-c2-paired-s2.html"): ("- H1b",),
    ("published", PUBLISHED): (
        "14 deciding runs of published, first launch to last",
        "2026-09-08 17:03:25 UTC launch first post-freeze training launch: t1-c2-independent-s0",
        "no verified token shows it",
    ),
    ("rows", "rows/runs/C2-paired-1.html"): (
        *("episodes/C2-paired-1.parquet", "Same condition and seed: independent, C2-independent-1."),
        "Read by H1a, H1b, H2a, H3",
    ),
    ("rows", "rows/index.html"): (
        *("6 of 6", "independent, seed 0 1 2", "paired, seed 0 1 2", "0 of 6: not run"),
        "Not in the registers of this study: launches",
        "- counts of training groups",  # it never trained here, so that nothing of it is missing
    ),
    ("rows", "rows/H2a.html"): ("computed from episode rows, 10,000 resamples (percentile bootstrap",),
    ("pilot", "rows/index.html"): (PILOT, "tier 0, C9, paired and independent: 4 runs of role pilot"),
    ("close", "published/H2a.html"): ("Close call: a test could turn.",),
    ("published", "published/H1b.html"): (
        *("As frozen, before amendment A1", "each(probe_outcome_gate1 < 1)"),
    ),
    ("added", "published/N1.html"): (
        *(SEEN, "The amendment adds this rule. Why."),
        *("- As frozen", "- As added", "- riginally", "- unchanged"),
    ),
    ("added", "index.html"): ("added by amendment A2",),
    ("replaced", "published/N1.html"): (
        *(SEEN, "As added by amendment A2, before amendment A3 At least 0.02."),
        *("What had been seen: Seen A3.", "- As frozen"),
    ),
    ("alone", EMBEDDED): ("proves nothing to others", "cannot convince anybody of a time"),
    # D1 of the embedded study: two deciding runs were first launched within the tokens' accuracy.
    ("embedded", EMBEDDED): (
        "names no exception. D1, recorded later, speaks of deciding runs c2-paired-s0, c2-paired-s1",
        *("Other entries: D2.", "(see deviation D1)", "- No exception was disclosed"),
    ),
}


@pytest.mark.parametrize(("site", "name"), SAID)
def test_a_page_says_what_a_reader_has_to_know(sites: dict[str, Material], site: str, name: str) -> None:
    text = page_of(sites[site], name).text
    for part in SAID[site, name]:
        assert (part.removeprefix("- ") in text) != part.startswith("- "), part


def test_runs_that_enter_no_decision_come_first_and_are_not_called_not_run(sites) -> None:
    text = page_of(sites["pilot"], "rows/index.html").text
    matrix = text[text.index("The registered matrix") : text.index("What is missing")]
    assert "not run" not in matrix[matrix.index("C9") : matrix.index("C2")]


def test_a_deviation_that_names_runs_is_linked_to(sites: dict[str, Material]) -> None:
    read = page_of(sites["embedded"], EMBEDDED)
    assert {"#deviation-D1", "#deviation-D2"} <= set(read.links)
    assert "deviation-D1" in read.ids


def test_the_place_of_a_token_that_is_not_here_is_said_once(sites, case: Case) -> None:
    text = page_of(sites["published"], PUBLISHED).text
    told = text.partition("Authorities")[2].partition("Verified step by step")[0]
    assert told.count(case.registration.record.authorities[0].token_place) == 1


def test_a_step_made_for_each_token_is_numbered_within_itself(sites: dict[str, Material]) -> None:
    steps = {step["step"]: step["name"] for step in registration.steps_of(sites["alone"].verifications[0])}
    assert (steps["4.1"], steps["4.2"]) == ("token of Demonstration A", "token of Demonstration B")
    assert steps["5"] == "independent authorities"


def test_the_page_of_a_registration_does_not_depend_on_when_it_is_built(home: Home, sites) -> None:
    assert pages_of(verified(home, 15), registration) == pages_of(sites["alone"], registration)


def test_a_part_of_a_name_is_not_the_name_of_a_run(case: Case) -> None:
    text = "xt1-c2-paired-s1 and t1-c2-paired-s10, t1-c2-paired-s2."
    one = replace(case.registration.deviations[0], text=text)
    told = touching_runs(replace(case.registration, deviations=(one,)), case)
    assert [runs for _, runs in told] == [("t1-c2-paired-s2",)]


@pytest.mark.parametrize("name", ["index.html", PUBLISHED, "published/index.html", "published/H3.html"])
def test_hostile_text_in_a_registration_is_shown_as_text(case: Case, name: str) -> None:
    own = case.registration
    amendment = replace(own.amendments[0], title=HOSTILE, reason=HOSTILE, seen=HOSTILE, changes=(HOSTILE,))
    forged = replace(
        own,
        amendments=(amendment,),
        deviations=tuple(replace(d, title=HOSTILE, text=HOSTILE * 500) for d in own.deviations),
        rules=own.rules.replace('title = "Recovery"', f'title = """{HOSTILE}"""'),
        protocol=HOSTILE,
        title=HOSTILE,
    )
    page = page_of(Material((open_case(case.study, forged),)), name)  # without an inline script, or a style
    assert "img" not in page.tags
    assert "<script>alert(1)</script>" in page.text


@pytest.mark.parametrize("room", [front_page, study, rule, probe, luck, registration])
def test_every_page_with_verdicts_says_what_they_stand_on(case, room, monkeypatch) -> None:
    monkeypatch.setattr(rule, "rule_charts", lambda *_: ())
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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[here](javascript:alert(1))", "[here](javascript:alert(1))"),
        ("[here](data:text/html,x)", "[here](data:text/html,x)"),
        ("<https://example.org/>", "https://example.org/ (https://example.org/)"),
        ("See [the *paper*](https://a.b/?a=1&b=2).", "See the <em>paper</em> (https://a.b/?a=1&amp;b=2)."),
        ("<b onclick=y>z</b>", "&lt;b onclick=y&gt;z&lt;/b&gt;"),
        ("![p](https://example.org/x.png)", "!p (https://example.org/x.png)"),
    ],
)
def test_a_protocol_leads_nowhere_and_holds_no_markup(text: str, shown: str) -> None:
    assert markdown(text) == f"<p>{shown}</p>\n"


def test_headings_of_a_protocol_stand_below_those_of_the_page_and_backticks_are_code() -> None:
    assert markdown("# One\n\n##### Five") == "<h3>One</h3>\n<h6>Five</h6>\n"
    assert ticked("a `b<` <i>") == "a <code>b&lt;</code> &lt;i&gt;"


def test_every_rule_of_a_published_study_is_on_its_page(case: Case) -> None:
    text = page_of(Material((case,)), "published/index.html").text
    assert all(decision.title in text for decision in case.decide_all())
