"""What can be said of a registration, and of its order in time."""

import hashlib
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.registrations import rehash
from tests.unit.prereg.drafts import told
from toolkit.prereg.authority import make_request
from toolkit.prereg.checks import Reader
from toolkit.prereg.chronology import Chronology, Freeze, StudyRuns, chronology, seconds_to_settle
from toolkit.prereg.demonstration import DemonstrationAuthority
from toolkit.prereg.pem import write_certificates
from toolkit.prereg.registration import Registration, load_registration
from toolkit.prereg.trust import known_authorities, known_restatements, write_trust
from toolkit.prereg.verification import Verification, verify_registration

ROLES = ("pilot", "primary", "reference")
NOW = datetime(2026, 11, 20, tzinfo=UTC)
FREEZE = Freeze(datetime(2026, 9, 8, 12, 34, 40, tzinfo=UTC), is_proven=False)


@pytest.fixture
def registration(home) -> Registration:
    return load_registration(home.registration_folder("paired-rollouts"))


def order_of(registration: Registration, *runs: dict[str, Any]) -> Chronology:
    return chronology(registration, StudyRuns("s", runs, ROLES), FREEZE, NOW)


def verified(folder, *studies: StudyRuns) -> Verification:
    reader = Reader(known_authorities(), NOW, restatements=known_restatements())
    return verify_registration(folder, reader, lambda _: studies)


def outcomes(result: Verification) -> list[tuple[int, str]]:
    return [(check.step, check.outcome) for check in result.checks]


def test_thirteen_runs_follow_the_freeze_and_the_pilot_is_disclosed(registration, published) -> None:
    order = order_of(registration, *published.rows("runs"))
    assert order.verdict == "runs_after_freeze"
    assert len(order.runs_after) == 13
    assert order.disclosed_exceptions == ("gate1-c2-paired-s0",)


@pytest.mark.parametrize(
    ("seconds", "run_id", "verdict"),
    [
        (1, "any", "runs_after_freeze"),
        (0, "any", "run_before_freeze"),
        (-1, "any", "run_before_freeze"),
        (-1, "gate1-c2-paired-s0", "run_before_freeze"),
        (None, "any", "incomplete"),
        (10**8, "any", "incomplete"),
    ],
)
def test_a_run_before_the_freeze_needs_to_be_disclosed(registration, seconds, run_id, verdict) -> None:
    launched: Any = None if seconds is None else FREEZE.by + timedelta(seconds=seconds)
    run = {"run_id": run_id, "role": "primary", "launched_at": launched}
    assert order_of(registration, run).verdict == verdict


def test_a_disclosed_run_may_come_before_others_that_come_after(registration) -> None:
    early, late = (
        {"run_id": name, "role": "primary", "launched_at": FREEZE.by + timedelta(seconds=seconds)}
        for name, seconds in (("gate1-c2-paired-s0", -1), ("any", 1))
    )
    order = order_of(registration, early, late)
    assert (order.verdict, order.disclosed_exceptions) == ("runs_after_freeze", ("gate1-c2-paired-s0",))


def test_a_replication_is_not_part_of_the_order(registration) -> None:
    order = order_of(registration, {"run_id": "late", "role": "replication", "launched_at": None})
    assert (order.verdict, order.unknown) == ("incomplete", ())


def test_the_order_is_told_with_its_exceptions(published, home) -> None:
    study = StudyRuns("published", published.rows("runs"), ROLES)
    result = verified(home.registration_folder("paired-rollouts"), study)
    assert dict(outcomes(result))[7] == "passed"
    for words in ("13 deciding runs", "recorded, not proven", "disclosed exceptions: gate1-c2-paired-s0"):
        assert words in told(result, 7)


@pytest.mark.parametrize(
    ("seconds", "outcome", "verdict"),
    [(0, "failed", "not_verified"), (60, "failed", "not_verified"), (61, "passed", "incomplete")],
)
def test_where_no_accuracy_is_stated_a_minute_is_granted(home, seconds, outcome, verdict) -> None:
    run = {"run_id": "any", "role": "primary", "launched_at": FREEZE.by + timedelta(seconds=seconds)}
    result = verified(home.registration_folder("paired-rollouts"), StudyRuns("s", [run], ROLES))
    assert (dict(outcomes(result))[7], result.verdict) == (outcome, verdict)
    assert seconds == 61 or "any" in told(result, 7)


def test_without_document_and_tokens_the_verdict_is_incomplete(home) -> None:
    result = verified(home.registration_folder("paired-rollouts"))
    assert result.verdict == "incomplete"
    passed, missing, unproven = "passed", "missing", "unproven"
    expected = [passed, missing, unproven, missing, missing, missing, missing, unproven, unproven]
    assert outcomes(result) == list(zip((1, 2, 3, 4, 4, 5, 6, 7, 8), expected, strict=True))
    assert "Get it from" in result.checks[1].detail
    assert "evidence/freetsa.tsr" in result.checks[3].detail
    assert result.promise == "Nothing is proven yet: something is missing."


def test_a_changed_file_fails_the_first_step(restated) -> None:
    path = restated / "rules.toml"
    path.write_text(path.read_text().replace("0.03", "0.02"))
    result = verified(path.parent)
    assert result.verdict == "not_verified"
    assert outcomes(result) == [(1, "failed")]


def test_a_draft_is_incomplete_and_says_how_it_is_frozen(restated) -> None:
    for name in ("FROZEN.sha256", "LATER.chain"):
        (restated / name).unlink()
    result = verified(restated)
    assert (result.verdict, outcomes(result)) == ("incomplete", [(1, "missing")])
    assert "toolkit freeze paired-rollouts" in result.checks[0].detail


def test_another_document_fails_the_second_step(restated) -> None:
    place = restated / "evidence" / "document"
    place.parent.mkdir()
    place.write_bytes(b"another document")
    result = verified(place.parents[1])
    assert result.verdict == "not_verified"
    assert hashlib.sha256(b"another document").hexdigest() in result.checks[1].detail


def test_what_is_no_token_fails(restated) -> None:
    (restated / "evidence").mkdir()
    for name in ("freetsa.tsr", "digicert.tsr"):
        (restated / "evidence" / name).write_bytes(b"not a token")
    result = verified(restated)
    tokens = [(check.outcome, check.detail) for check in result.checks if check.step == 4]
    # DigiCert's root is in this system's list; FreeTSA's would have come with its token.
    assert all(outcome in {"failed", "missing"} for outcome, _ in tokens)
    assert result.verdict != "verified"


@pytest.fixture
def evidence(restated):
    """The shipped registration as if two authorities that a reader knows had timestamped its document."""
    authorities = [DemonstrationAuthority(name) for name in ("FreeTSA", "DigiCert")]
    document = b"the authors' document"
    record = (restated / "record.toml").read_text()
    before = load_registration(restated).record.document_sha256
    record = record.replace(before, hashlib.sha256(document).hexdigest())
    (restated / "record.toml").write_text(
        re.sub(r"2026-09-08T12:34:\d\dZ", f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", record)
    )
    (restated / "trust.toml").write_text(write_trust([a.trusted for a in authorities], "For a test."))
    rehash(restated)
    (restated / "evidence").mkdir()
    (restated / "evidence" / "document").write_bytes(document)
    for authority in authorities:
        token = authority.answer(make_request(hashlib.sha256(document).digest()))
        (restated / "evidence" / f"{authority.trusted.slug}.tsr").write_bytes(token)
        (restated / "evidence" / f"{authority.trusted.slug}.pem").write_bytes(
            write_certificates([authority.root])
        )
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


def test_a_restatement_that_nobody_stands_for_is_incomplete(evidence) -> None:
    """Two old tokens over any document at all would make rules of today look registered."""
    folder, reader = evidence
    result = verify_registration(folder, Reader(reader.known, reader.at))
    assert (result.verdict, dict(outcomes(result))[3]) == ("incomplete", "missing")
    link = load_registration(folder).entries[-1].link
    assert f"--restatement {link}" in result.checks[2].detail


def test_the_shipped_restatement_is_the_one_that_is_stood_for(registration) -> None:
    assert registration.entries[-1].link in known_restatements()


def test_a_reader_who_knows_none_of_the_roots_is_not_convinced(evidence) -> None:
    folder, reader = evidence
    result = verify_registration(folder, Reader((), reader.at))
    assert (result.verdict, dict(outcomes(result))[5]) == ("not_verified", "failed")
    assert "--trust FILE" in told(result, 5)


def test_tokens_are_judged_by_the_recorded_hash_where_the_document_is_missing(evidence) -> None:
    folder, reader = evidence
    (folder / "evidence" / "document").unlink()
    result = verify_registration(folder, reader)
    assert result.verdict == "incomplete"
    assert outcomes(result)[1] == (2, "missing")
    assert [outcome for step, outcome in outcomes(result) if step == 4] == ["passed", "passed"]
    assert result.existed_by is None


def test_a_token_of_another_document_fails(evidence) -> None:
    folder, reader = evidence
    (folder / "evidence" / "freetsa.tsr").write_bytes(
        DemonstrationAuthority("FreeTSA").answer(make_request(hashlib.sha256(b"another").digest()))
    )
    result = verify_registration(folder, reader)
    assert result.verdict == "not_verified"
    assert "check 5, imprint: token is for another document" in result.checks[3].detail


def test_a_missing_root_is_named_with_where_it_is_to_be_had(evidence) -> None:
    folder, reader = evidence
    (folder / "evidence" / "freetsa.pem").unlink()
    result = verify_registration(folder, reader)
    assert result.verdict == "incomplete"
    assert "put the one with SHA-256" in result.checks[3].detail


def test_a_run_without_a_launch_time_is_named(home) -> None:
    run = {"run_id": "whichever", "role": "primary", "launched_at": None}
    result = verified(home.registration_folder("paired-rollouts"), StudyRuns("s", [run], ROLES))
    assert "no launch time, or one in the future: whichever" in told(result, 7)


def test_a_frozen_registration_that_lacks_a_file_is_incomplete(restated) -> None:
    (restated / "protocol.md").unlink()
    result = verified(restated)
    assert (result.verdict, result.checks[0].outcome) == ("incomplete", "missing")
    assert "protocol.md cannot be read" in result.checks[0].detail


@pytest.mark.parametrize(("age", "left"), [(0.5, 9.5), (9, 1.0), (10, 0.0), (3600, 0.0), (-60, 0.0)])
def test_a_launch_waits_until_the_freeze_is_over_by_every_clock(home, age, left) -> None:
    registration = load_registration(home.registration_folder("embedded"))
    last = max(authority.recorded_time for authority in registration.record.authorities)
    assert seconds_to_settle(registration, last + timedelta(seconds=age)) == left
