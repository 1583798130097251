"""The page of a registration: its chronology and steps as they are, its texts as text."""

from datetime import UTC, datetime

import pytest

from tests.unit.site.reading import Read, pages_of
from toolkit import api
from toolkit.decisions.case import Case
from toolkit.places import Home
from toolkit.prereg.record import known_authorities
from toolkit.prereg.registration import Registration, load_registration
from toolkit.prereg.verification import Reader, Verification, verify_registration
from toolkit.site.environment import markdown, ticked
from toolkit.site.material import Material
from toolkit.site.pages import registration as maker
from toolkit.site.pages.registration import touching_runs
from toolkit.structs import replace

NAME = "registrations/embedded.html"
HOSTILE = '<script>alert("x")</script><img src=x onerror=y> `a <b>`'


def verified(home: Home, at: datetime) -> Verification:
    reader = Reader(known_authorities(), at)
    return verify_registration(home.registration_folder("embedded"), reader)


@pytest.fixture(scope="module")
def frozen(home: Home) -> Registration:
    return load_registration(home.registration_folder("embedded"))


@pytest.fixture(scope="module")
def verification(home: Home) -> Verification:
    return verified(home, datetime(2026, 12, 1, tzinfo=UTC))


def page(registration: Registration, *verifications: Verification) -> str:
    material = Material((), (), verifications, registrations=(registration,))
    return pages_of(material, maker)[f"registrations/{registration.name}.html"]


def test_a_step_made_for_each_token_is_numbered_within_itself(verification: Verification) -> None:
    steps = [(step["step"], step["name"]) for step in maker.steps_of(verification)]
    assert ("4.1", "token of Demonstration A") in steps
    assert ("4.2", "token of Demonstration B") in steps
    assert ("5", "independent authorities") in steps


def test_a_demonstration_is_called_one(frozen: Registration, verification: Verification) -> None:
    text = Read(page(frozen, verification)).text
    assert "proves nothing to others" in text
    assert "cannot convince anybody of a time" in text


def test_the_page_does_not_depend_on_when_it_is_built(home, frozen, verification) -> None:
    later = verified(home, datetime(2027, 3, 1, tzinfo=UTC))
    assert page(frozen, later) == page(frozen, verification)


def test_hostile_text_of_amendments_and_deviations_is_text(frozen, verification) -> None:
    amendment = replace(frozen.amendments[0], title=HOSTILE, reason=HOSTILE, seen=HOSTILE, changes=(HOSTILE,))
    deviation = replace(frozen.deviations[0], title=HOSTILE, text=HOSTILE * 500)
    forged = replace(
        frozen, amendments=(amendment,), deviations=(deviation,), protocol=HOSTILE, title=HOSTILE
    )
    read = Read(page(forged, verification))
    assert "img" not in read.tags
    assert '<script>alert("x")</script>' in read.text


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


def test_a_published_chronology_names_runs_tokens_and_recorded_events(case: Case) -> None:
    text = Read(pages_of(Material((case,)), maker)["registrations/paired-rollouts.html"]).text
    assert "14 deciding runs of published, first launch to last" in text
    assert "2026-09-08 17:03:25 UTC launch first post-freeze training launch: t1-c2-independent-s0" in text
    assert "no verified token shows it" in text


def test_a_chronology_points_to_later_entries_that_name_its_runs(home: Home, embedded: Case) -> None:
    """D1 of the embedded study: two deciding runs were first launched within the tokens' accuracy."""
    [judged] = [v for v in api.verify_frozen(home, (embedded.study,)) if v.registration == "embedded"]
    text = pages_of(Material((embedded,), (), (judged,)), maker)[NAME]
    read = Read(text)
    assert (
        "names no exception. D1, recorded later, speaks of deciding runs c2-paired-s0, c2-paired-s1"
        in read.text
    )
    assert "Other entries: D2." in read.text
    assert {"#deviation-D1", "#deviation-D2"} <= set(read.links)
    assert "deviation-D1" in read.ids
    assert "(see deviation D1)" in text
    assert "No exception was disclosed" not in read.text


def test_a_part_of_a_name_is_not_the_name_of_a_run(case: Case) -> None:
    one = replace(
        case.registration.deviations[0], text="xt1-c2-paired-s1 and t1-c2-paired-s10, t1-c2-paired-s2."
    )
    told = touching_runs(replace(case.registration, deviations=(one,)), case)
    assert [runs for _, runs in told] == [("t1-c2-paired-s2",)]


def test_the_place_of_a_token_that_is_not_here_is_said_once(case: Case, home: Home) -> None:
    [judged] = [v for v in api.verify_frozen(home, (case.study,)) if v.registration == "paired-rollouts"]
    text = Read(pages_of(Material((case,), (), (judged,)), maker)["registrations/paired-rollouts.html"]).text
    place = case.registration.record.authorities[0].token_place
    told = text.partition("Authorities")[2].partition("Verified step by step")[0]
    assert told.count(place) == 1
