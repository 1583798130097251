"""What an examination of a token ends with."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

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
    """What is known of a token. Fields that its first failure left unknown are None."""

    verdict: Verdict  # `verified`, `not_verified` or `incomplete`
    failed_step: int | None  # number of the check that did not hold
    failed_check: str | None  # its name
    message: str  # what was found there, or that all checks hold
    gen_time: datetime | None = None  # the time the authority states, UTC
    accuracy_seconds: float | None = None  # how far off it says that it may be; None where it does not
    serial: str | None = None  # the token's serial number
    policy: str | None = None  # object identifier of the authority's policy
    imprint_algorithm: str | None = None  # hash of the document
    imprint: str | None = None  # that hash, hexadecimal
    signer: str | None = None  # subject of the signing certificate
    signature_algorithm: str | None = None  # how it signed
    root: str | None = None  # subject of the pinned certificate that the chain leads to
    root_sha256: str | None = None  # its fingerprint
    key_sha256: tuple[str, ...] = ()  # of each public key of the chain, signer first
    revocation: str | None = None  # what is known of revocation
    notes: tuple[str, ...] = ()  # what a careful reader wants to know besides
