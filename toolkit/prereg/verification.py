"""`toolkit verify-prereg`: what can be said of a registration, step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from msgspec.structs import force_setattr

from toolkit.errors import DamagedError, IncompleteError, RuleError, ToolkitError, VerificationError
from toolkit.files import read_bytes
from toolkit.line_ends import CAUSE, REMEDY, is_converted_file
from toolkit.prereg.chain import Entry, entries, promised
from toolkit.prereg.evidence import (
    UNSTATED_ACCURACY,
    FreezeToken,
    Judged,
    Subject,
    judge,
    places,
    shared_keys,
)
from toolkit.prereg.record import (
    DEMONSTRATION,
    EVIDENCE,
    FROZEN,
    PUBLIC,
    Amendment,
    Trusted,
    operator_of,
)
from toolkit.prereg.registration import RULES, Registration, load_registration
from toolkit.prereg.spans import differences, spans_told
from toolkit.prereg.token.verdict import Verdict
from toolkit.structs import Document, Shown, about, as_builtins, replace

Outcome = Literal["passed", "failed", "missing", "unproven"]
OwnStanding = Literal["public", "demonstration", "unknown"]
Order = Literal["run_before_freeze", "incomplete", "runs_after_freeze"]
StandingName = Literal["public", "demonstration", "incomplete", "failed"]

TOKENS = 4
"""The step that looks at each token."""
ADDITIONS = 8
"""The step that looks at what was added later."""
FEWEST = 2
SPREAD = timedelta(hours=24)
TIME = "%Y-%m-%dT%H:%M:%SZ"


class Check(Document, frozen=True):
    """One step of a verification."""

    step: Annotated[int, about("Its number, from 1.")]
    name: Annotated[str, about("What it checks.")]
    outcome: Annotated[Outcome, about("`unproven`: not contradicted, and nothing here proves it.")]
    detail: Annotated[str, about("What was found.")]


@dataclass(frozen=True)
class Reader:
    """Who asks."""

    known: Sequence[Trusted]  # the authorities that the reader trusts
    at: datetime  # when it is judged, UTC
    with_openssl: bool = False  # whether OpenSSL is asked about each token, too
    restatements: frozenset[str] = frozenset()  # those that the reader accepts, by the last link of a chain


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


# A record may leave out fractions of a second.
SLACK = timedelta(seconds=1)
PROMISE = (
    "A verified registration proves that these exact bytes existed no later than the stated time. "
    "It does not prove who wrote them, that no other plan exists, or that no data had been seen."
)


class RunOrder(Document, frozen=True):
    """The freeze against the runs of every study that was looked at."""

    verdict: Annotated[Order, about("`incomplete`: a launch time is missing.")]
    runs_after: Annotated[int, about("Deciding runs that were launched after it.")]
    disclosed_exceptions: Annotated[list[str], about("Runs that the frozen document excepts by name.")]
    undisclosed: Annotated[list[str], about("Runs before it that it does not except.")]


def _run_order(studies: Sequence[Chronology]) -> RunOrder:
    order: tuple[Order, ...] = ("run_before_freeze", "incomplete", "runs_after_freeze")
    verdicts: list[Order] = [study.verdict for study in studies] or ["incomplete"]
    return RunOrder(
        min(verdicts, key=order.index),
        sum(len(study.runs_after) for study in studies),
        [run for study in studies for run in study.disclosed_exceptions],
        [run for study in studies for run in study.undisclosed],
    )


class Verification(Document, frozen=True):
    """What can be said of one registration."""

    registration: Annotated[str, about("Name of the registration.")]
    verdict: Annotated[Verdict, about("`incomplete`: something is missing.")]
    standing: Annotated[OwnStanding, about("By its own record; `unknown` where the files do not hold.")] = (
        "unknown"
    )
    is_restated: Annotated[
        bool, about("Whether the rules here restate a document that was timestamped elsewhere.")
    ] = False
    document_sha256: Annotated[
        str, about("Of the timestamped document, as recorded; empty where the files fail.")
    ] = ""
    existed_by: Annotated[
        datetime | None, about("Time by which all tokens prove that it existed; null unless they do.")
    ] = None
    authorities: tuple[FreezeToken, ...] = ()
    chronology: Annotated[tuple[Chronology, ...], Shown("chronology", RunOrder, "", _run_order)] = ()
    checks: Annotated[tuple[Check, ...], about("The steps, in their order.")] = ()
    promise: Annotated[str, about("What is proven and what is not, on one line.")] = ""

    def __post_init__(self) -> None:
        force_setattr(self, "promise", _promise(self))

    @property
    def unbinding(self) -> frozenset[str]:
        """The amendments that bind nothing in the studies that were looked at."""
        return frozenset().union(*(order.unbinding for order in self.chronology))

    def as_dict(self) -> dict[str, Any]:
        """Return the verification as it is printed with `--json`."""
        printed: dict[str, Any] = as_builtins(self)
        return printed

    def __repr__(self) -> str:
        passed = sum(check.outcome == "passed" for check in self.checks)
        steps = f"{passed} of {len(self.checks)} steps passed"
        return f"<Verification of {self.registration!r}: {self.verdict}, standing {self.standing}, {steps}>"


def _promise(made: Verification) -> str:
    if made.verdict == "not_verified":
        return "Nothing is proven: a step failed."
    if made.existed_by is None:
        return "Nothing is proven yet: something is missing."
    if made.standing == DEMONSTRATION:
        return "DEMONSTRATION: its authorities were made for the occasion; it proves nothing to others."
    clocks = " and ".join(token.authority.name for token in made.authorities)
    if any(token.verdict.accuracy_seconds is None for token in made.authorities):
        clocks += ", which do not all state their accuracy"
    proven = (
        f"Proven, by the clocks of {clocks}: the bytes with SHA-256 {made.document_sha256} existed no "
        f"later than {made.existed_by:{TIME}}. Not proven: who wrote them, that no other plan exists, or "
        "that no data had been seen."
    )
    if made.is_restated:
        proven += " Nor that the rules here, which restate those bytes, say the same."
    return proven


def open_checked(folder: Path) -> tuple[Registration | None, Check]:
    """Step 1: every file of the registration is the one whose hash was recorded."""
    try:
        registration = load_registration(folder)
    except (VerificationError, DamagedError) as error:
        return None, _files("failed", str(error))
    except IncompleteError as error:
        return None, _files("missing", str(error))
    return registration, _recorded(registration)


def verify_registration(
    folder: Path, reader: Reader, studies: Callable[[Registration], Sequence[StudyRuns]] = lambda _: ()
) -> Verification:
    """Examine a registration, step by step: what each asks for is in the README of this folder."""
    registration, first = open_checked(folder)  # 1
    if registration is None:
        verdict: Verdict = "not_verified" if first.outcome == "failed" else "incomplete"
        return Verification(folder.name, verdict, checks=(first,))
    return verify_loaded(registration, reader, studies)


def verify_loaded(
    registration: Registration,
    reader: Reader,
    studies: Callable[[Registration], Sequence[StudyRuns]] = lambda _: (),
) -> Verification:
    """Examine a registration that was loaded, which is step 1; the rest as `verify_registration`."""
    record = registration.record
    checks = [_recorded(registration), _document(registration), _binding(registration, reader)]  # 2, 3
    tokens = tuple(_tokens(registration, reader))
    checks += [_token(judged) for judged in tokens]  # 4
    trust = reader.known if record.standing == PUBLIC else registration.trust_in()
    checks += [independence(tokens, trust), agreement(tokens)]  # 5, 6
    freeze = _freeze(registration, tokens)
    later, times = additions(registration, freeze, reader)
    freeze = replace(
        freeze,
        entries=times,
        is_demonstration=record.standing == DEMONSTRATION,
        vouched=_vouched(registration, reader),
    )
    orders = tuple(chronology(registration, study, freeze, reader.at) for study in studies(registration))
    checks += [_order(order) for order in orders] or [  # 7
        Check(7, "freeze before runs", "unproven", "no study here has runs under it: nothing to compare")
    ]
    checks.append(later)  # 8
    checks += [_amendments(registration, order) for order in orders]  # 9
    outcomes = {check.outcome for check in checks} - {"unproven"}
    unfailed: Verdict = "verified" if outcomes == {"passed"} else "incomplete"
    verdict: Verdict = "not_verified" if "failed" in outcomes else unfailed
    return Verification(
        registration=registration.name,
        verdict=verdict,
        standing=record.standing,
        is_restated=record.is_restated,
        document_sha256=record.document_sha256,
        existed_by=max(j.no_later_than for j in tokens) if verdict == "verified" else None,
        authorities=tokens,
        checks=tuple(checks),
        chronology=orders,
    )


_files = partial(Check, 1, "recorded files")


def _recorded(registration: Registration) -> Check:
    return _files("passed", f"all files match their recorded SHA-256; digest {registration.sha256}")


def _document(registration: Registration) -> Check:
    step = partial(Check, 2, "timestamped document")
    record = registration.record
    path = registration.folder / record.document_place
    if not path.is_file():
        told = f"prereg/{registration.name}/{record.document_place}"
        detail = f"not here: {record.document}.\nGet it from {record.source}.\nPut it at {told}."
        if record.checkout is not None:
            detail += "\nWith a checkout of it, this puts all evidence in place: toolkit adopt STUDY CHECKOUT"
        return step("missing", detail)
    digest = sha256(read_bytes(path)).hexdigest()
    if digest != record.document_sha256:
        if is_converted_file(path, record.document_sha256):
            return step("failed", f"{path.name} is not as recorded: {CAUSE}.\n{REMEDY}")
        return step("failed", f"expected SHA-256 {record.document_sha256}, found {digest}")
    return step("passed", f"SHA-256 {digest}")


def _binding(registration: Registration, reader: Reader) -> Check:
    step = partial(Check, 3, "rules are the document's")
    recorded = _listed_rules(registration)
    if recorded is not None and recorded != sha256(registration.rules.encode()).hexdigest():
        return step("failed", "the document lists a rules.toml with other bytes than the one here")
    if registration.record.is_restated and recorded is not None:
        # Its amendments would need no token: one made after the runs would pass under any date.
        return step("failed", f"the document is a list of frozen files, and does not lie at {FROZEN}")
    if registration.record.is_restated:
        return _restatement(registration, reader)
    return step("passed", "rules.toml is one of the frozen files, whose list was timestamped")


def _restatement(registration: Registration, reader: Reader) -> Check:
    """Check what a restatement says of the lines that it restates; the document has to be at hand for it."""
    step = partial(Check, 3, "rules are the document's")
    document = registration.document()
    spans = "; which lines of it each rule restates was not checked: it is not here"
    if document is not None:
        try:
            problems = differences(document, registration.rules, registration.unrestated)
        except RuleError as error:
            return step("failed", str(error))
        if problems:
            return step("failed", "\n".join((f"{len(problems)} lines or sentences do not fit:", *problems)))
        spans = f"; {spans_told(registration.rules, registration.unrestated)}"
    detail = "rules.toml restates a document that was timestamped elsewhere; only reading both compares them"
    link = registration.entries[-1].link
    if link in reader.restatements:
        return step("unproven", detail + spans)
    # Any two old tokens, over whatever document, would do otherwise.
    return step("missing", f"{detail}, and nobody you know has; if you did: --restatement {link}{spans}")


def _vouched(registration: Registration, reader: Reader) -> frozenset[str]:
    """Return the entries of a restatement up to the last link that the reader accepts."""
    if not registration.record.is_restated:
        return frozenset()
    accepted = max((e.number for e in registration.entries if e.link in reader.restatements), default=0)
    return frozenset(entry.id for entry in registration.entries if entry.number <= accepted)


def _listed_rules(registration: Registration) -> str | None:
    """Return the hash of the rules in a document that is a list of frozen files, as made here."""
    path = registration.folder / registration.record.document_place
    try:
        return entries(read_bytes(path), path).get(RULES)
    except ToolkitError:
        return None


def _tokens(registration: Registration, reader: Reader) -> Iterator[FreezeToken]:
    """Yield the freeze's tokens, judged: against the document, or its recorded hash where it is not here."""
    record = registration.record
    trust = {authority.name: authority for authority in registration.trust_in()}
    path = registration.folder / record.document_place
    content = read_bytes(path) if path.is_file() else None
    subject = Subject(registration.folder, content, record.document_sha256)
    for a in record.authorities:
        asked = trust[a.name], a.token_place, a.request_place
        judged = judge(subject, *asked, reader.at, with_openssl=reader.with_openssl)
        yield FreezeToken(judged.authority, judged.place, judged.verdict, a.recorded_time)


def _token(judged: FreezeToken) -> Check:
    verdict = judged.verdict
    step = partial(Check, 4, f"token of {judged.authority.name}")
    if not judged.is_verified:
        outcome: Outcome = "missing" if verdict.verdict == "incomplete" else "failed"
        failed = f"check {verdict.failed_step}, {verdict.failed_check}: " if verdict.failed_step else ""
        return step(outcome, failed + verdict.message)
    if verdict.gen_time is None or abs(verdict.gen_time - judged.recorded_time) > SLACK:
        detail = f"the record says {judged.recorded_time:{TIME}}, and the token {verdict.gen_time:{TIME}}"
        return step("failed", detail)
    accuracy = "not stated" if verdict.accuracy_seconds is None else f"{verdict.accuracy_seconds:g} s"
    detail = (
        f"{verdict.gen_time:{TIME}} ± {accuracy}; signer {verdict.signer}; root {verdict.root}, SHA-256 "
        f"{verdict.root_sha256}; serial {verdict.serial}; {verdict.signature_algorithm}, imprint "
        f"{verdict.imprint_algorithm}; revocation: {verdict.revocation}"
    )
    return step("passed", "; ".join((detail, *verdict.notes)))


def _freeze(registration: Registration, tokens: Sequence[Judged]) -> Freeze:
    if all(judged.is_verified for judged in tokens):
        return Freeze(max(judged.latest for judged in tokens), has_tokens=True)
    recorded = max(authority.recorded_time for authority in registration.record.authorities)
    return Freeze(recorded + UNSTATED_ACCURACY, has_tokens=False)


def _amendments(registration: Registration, order: Chronology) -> Check:
    step = partial(Check, 9, "amendments before runs")
    told = "; ".join(f"{a.id} of {a.dated} ({a.seen})" for a in registration.amendments) or "none"
    told = f"study {order.study}: {told}"
    if late := ", ".join(order.at(_LATE)):
        return step("failed", f"{late} made after the first run, and binding nothing; {told}")
    if absent := ", ".join(order.at(_UNPLACED)):
        return step("missing", f"not known whether before the runs, and binding nothing: {absent}\n{told}")
    if names := ", ".join(order.at(_DECLARED)):
        told = f"{names}: made after runs, as it says itself: its rules are exploratory; {told}"
    placed = {*order.freeze.entries, *order.at(_DECLARED)}
    if any(amendment.id not in placed for amendment in registration.amendments):
        return step("unproven", f"by the days in the author's record; {told}")
    if anchored := ", ".join(order.at(_ANCHORED)):
        told = (
            f"{anchored} made after the first run, on data of its own: their "
            "seeds hold its tokens, by the study's word (toolkit probe run --check shows it); that nobody "
            f"had looked at the same policies with other seeds is the author's word; {told}"
        )
    return step("passed", told)


def _order(order: Chronology) -> Check:
    step = partial(Check, 7, "freeze before runs")
    facts = (
        f"study {order.study}: {len(order.runs_after)} deciding runs launched after "
        f"{order.freeze.by:{TIME}} ({order.freeze.source}; accuracy included), "
        f"by the clocks of their machines; disclosed exceptions: "
        f"{', '.join(order.disclosed_exceptions) or 'none'}"
    )
    if order.undisclosed:
        return step("failed", f"{facts}; undisclosed: {', '.join(order.undisclosed)}")
    if order.verdict == "run_before_freeze":
        return step("failed", f"{facts}; no deciding run came after it")
    if order.verdict == "incomplete":
        absent = ", ".join(order.unknown) or "no deciding run at all"
        return step("missing", f"no launch time, or one in the future: {absent}\n{facts}")
    return step("passed", facts)


INCOMPLETE: Final = "incomplete"
FAILED: Final = "failed"
ORDER: tuple[StandingName, ...] = (FAILED, INCOMPLETE, DEMONSTRATION, PUBLIC)
"""From the least to the most that a registration can stand on."""


class Standing(Document, frozen=True):
    """What the verdicts under a registration stand on."""

    name: Annotated[
        StandingName,
        Shown(
            "standing",
            StandingName,
            "`public` or `demonstration` where every step of its verification passed.",
        ),
    ]
    failed_steps: Annotated[tuple[str, ...], about("Steps of its verification that failed.")] = ()
    missing: Annotated[tuple[str, ...], about("What is missing for it, each in a line.")] = ()

    def __str__(self) -> str:
        """The standing in words."""
        if self.name == FAILED:
            return f"FAILED: {', '.join(self.failed_steps)}"
        if self.name == INCOMPLETE:
            return f"incomplete: {'; '.join(self.missing)}"
        if self.name == DEMONSTRATION:
            return "demonstration (authorities made for the occasion: proves nothing to others)"
        return self.name


UNVERIFIED = Standing(INCOMPLETE, missing=("it was not verified here",))


def standing_of(verification: Verification) -> Standing:
    """Return what verdicts stand on; the record's own word counts where nothing failed or is missing."""
    failed = tuple(dict.fromkeys(c.name for c in verification.checks if c.outcome == "failed"))
    missing = tuple(dict.fromkeys(_missing(verification.checks)))
    own = verification.standing if verification.standing in (PUBLIC, DEMONSTRATION) else INCOMPLETE
    return Standing(FAILED if failed else INCOMPLETE if missing else own, failed, missing)


def rank(standing: Standing) -> int:
    """Return how much a standing is, from the least."""
    return ORDER.index(standing.name)


def require(standings: Mapping[str, Standing], least: str | None = None) -> None:
    """Check that registrations stand on something."""
    needed = ORDER.index(least) if least else ORDER.index(INCOMPLETE)
    less = {name: one for name, one in standings.items() if rank(one) < needed}
    if less:
        expected = " or ".join(ORDER[needed:]) if least else "a registration of which no step fails"
        problem = f"stands on less than {least}" if least else "does not verify"
        raise VerificationError(
            f"registration {', '.join(less)} {problem}",
            expected=expected,
            found="; ".join(f"{name}: {one}" for name, one in less.items()),
            remedy=f"toolkit verify-prereg {' '.join(less)}",
        )


def _missing(checks: tuple[Check, ...]) -> Iterator[str]:
    """Yield what is missing, without what follows from a token that is."""
    absent = [check for check in checks if check.outcome == "missing"]
    lacks_token = any(check.step == TOKENS for check in absent)
    for check in absent:
        if not (lacks_token and check.step in {TOKENS + 1, TOKENS + 2}):
            yield check.detail.partition("\n")[0].rstrip(".")


SETTLED = timedelta(seconds=10)
"""Longer than the accuracy that time-stamping authorities state: within it, a launch counts as early."""


@dataclass(frozen=True)
class StudyRuns:
    """The runs of one study."""

    study: str  # its name
    runs: Sequence[Mapping[str, object]]  # rows of its `runs` register
    roles: Sequence[str]  # roles of the runs that enter decisions
    own_data: frozenset[str] = frozenset()  # amendments that only add rules, on data of their own
    # Whether the study says that these data were made with seeds that hold the amendment's tokens: then
    # they cannot have been there before it, however early the runs were
    is_anchored: bool = False


@dataclass(frozen=True)
class Freeze:
    """When a registration was frozen, and its later entries recorded."""

    by: datetime  # the latest moment that any authority's time can mean
    has_tokens: bool  # whether verified tokens say so; otherwise it is what the author's record says
    entries: Mapping[str, datetime] = field(default_factory=dict)  # amendment → likewise, by verified tokens
    is_demonstration: bool = False  # whether these tokens are of authorities made for the occasion
    vouched: frozenset[str] = frozenset()  # amendments without a token for whose days somebody stands

    @property
    def source(self) -> str:
        """Whose word the time is."""
        if not self.has_tokens:
            return "by the author's record, no token shows it"
        return "by a demonstration's tokens" if self.is_demonstration else "proven by the tokens"


@dataclass(frozen=True)
class Chronology:
    """The order of the freeze and the runs of one study."""

    study: str  # the study
    # `runs_after_freeze`; `run_before_freeze`, where one is not excepted or all are; or `incomplete`,
    # where a launch time is missing
    verdict: Order
    freeze: Freeze  # when the registration was frozen
    runs_after: tuple[str, ...]  # deciding runs launched after it
    disclosed_exceptions: tuple[str, ...]  # runs launched before it that the frozen document names
    undisclosed: tuple[str, ...]  # runs launched before it that it does not name
    unknown: tuple[str, ...]  # runs without a launch time, or with one that has not come yet
    # Amendment → where it lies to the first of `runs_after`: `early`; `late` by token or day, and not saying
    # so; `anchored`, late on own data whose seeds hold its tokens; `unplaced`, without a token, or where a
    # launch is not known; `declared`, which says of itself that it was made after runs
    places: Mapping[str, str] = field(default_factory=dict)

    @property
    def unbinding(self) -> frozenset[str]:
        """The amendments that nothing shows to have been made before the runs: they bind nothing."""
        return frozenset((*self.at(_LATE), *self.at(_UNPLACED), *self.at(_DECLARED)))

    def at(self, place: str) -> tuple[str, ...]:
        """Return the amendments that lie there."""
        return tuple(name for name, at in self.places.items() if at == place)


def chronology(
    registration: Registration, study: StudyRuns, freeze: Freeze, now: datetime | None = None
) -> Chronology:
    """Compare the freeze with the launch of every run that enters a decision."""
    now = now or datetime.now(UTC)
    disclosed = {exception.run for exception in registration.exceptions}
    after: dict[str, datetime] = {}
    before: list[datetime] = []
    excepted: list[str] = []
    undisclosed: list[str] = []
    unknown: list[str] = []
    for run in study.runs:
        if run["role"] not in study.roles:
            continue
        name, launched = str(run["run_id"]), run["launched_at"]
        if not isinstance(launched, datetime) or launched > now:
            unknown.append(name)
        elif launched > freeze.by:
            after[name] = launched
        else:
            before.append(launched)
            (excepted if name in disclosed else undisclosed).append(name)
    incomplete = bool(unknown) or not (after or excepted)
    # A document that excepts every run there is was frozen after all of them.
    is_late = bool(undisclosed) or not (after or incomplete)
    first = min(after.values() or before, default=None)
    launch = None if unknown else first
    return Chronology(
        study=study.study,
        verdict="run_before_freeze" if is_late else "incomplete" if incomplete else "runs_after_freeze",
        freeze=freeze,
        runs_after=tuple(after),
        disclosed_exceptions=tuple(excepted),
        undisclosed=tuple(undisclosed),
        unknown=tuple(unknown),
        places={
            amendment.id: _EARLY
            if first is None and not unknown and not amendment.after_runs
            else _place(amendment, study, freeze, launch)
            for amendment in registration.amendments
        },
    )


_EARLY, _LATE, _ANCHORED, _UNPLACED, _DECLARED = "early", "late", "anchored", "unplaced", "declared"


def _place(amendment: Amendment, study: StudyRuns, freeze: Freeze, first: datetime | None) -> str:
    """Return where an amendment lies to the first launch; None where that is not known."""
    at, is_own = freeze.entries.get(amendment.id), amendment.id in study.own_data
    if amendment.after_runs:
        return _DECLARED
    if at is not None and is_own and study.is_anchored:
        return _EARLY if first is not None and at < first else _ANCHORED
    if first is None:
        return _UNPLACED
    if at is not None:
        return _LATE if at >= first else _EARLY
    if amendment.dated > first.date() and not is_own:
        return _LATE
    # An early day that the author names shows nothing where a token could, or where nobody stands for it.
    return _EARLY if amendment.id in freeze.vouched else _UNPLACED


def seconds_to_settle(registration: Registration, now: datetime) -> float:
    """Return how long a launch waits until the freeze is over by every clock; 0 where that lies ahead."""
    last = max(authority.recorded_time for authority in registration.record.authorities)
    left = (last + SETTLED - now).total_seconds()
    return left if 0 < left <= SETTLED.total_seconds() else 0.0
