"""The steps of verifying a registration that look at several tokens together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from toolkit.prereg.chain import Entry
from toolkit.prereg.chronology import Freeze
from toolkit.prereg.evidence import Judged, Subject, judge, places, shared_keys
from toolkit.prereg.pending import promised
from toolkit.prereg.record import EVIDENCE, PUBLIC
from toolkit.prereg.registration import Registration
from toolkit.prereg.trust import Trusted, operator_of

if TYPE_CHECKING:
    from toolkit.documents.verification import CheckDocument, Outcome

TOKENS = 4
"""The step that looks at each token."""
ADDITIONS = 8
"""The step that looks at what was added later."""
FEWEST = 2
SPREAD = timedelta(hours=24)
TIME = "%Y-%m-%dT%H:%M:%SZ"


@dataclass(frozen=True)
class Check:
    """One step.

    Its outcome is `passed`, `failed`, `missing` (an input is), or `unproven`: what is said there is not
    contradicted, and nothing here proves it; the verdict does not cover it.
    """

    step: int
    name: str
    outcome: Outcome
    detail: str

    def as_dict(self) -> CheckDocument:
        """Return the step as it is printed with `--json`."""
        return {"step": self.step, "name": self.name, "outcome": self.outcome, "detail": self.detail}


@dataclass(frozen=True)
class Reader:
    """Who asks."""

    known: Sequence[Trusted]  # the authorities that the reader trusts
    at: datetime  # when it is judged, UTC
    with_openssl: bool = False  # whether OpenSSL is asked about each token, too
    # The restatements that the reader accepts, by the last link of their chain
    restatements: frozenset[str] = frozenset()


def independence(tokens: Sequence[Judged], trust: Sequence[Trusted]) -> Check:
    """Step 5: at least two verified tokens, of different operators who are trusted, with no key in common."""
    step = partial(Check, 5, "independent authorities")
    good = [judged for judged in tokens if judged.is_verified]
    if len(good) < len(tokens) or len(good) < FEWEST:
        return step("missing", f"{len(good)} verified tokens; all are needed, and at least {FEWEST}")
    operators = {j.authority.name: operator_of(j.verdict.root_sha256 or "", trust) for j in good}
    strangers = [authority for authority, operator in operators.items() if operator is None]
    counted = [judged for judged in good if judged.authority.name not in strangers]
    if strangers and len(counted) < FEWEST:
        detail = (
            f"nobody but the registration itself vouches for the root of {', '.join(strangers)}; if you "
            "trust it, name it in a trust file of your own: --trust FILE"
        )
        return step("failed", detail)
    misfit = [j.authority.name for j in counted if not _is_accepted(j, trust)]
    if misfit:
        return step("failed", f"{', '.join(misfit)}: stamped under a policy that is not accepted")
    shared = shared_keys(good)
    if len({operators[judged.authority.name] for judged in counted}) < FEWEST or shared:
        reason = f"{', '.join(shared)} share a key" if shared else "all come from one operator"
        return step("failed", reason)
    told = "; ".join(f"{a}: {o or 'nobody you know, not counted'}" for a, o in operators.items())
    return step("passed", told)


def _is_accepted(judged: Judged, trust: Sequence[Trusted]) -> bool:
    """Whether a token's policy is one that the reader accepts of its root's authority."""
    accepted = [authority.policies for authority in trust if judged.verdict.root_sha256 in authority.roots]
    return any(not policies or judged.verdict.policy in policies for policies in accepted)


def agreement(tokens: Sequence[Judged]) -> Check:
    """Step 6: the tokens' times lie within a day of each other."""
    step = partial(Check, 6, "times agree")
    times = sorted(j.verdict.gen_time for j in tokens if j.is_verified and j.verdict.gen_time is not None)
    if len(times) < FEWEST:
        return step("missing", "there are no two verified times to compare")
    apart = times[-1] - times[0]
    if apart > SPREAD:
        return step("failed", f"times disagree by {apart / timedelta(days=1):.1f} days")
    return step("passed", f"{apart.total_seconds():g} s apart")


_step = partial(Check, ADDITIONS, "amendments and deviations")


def additions(
    registration: Registration, freeze: Freeze, reader: Reader
) -> tuple[Check, dict[str, datetime]]:
    """Check the tokens of amendments and deviations; return the times of those that have them."""
    added = [entry for entry in registration.entries if entry.id]
    settled = _without_tokens(registration, added)
    if settled is not None:
        return settled, {}
    times: dict[str, datetime] = {}
    before = freeze.by if freeze.has_tokens else None
    for entry in added:
        check, time = _entry(registration, entry, reader)
        if check.outcome != "passed" or time is None:
            return check, times
        if before is not None and time < before - SPREAD:
            return _step("failed", f"{entry.id} is older than what stands before it"), times
        times[entry.id] = before = time
    day = timedelta(days=1)
    misdated = [a.id for a in registration.amendments if abs(a.dated - times[a.id].date()) > day]
    if misdated:
        return _step("failed", f"{', '.join(misdated)}: dated otherwise than the tokens say"), times
    return _step("passed", "; ".join(f"{i} by {t:{TIME}}" for i, t in times.items())), times


def _entry(registration: Registration, entry: Entry, reader: Reader) -> tuple[Check, datetime | None]:
    authorities = registration.trust_in(entry)
    subject = Subject(registration.folder, entry.text)
    tokens = [
        judge(subject, authority, *places(entry.id, authority), reader.at, with_openssl=reader.with_openssl)
        for authority in authorities
    ]
    for judged in tokens:
        if not judged.is_verified:
            outcome: Outcome = "missing" if judged.verdict.verdict == "incomplete" else "failed"
            return _step(outcome, f"{entry.id}, {judged.authority.name}: {judged.verdict.message}"), None
    trust = reader.known if registration.record.standing == PUBLIC else authorities
    for check in (independence(tokens, trust), agreement(tokens)):
        if check.outcome != "passed":
            return _step(check.outcome, f"{entry.id}: {check.detail}"), None
    return _step("passed", entry.id), max(judged.latest for judged in tokens)


def _without_tokens(registration: Registration, added: Sequence[Entry]) -> Check | None:
    """Return the outcome where no token has to be looked at: none was added, or something is amiss."""
    if registration.record.is_restated and added:
        told = ", ".join(entry.id for entry in added)
        detail = f"{told}: recorded here, in this order; no token says when, they rest on the days they name"
        return _step("unproven", detail)
    orphans = [] if registration.record.is_restated else _orphans(registration, added)
    names = ", ".join(orphans)
    if orphans and _is_being_added(registration, orphans):
        return _step("missing", f"an addition was cut short ({names}): run its command again")
    if orphans:
        return _step("failed", f"{names}: evidence of something that the chain does not have any more")
    return None if added else _step("passed", "none")


def _is_being_added(registration: Registration, orphans: Sequence[str]) -> bool:
    """Whether an addition that was cut short explains tokens that belong to nothing."""
    chain = registration.entries[-1].text if registration.entries else b""
    waiting = promised(registration.folder, registration.sha256, chain)
    ids = {name.rpartition("/")[2].removesuffix(".toml") for name in waiting}
    return {orphan.partition(".")[0] for orphan in orphans} <= ids


def _orphans(registration: Registration, added: Sequence[Entry]) -> list[str]:
    """Return tokens that belong to nothing: a sign that the end of the chain was cut off."""
    known = {authority.token_place for authority in registration.record.authorities}
    known |= {places(entry.id, a)[0] for entry in added for a in registration.trust_in(entry)}
    names = sorted(path.name for path in (registration.folder / EVIDENCE).glob("*.tsr"))
    return [name for name in names if f"{EVIDENCE}/{name}" not in known]
