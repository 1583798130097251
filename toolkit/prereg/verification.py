"""`toolkit verify-prereg`: what can be said of a registration, step by step."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.errors import VerificationError
from toolkit.files import read_bytes
from toolkit.prereg.registration import Registration, load_registration

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from toolkit.prereg.chronology import Chronology

PROMISE = (
    "A verified registration proves that these exact bytes existed no later than the stated time. "
    "It does not prove who wrote them, that no other plan exists, or that no data had been seen."
)


@dataclass(frozen=True)
class Check:
    """One step: its outcome is `passed`, `failed`, `missing` or `not_checked`."""

    step: int
    name: str
    outcome: str
    detail: str


@dataclass(frozen=True)
class Verification:
    """What the steps say together.

    Args:
        registration: name.
        verdict: `verified`, `not_verified` or `incomplete`.
        standing: `public` or `demonstration`.
        document_sha256: hash of the timestamped document, as recorded.
        checks: the steps, in order.
        chronology: freeze against runs, one a study; empty where no study was given.
    """

    registration: str
    verdict: str
    standing: str
    document_sha256: str
    authorities: tuple[tuple[str, str], ...]
    checks: tuple[Check, ...]
    chronology: tuple[Chronology, ...]


def open_checked(folder: Path) -> tuple[Registration | None, Check]:
    """Step 1: every file of the registration is the one whose hash was recorded.

    Returns:
        The registration, or None where the step failed, and the step.
    """
    try:
        registration = load_registration(folder)
    except VerificationError as error:
        return None, Check(1, "recorded files", "failed", str(error))
    return registration, Check(
        1, "recorded files", "passed", f"all files match their recorded SHA-256; digest {registration.sha256}"
    )


def verify_registration(folder: Path, chronologies: Sequence[Chronology] = ()) -> Verification:
    """Examine a registration.

    1. Every file is the one whose hash was recorded.
    2. The timestamped document lies in its place and has the recorded hash.
    3. The authorities' tokens lie in their places. This version does not verify their content.
    4. The freeze precedes every deciding run that the frozen document does not name as an exception.
    5. No amendment is dated after the day of the first run: one that is could have been made to fit it.

    Returns:
        The verification; the verdict is `incomplete` as long as tokens are missing or unverified.

    Raises:
        IncompleteError: a file of the registration is missing or cannot be read.
        DamagedError: a file of the registration is malformed.
    """
    registration, first = open_checked(folder)  # 1
    if registration is None:
        return Verification(folder.name, "not_verified", "unknown", "", (), (first,), ())
    record = registration.record
    checks = [first, _document(registration), _tokens(registration)]  # 2, 3
    checks += [_order(chronology) for chronology in chronologies]  # 4
    checks += [_amendments(registration, chronology) for chronology in chronologies]  # 5
    outcomes = {check.outcome for check in checks}
    verdict = (
        "not_verified" if "failed" in outcomes else "incomplete" if outcomes != {"passed"} else "verified"
    )
    return Verification(
        registration.name,
        verdict,
        record.standing,
        record.document_sha256,
        tuple((a.name, a.recorded_time.strftime("%Y-%m-%dT%H:%M:%SZ")) for a in record.authorities),
        tuple(checks),
        tuple(chronologies),
    )


def _document(registration: Registration) -> Check:
    record = registration.record
    place = registration.folder / record.document_place
    if not place.is_file():
        told = f"prereg/{registration.name}/{record.document_place}"
        detail = f"{record.document}, is not here; get it from {record.source} and put it at {told}"
        return Check(2, "timestamped document", "missing", detail)
    found = hashlib.sha256(read_bytes(place)).hexdigest()
    if found != record.document_sha256:
        return Check(
            2, "timestamped document", "failed", f"expected SHA-256 {record.document_sha256}, found {found}"
        )
    return Check(2, "timestamped document", "passed", f"SHA-256 {found}")


def _tokens(registration: Registration) -> Check:
    record = registration.record
    absent = [a for a in record.authorities if not (registration.folder / a.token_place).is_file()]
    if absent:
        names = ", ".join(f"{a.name} ({a.token_place})" for a in absent)
        return Check(
            3, "authorities' tokens", "missing", f"not part of this project: {names}; source {record.source}"
        )
    return Check(
        3, "authorities' tokens", "not_checked", "present; this version does not verify token content"
    )


def _amendments(registration: Registration, chronology: Chronology) -> Check:
    listed = "; ".join(f"{a.id} of {a.dated} ({a.seen})" for a in registration.amendments) or "none"
    if chronology.late_amendments:
        late = ", ".join(chronology.late_amendments)
        return Check(
            5, "amendments before runs", "failed", f"{late} dated after the first run; all: {listed}"
        )
    return Check(5, "amendments before runs", "passed", listed)


def _order(chronology: Chronology) -> Check:
    facts = (
        f"study {chronology.study}: {len(chronology.runs_after)} deciding runs launched after "
        f"{chronology.frozen_by:%Y-%m-%dT%H:%M:%SZ} (recorded time); "
        f"disclosed exceptions: {', '.join(chronology.disclosed_exceptions) or 'none'}"
    )
    if chronology.undisclosed:
        return Check(
            4, "freeze before runs", "failed", f"{facts}; undisclosed: {', '.join(chronology.undisclosed)}"
        )
    if chronology.verdict == "incomplete":
        absent = ", ".join(chronology.unknown) or "no deciding run at all"
        return Check(4, "freeze before runs", "missing", f"{facts}; no launch time: {absent}")
    return Check(4, "freeze before runs", "passed", facts)
