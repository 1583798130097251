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
    """A check does not hold.

    Args:
        message: what was found, in one phrase.
        is_incomplete: it could not be decided because an input is missing.
    """

    def __init__(self, message: str, *, is_incomplete: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.is_incomplete = is_incomplete


@dataclass(frozen=True)
class TokenVerdict:
    """What is known of a token. Fields that its first failure left unknown are None.

    Args:
        verdict: `verified`, `not_verified` or `incomplete`.
        failed_step: number of the check that did not hold.
        failed_check: its name.
        message: what was found there, or that all checks hold.
        gen_time: the time the authority states, UTC.
        accuracy_seconds: how far off the authority says that it may be; None where it does not say.
        serial: the token's serial number.
        policy: object identifier of the authority's policy.
        imprint_algorithm: hash of the document.
        imprint: that hash, hexadecimal.
        signer: subject of the signing certificate.
        signature_algorithm: how it signed.
        root: subject of the pinned certificate that the chain leads to.
        root_sha256: its fingerprint.
        key_sha256: of each public key of the chain, signer first.
        revocation: what is known of revocation.
        notes: what a careful reader wants to know besides.
    """

    verdict: Verdict
    failed_step: int | None
    failed_check: str | None
    message: str
    gen_time: datetime | None = None
    accuracy_seconds: float | None = None
    serial: str | None = None
    policy: str | None = None
    imprint_algorithm: str | None = None
    imprint: str | None = None
    signer: str | None = None
    signature_algorithm: str | None = None
    root: str | None = None
    root_sha256: str | None = None
    key_sha256: tuple[str, ...] = ()
    revocation: str | None = None
    notes: tuple[str, ...] = ()
