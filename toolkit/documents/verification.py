"""What can be said of registrations and of tokens, and what verdicts stand on."""

from datetime import datetime
from typing import Annotated, Literal, TypedDict

from toolkit.structs import about

Verdict = Literal["verified", "not_verified", "incomplete"]
StandingName = Literal["public", "demonstration", "incomplete", "failed"]
Outcome = Literal["passed", "failed", "missing", "unproven"]
OwnStanding = Literal["public", "demonstration", "unknown"]
Order = Literal["run_before_freeze", "incomplete", "runs_after_freeze"]


class StandingDocument(TypedDict):
    """What the verdicts under a registration stand on."""

    standing: Annotated[
        StandingName, about("`public` or `demonstration` where every step of its verification passed.")
    ]
    failed_steps: Annotated[list[str], about("Steps of its verification that failed.")]
    missing: Annotated[list[str], about("What is missing for it, each in a line.")]


class CheckDocument(TypedDict):
    """One step of a verification."""

    step: Annotated[int, about("Its number, from 1.")]
    name: Annotated[str, about("What it checks.")]
    outcome: Annotated[Outcome, about("`unproven`: not contradicted, and nothing here proves it.")]
    detail: Annotated[str, about("What was found.")]


class TokenVerdictDocument(TypedDict):
    """What is known of a token; what its first failure left unknown is null."""

    verdict: Annotated[Verdict, about("`incomplete`: an input is missing.")]
    failed_check: Annotated[str | None, about("Name of the check that did not hold.")]
    failed_step: Annotated[int | None, about("Its number, from 1 to 15.")]
    message: Annotated[str, about("What was found there, or that all checks hold.")]
    gen_time: Annotated[datetime | None, about("The time that the authority states, UTC.")]
    accuracy_seconds: Annotated[
        float | None, about("How far off the authority says that it may be; null where it does not say.")
    ]
    serial: Annotated[str | None, about("The token's serial number.")]
    policy: Annotated[str | None, about("Object identifier of the authority's policy.")]
    imprint_algorithm: Annotated[str | None, about("Hash that the imprint was made by.")]
    imprint: Annotated[str | None, about("Hash of the document, hexadecimal.")]
    signer: Annotated[str | None, about("Subject of the signing certificate.")]
    signature_algorithm: Annotated[str | None, about("How it signed.")]
    root: Annotated[str | None, about("Subject of the pinned certificate that the chain leads to.")]
    root_sha256: Annotated[str | None, about("Fingerprint of that certificate.")]
    revocation: Annotated[str | None, about("What is known of revocation.")]
    notes: Annotated[tuple[str, ...], about("What a careful reader wants to know besides.")]


class TokenDocument(TokenVerdictDocument):
    """An authority's token of a registration."""

    name: Annotated[str, about("The authority.")]
    operator: Annotated[str, about("Who runs the authority.")]
    token: Annotated[str, about("Its file, relative to the registration.")]


class FreezeTokenDocument(TokenDocument):
    """A token of a freeze, beside what the record says of it."""

    recorded_time: Annotated[datetime | None, about("The author's record, UTC.")]


class ChronologyDocument(TypedDict):
    """The freeze against the runs of every study that was looked at."""

    verdict: Annotated[Order, about("`incomplete`: a launch time is missing.")]
    runs_after: Annotated[int, about("Deciding runs that were launched after it.")]
    disclosed_exceptions: Annotated[list[str], about("Runs that the frozen document excepts by name.")]
    undisclosed: Annotated[list[str], about("Runs before it that it does not except.")]


class VerificationDocument(TypedDict):
    """What can be said of one registration."""

    registration: Annotated[str, about("Name of the registration.")]
    verdict: Annotated[Verdict, about("`incomplete`: something is missing.")]
    standing: Annotated[OwnStanding, about("By its own record; `unknown` where the files do not hold.")]
    is_restated: Annotated[
        bool, about("Whether the rules here restate a document that was timestamped elsewhere.")
    ]
    document_sha256: Annotated[
        str, about("Of the timestamped document, as recorded; empty where the files fail.")
    ]
    existed_by: Annotated[
        datetime | None, about("Time by which all tokens prove that it existed; null unless they do.")
    ]
    authorities: list[FreezeTokenDocument]
    chronology: ChronologyDocument
    checks: Annotated[list[CheckDocument], about("The steps, in their order.")]
    promise: Annotated[str, about("What is proven and what is not, on one line.")]


ThingKind = Literal["registration", "study", "token", "export"]
ThingVerdict = Literal["verified", "not_verified", "incomplete", "damaged"]


class VerifiedStepDocument(TypedDict):
    """One step of what was verified of a thing."""

    step: Annotated[str, about("What it checks; of a study `files`, `rows`, `registration` or `replay`.")]
    outcome: Annotated[Literal["passed", "failed", "missing", "unproven", "damaged"], about("How it ended.")]
    detail: Annotated[str, about("What was found.")]


class VerifiedThingDocument(TypedDict):
    """What can be said of one thing; the first step that fails is the last of a study."""

    thing: Annotated[str, about("As it was named, or its name here.")]
    kind: Annotated[ThingKind, about("What it is.")]
    verdict: Annotated[ThingVerdict, about("That of its worst step.")]
    steps: Annotated[list[VerifiedStepDocument], about("The steps, in their order.")]
