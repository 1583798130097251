"""What an examination of a token ends with."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final, Literal

VERIFIED: Final = "verified"
NOT_VERIFIED: Final = "not_verified"
INCOMPLETE: Final = "incomplete"
Verdict = Literal["verified", "not_verified", "incomplete"]

NOT_CHECKED = "not checked"


class Refused(Exception):  # noqa: N818 - a verdict, not an error of the program
    """A check does not hold; `is_incomplete`: it could not be decided because an input is missing."""

    def __init__(self, message: str, *, is_incomplete: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.is_incomplete = is_incomplete


@dataclass(frozen=True)
class TokenVerdict:
    """What is known of a token; what its first failure left unknown is null."""

    verdict: Annotated[Verdict, "`incomplete`: an input is missing."]
    failed_check: Annotated[str | None, "Name of the check that did not hold."]
    failed_step: Annotated[int | None, "Its number, from 1 to 15."]
    message: Annotated[str, "What was found there, or that all checks hold."]
    gen_time: Annotated[datetime | None, "The time that the authority states, UTC."] = None
    accuracy_seconds: Annotated[
        float | None, "How far off the authority says that it may be; null where it does not say."
    ] = None
    serial: Annotated[str | None, "The token's serial number."] = None
    policy: Annotated[str | None, "Object identifier of the authority's policy."] = None
    imprint_algorithm: Annotated[str | None, "Hash that the imprint was made by."] = None
    imprint: Annotated[str | None, "Hash of the document, hexadecimal."] = None
    signer: Annotated[str | None, "Subject of the signing certificate."] = None
    signature_algorithm: Annotated[str | None, "How it signed."] = None
    root: Annotated[str | None, "Subject of the pinned certificate that the chain leads to."] = None
    root_sha256: Annotated[str | None, "Fingerprint of that certificate."] = None
    key_sha256: tuple[str, ...] = ()  # of each public key of the chain, signer first; not printed
    revocation: Annotated[str | None, "What is known of revocation."] = None
    notes: Annotated[tuple[str, ...], "What a careful reader wants to know besides."] = ()
