"""What can be said of a registration, and of its order in time."""

import hashlib
import re
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.conftest import CHECKOUT
from tests.restated_document import fit_restatement, made_document
from tests.unit.prereg.drafts import problems, told
from toolkit.errors import VerificationError
from toolkit.prereg.authority import make_request
from toolkit.prereg.demonstration import DemonstrationAuthority
from toolkit.prereg.evidence import write_certificates
from toolkit.prereg.record import known_authorities, known_restatements, write_trust
from toolkit.prereg.registration import load_registration
from toolkit.prereg.verification import (
    Check,
    Chronology,
    Freeze,
    Reader,
    Standing,
    StudyRuns,
    Verification,
    chronology,
    require,
    seconds_to_settle,
    standing_of,
    verify_registration,
)

ROLES = ("pilot", "primary", "reference")
NOW = datetime(2026, 11, 20, tzinfo=UTC)
FREEZE = Freeze(datetime(2026, 9, 8, 12, 34, 40, tzinfo=UTC), has_tokens=False)


PAIRED = CHECKOUT / "prereg" / "paired-rollouts"


def run(seconds: int | None, name: str = "any", role: str = "primary") -> dict[str, Any]:
    """Return the row of a run launched so long after the freeze; None for one that does not say when."""
    launched = None if seconds is None else FREEZE.by + timedelta(seconds=seconds)
    return {"run_id": name, "role": role, "launched_at": launched}


def order_of(*runs: dict[str, Any]) -> Chronology:
    return chronology(load_registration(PAIRED), StudyRuns("s", runs, ROLES), FREEZE, NOW)


def verified(folder, *studies: StudyRuns) -> Verification:
    reader = Reader(known_authorities(), NOW, restatements=known_restatements())
    return verify_registration(folder, reader, lambda _: studies)


def outcomes(result: Verification) -> list[tuple[int, str]]:
    return [(check.step, check.outcome) for check in result.checks]


def test_thirteen_runs_follow_the_freeze_and_the_pilot_is_disclosed(published) -> None:
    result = verified(PAIRED, StudyRuns("published", published.rows("runs"), ROLES))
    (order,) = result.chronology
    assert (order.verdict, len(order.runs_after)) == ("runs_after_freeze", 13)
    assert order.disclosed_exceptions == ("gate1-c2-paired-s0",)
    assert dict(outcomes(result))[7] == "passed"
    for words in (
        "13 deciding runs",
        "by the author's record, no token shows it",
        "disclosed exceptions: gate1-c2-paired-s0",
    ):
        assert words in told(result, 7)


PILOT = run(-1, "gate1-c2-paired-s0")


@pytest.mark.parametrize(
    ("runs", "verdict"),
    [
        ([run(1)], "runs_after_freeze"),
        ([run(0)], "run_before_freeze"),
        ([run(-1)], "run_before_freeze"),
        ([PILOT], "run_before_freeze"),
        ([PILOT, run(1)], "runs_after_freeze"),
        ([run(None)], "incomplete"),
        ([run(10**8)], "incomplete"),
        ([run(1), run(None, role="replication")], "runs_after_freeze"),
    ],
)
def test_a_run_before_the_freeze_needs_to_be_disclosed(runs, verdict) -> None:
    order = order_of(*runs)
    assert (order.verdict, bool(order.disclosed_exceptions)) == (verdict, PILOT in runs)


@pytest.mark.parametrize(
    ("seconds", "outcome", "verdict"),
    [
        (0, "failed", "not_verified"),
        (60, "failed", "not_verified"),
        (61, "passed", "incomplete"),
        (None, "missing", "incomplete"),
    ],
)
def test_where_no_accuracy_is_stated_a_minute_is_granted(seconds, outcome, verdict) -> None:
    result = verified(PAIRED, StudyRuns("s", [run(seconds, "whichever")], ROLES))
    assert (dict(outcomes(result))[7], result.verdict) == (outcome, verdict)
    assert seconds == 61 or "whichever" in told(result, 7)


def test_without_document_and_tokens_the_verdict_is_incomplete() -> None:
    result = verified(PAIRED)
    assert result.verdict == "incomplete"
    passed, missing, unproven = "passed", "missing", "unproven"
    expected = [passed, missing, unproven, missing, missing, missing, missing, unproven, unproven]
    assert outcomes(result) == list(zip((1, 2, 3, 4, 4, 5, 6, 7, 8), expected, strict=True))
    assert "Get it from" in result.checks[1].detail
    assert "evidence/freetsa.tsr" in result.checks[3].detail
    assert result.promise == "Nothing is proven yet: something is missing."


FIRST_STEP = {
    "a changed file": (
        lambda f: (f / "rules.toml").write_text((f / "rules.toml").read_text().replace("0.03", "0.02")),
        ("not_verified", "failed", "was changed after its hash was recorded"),
    ),
    "a missing file": (
        lambda f: (f / "protocol.md").unlink(),
        ("incomplete", "missing", "protocol.md cannot be read"),
    ),
    "a draft": (
        lambda f: [(f / name).unlink() for name in ("FROZEN.sha256", "LATER.chain")],
        ("incomplete", "missing", "toolkit freeze paired-rollouts"),
    ),
}


@pytest.mark.parametrize("change", FIRST_STEP)
def test_files_that_are_not_as_recorded_end_it_at_the_first_step(restated, change) -> None:
    damage, (verdict, outcome, words) = FIRST_STEP[change]
    damage(restated)
    result = verified(restated)
    assert (result.verdict, outcomes(result)) == (verdict, [(1, outcome)])
    assert words in result.checks[0].detail


@pytest.fixture
def evidence(restated):
    """The shipped registration as if two authorities that a reader knows had timestamped its document."""
    authorities = [DemonstrationAuthority(name) for name in ("FreeTSA", "DigiCert")]
    document = made_document()
    record = (restated / "record.toml").read_text()
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    (restated / "record.toml").write_text(re.sub(r"2026-09-08T12:34:\d\dZ", now, record))
    (restated / "trust.toml").write_text(write_trust([a.trusted for a in authorities], "For a test."))
    fit_restatement(restated, document)
    (restated / "evidence").mkdir()
    (restated / "evidence" / "document").write_bytes(document)
    for authority in authorities:
        path = restated / "evidence" / authority.trusted.slug
        request = make_request(hashlib.sha256(document).digest())
        path.with_suffix(".tsq").write_bytes(request)
        path.with_suffix(".tsr").write_bytes(authority.answer(request))
        path.with_suffix(".pem").write_bytes(write_certificates([authority.root]))
    known = tuple(authority.trusted for authority in authorities)
    accepted = frozenset([load_registration(restated).entries[-1].link])
    return restated, Reader(known, datetime.now(UTC) + timedelta(seconds=1), restatements=accepted)


def test_with_its_evidence_in_place_the_document_is_verified(evidence) -> None:
    folder, reader = evidence
    result = verify_registration(folder, reader)
    assert result.verdict == "verified"
    assert {step for step, outcome in outcomes(result) if outcome == "passed"} == {1, 2, 4, 5, 6}
    assert {step for step, outcome in outcomes(result) if outcome == "unproven"} == {3, 7, 8}
    assert "Nor that the rules here, which restate those bytes, say the same" in result.promise
    alone = verify_registration(folder, Reader(reader.known, reader.at))
    assert f"--restatement {load_registration(folder).entries[-1].link}" in told(alone, 3)


def test_the_shipped_restatement_is_the_one_that_is_stood_for() -> None:
    assert load_registration(PAIRED).entries[-1].link in known_restatements()


def _with(name: str, content: bytes):
    def change(folder, _) -> None:
        (folder / "evidence" / name).write_bytes(content)

    return change


OTHER = DemonstrationAuthority("FreeTSA").answer(make_request(hashlib.sha256(b"another").digest()))


def _without(name: str):
    return lambda folder, _: (folder / "evidence" / name).unlink()


LACKING = {
    # Two old tokens over any document at all would make rules of today look registered.
    "nobody stands for the restatement": (
        lambda _, reader: Reader(reader.known, reader.at),
        ("incomplete", [(3, "missing")], "--restatement "),
    ),
    "another document": (
        _with("document", b"another"),
        ("not_verified", [(2, "failed"), *[(4, "failed")] * 2, (5, "missing"), (6, "missing")], "expected"),
    ),
    "what is no token": (
        _with("freetsa.tsr", b"no token"),
        ("not_verified", [(4, "failed"), (5, "missing"), (6, "missing")], "check 1, form"),
    ),
    # The tokens are judged by the recorded hash.
    "the document is missing": (_without("document"), ("incomplete", [(2, "missing")], "Get it from")),
    "a token of another document": (
        _with("freetsa.tsr", OTHER),
        ("not_verified", [(4, "failed"), (5, "missing"), (6, "missing")], "check 5, imprint: token is for"),
    ),
    "a root is missing": (
        _without("freetsa.pem"),
        ("incomplete", [(4, "missing"), (5, "missing"), (6, "missing")], "put the one with SHA-256"),
    ),
}


@pytest.mark.parametrize("lack", LACKING)
def test_what_evidence_lacks_shows_at_its_step(evidence, lack) -> None:
    folder, reader = evidence
    change, (verdict, wrong, words) = LACKING[lack]
    result = verify_registration(folder, change(folder, reader) or reader)
    assert (result.verdict, problems(result), result.existed_by) == (verdict, wrong, None)
    assert words in told(result, wrong[0][0])


@pytest.mark.parametrize(("age", "left"), [(0.5, 9.5), (9, 1.0), (10, 0.0), (3600, 0.0), (-60, 0.0)])
def test_a_launch_waits_until_the_freeze_is_over_by_every_clock(age, left) -> None:
    registration = load_registration(CHECKOUT / "prereg" / "embedded")
    last = max(authority.recorded_time for authority in registration.record.authorities)
    assert seconds_to_settle(registration, last + timedelta(seconds=age)) == left


TOKEN = Check(4, "token of A", "missing", "the token is not here: evidence/a.tsr")
TOO_FEW = Check(5, "independent authorities", "missing", "1 verified tokens; all are needed, and at least 2")
PAPER = Check(2, "timestamped document", "missing", "not here: the document.\nGet it from there.")
LATE = Check(9, "amendments before runs", "failed", "A1 made after the first run")
UNPROVEN = Check(8, "amendments and deviations", "unproven", "by the days that they name")

CASES: dict[str, tuple[str, tuple[Check, ...], Standing]] = {
    "what passed is what its record says": ("public", (), Standing("public")),
    "what nobody contradicts does not lessen it": ("public", (UNPROVEN,), Standing("public")),
    "a demonstration is one": ("demonstration", (), Standing("demonstration")),
    "what is missing is told in a line each": (
        "demonstration",
        (PAPER, TOKEN),
        Standing("incomplete", (), ("not here: the document", "the token is not here: evidence/a.tsr")),
    ),
    "what follows from a token that is missing is not told": (
        "public",
        (TOKEN, TOO_FEW),
        Standing("incomplete", (), ("the token is not here: evidence/a.tsr",)),
    ),
    "a single token is": ("public", (TOO_FEW,), Standing("incomplete", (), (TOO_FEW.detail,))),
    "a failed step outweighs, and is named once": (
        "public",
        (PAPER, LATE, LATE),
        Standing("failed", ("amendments before runs",), ("not here: the document",)),
    ),
    "files that do not hold": (
        "unknown",
        (Check(1, "recorded files", "failed", "changed"),),
        Standing("failed", ("recorded files",)),
    ),
}


@pytest.mark.parametrize("claim", CASES)
def test_a_standing_is_the_least_that_the_steps_leave(claim: str) -> None:
    recorded, checks, expected = CASES[claim]
    passed = Check(7, "freeze before runs", "passed", "")
    assert standing_of(Verification("r", "any", recorded, checks=(passed, *checks))) == expected


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("public", ()),
        ("demonstration", ("public",)),
        ("incomplete", ("public", "demonstration")),
        ("failed", ("public", "demonstration", None)),
    ],
)
def test_less_than_what_is_required_is_refused(name: str, refused: tuple[str | None, ...]) -> None:
    standings = {"good": Standing("public"), "r": Standing(name, ("a step",), ("a token",))}
    for least in ("public", "demonstration", None):
        told = (
            pytest.raises(VerificationError, match="registration r ") if least in refused else nullcontext()
        )
        with told:
            require(standings, least)
