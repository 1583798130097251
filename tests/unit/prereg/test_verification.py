"""What can be said of a registration, and of its order in time."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from toolkit.prereg.chronology import chronology
from toolkit.prereg.registration import Registration, load_registration
from toolkit.prereg.verification import verify_registration

if TYPE_CHECKING:
    from toolkit.places import Home
    from toolkit.registers.study import Study

ROLES = ("pilot", "primary", "reference")


@pytest.fixture
def registration(home: Home) -> Registration:
    return load_registration(home.registration_folder("paired-rollouts"))


def test_thirteen_runs_follow_the_freeze_and_the_pilot_is_disclosed(
    registration: Registration, published: Study
) -> None:
    order = chronology(registration, "published", published.rows("runs"), ROLES)
    assert order.verdict == "runs_after_freeze"
    assert len(order.runs_after) == 13
    assert order.disclosed_exceptions == ("gate1-c2-paired-s0",)


@pytest.mark.parametrize(
    ("minutes", "run_id", "verdict"),
    [
        (1, "any", "runs_after_freeze"),
        (0, "any", "run_before_freeze"),
        (-1, "any", "run_before_freeze"),
        (-1, "gate1-c2-paired-s0", "runs_after_freeze"),
        (None, "any", "incomplete"),
    ],
)
def test_a_run_before_the_freeze_needs_to_be_disclosed(
    registration: Registration, minutes: int | None, run_id: str, verdict: str
) -> None:
    last = max(authority.recorded_time for authority in registration.record.authorities)
    launched: Any = None if minutes is None else last + timedelta(minutes=minutes)
    run = {"run_id": run_id, "role": "primary", "launched_at": launched}
    assert chronology(registration, "s", [run], ROLES).verdict == verdict


def test_a_replication_is_not_part_of_the_order(registration: Registration) -> None:
    run = {"run_id": "late", "role": "replication", "launched_at": None}
    order = chronology(registration, "s", [run], ROLES)
    assert (order.verdict, order.unknown) == ("incomplete", ())


def test_the_order_is_told_with_its_exceptions(
    registration: Registration, published: Study, home: Home
) -> None:
    order = chronology(registration, "published", published.rows("runs"), ROLES)
    check = verify_registration(home.registration_folder("paired-rollouts"), [order]).checks[3]
    assert (check.step, check.outcome) == (4, "passed")
    assert "13 deciding runs" in check.detail
    assert "disclosed exceptions: gate1-c2-paired-s0" in check.detail


@pytest.mark.parametrize(
    ("minutes", "outcome", "verdict"), [(-1, "failed", "not_verified"), (None, "missing", "incomplete")]
)
def test_an_undisclosed_run_fails_the_registration(
    registration: Registration, home: Home, minutes: int | None, outcome: str, verdict: str
) -> None:
    last = max(authority.recorded_time for authority in registration.record.authorities)
    launched = None if minutes is None else last + timedelta(minutes=minutes)
    order = chronology(
        registration, "s", [{"run_id": "any", "role": "primary", "launched_at": launched}], ROLES
    )
    result = verify_registration(home.registration_folder("paired-rollouts"), [order])
    assert (result.checks[3].outcome, result.verdict) == (outcome, verdict)
    assert "any" in result.checks[3].detail


def test_without_document_and_tokens_the_verdict_is_incomplete(home: Home) -> None:
    result = verify_registration(home.registration_folder("paired-rollouts"))
    assert result.verdict == "incomplete"
    assert [(c.step, c.outcome) for c in result.checks] == [(1, "passed"), (2, "missing"), (3, "missing")]
    assert "get it from" in result.checks[1].detail


def test_a_changed_file_fails_the_first_step(copy: Home) -> None:
    path = copy.registrations / "paired-rollouts" / "rules.toml"
    path.write_text(path.read_text().replace("0.03", "0.02"))
    result = verify_registration(path.parent)
    assert result.verdict == "not_verified"
    assert [(c.step, c.outcome) for c in result.checks] == [(1, "failed")]


def test_another_document_fails_the_second_step(copy: Home) -> None:
    place = copy.registrations / "paired-rollouts" / "evidence" / "document"
    place.parent.mkdir()
    place.write_bytes(b"another document")
    result = verify_registration(place.parents[1])
    assert result.verdict == "not_verified"
    assert hashlib.sha256(b"another document").hexdigest() in result.checks[1].detail


def test_tokens_in_place_are_not_called_verified(copy: Home) -> None:
    """This version does not verify tokens, so their presence alone must never be enough."""
    folder = copy.registrations / "paired-rollouts"
    (folder / "evidence").mkdir()
    for name in ("freetsa.tsr", "digicert.tsr"):
        (folder / "evidence" / name).write_bytes(b"not a token")
    result = verify_registration(folder)
    assert result.checks[2].outcome == "not_checked"
    assert result.verdict == "incomplete"
