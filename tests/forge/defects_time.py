"""Checks 14 and 15: time, revocation. RFC 3161, section 4, says which reasons leave earlier tokens valid."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from tests.forge.case import Case, Cases, recipe, refused, verified
from tests.forge.keys import Scheme, key
from tests.forge.pki import (
    AUTHORITY_CERTIFICATES,
    DELTA,
    INDIRECT,
    REASONS,
    SOME_REASONS,
    UNKNOWN_CRITICAL,
    USER_CERTIFICATES,
    Cert,
    Crl,
    Revoked,
    authority,
    certificate_issuer,
    house,
    invalid_since,
    issuing_point,
    stamper,
)
from tests.forge.token import STAMPED, Recipe

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
ISSUED = STAMPED + 60 * DAY
AFTER = STAMPED + 30 * DAY
BEFORE = STAMPED - 30 * DAY

TIME: Cases = {
    "genTime a second from now": lambda: refused("time", recipe(), at=STAMPED - SECOND),
    "genTime a year from now": lambda: refused("time", recipe(), at=STAMPED - 365 * DAY),
    "genTime a millisecond from now": lambda: refused(
        "time", recipe(gen_time="20240301120000.001Z"), at=STAMPED
    ),
    "genTime in ten years": lambda: refused("time", recipe(gen_time="20350301120000Z")),
}

# The reasons that say nothing against the time before them. An explicit `unspecified` is one by RFC 3161,
# section 4; the notes count it among "any other reason or none", and so does the verifier: the safe side.
HARMLESS = ("affiliation changed", "superseded", "cessation of operation", "privilege withdrawn")


def crl(*revoked: Revoked, issuer: Cert | None = None, issued: datetime = ISSUED, **knobs: Any) -> bytes:
    return Crl(issuer or house().intermediate, issued, revoked, **knobs).der


def _signer_revoked(on: datetime, reason: str | None, **knobs: Any) -> bytes:
    return crl(Revoked(house().signer.number, on, reason), **knobs)


def _revoked(*lists: bytes, token: Recipe | None = None, **knobs: Any) -> Case:
    return refused("revocation", token or recipe(), crls=lists, **knobs)


def _authority_revoked(on: datetime, reason: str | None, **knobs: Any) -> bytes:
    return crl(Revoked(house().intermediate.number, on, reason), issuer=house().root, **knobs)


def _damaged(raw: bytes) -> bytes:
    return raw[:-1] + bytes([raw[-1] ^ 1])


def _indirect(of: Cert) -> bytes:
    """An indirect list of the signer's issuer that revokes another issuer's certificate of its number."""
    entry = Revoked(house().signer.number, BEFORE, "key compromise", (certificate_issuer(of.subject),))
    return crl(entry, extensions=(issuing_point(INDIRECT),))


def _sharing() -> tuple[Cert, Cert]:
    """A signer below an intermediate that states no serial number of its own: both have the same."""
    middle = authority("Forge Sharing", house().root, serial=42)
    return middle, stamper("Forge Shared", middle, serial=42)


REVOCATION: Cases = {
    **{
        f"signer revoked before genTime: {reason}": lambda reason=reason: _revoked(
            _signer_revoked(BEFORE, reason)
        )
        for reason in REASONS
        if reason != "remove from list"
    },
    **{
        f"signer revoked after genTime: {reason}": lambda reason=reason: _revoked(
            _signer_revoked(AFTER, reason)
        )
        for reason in REASONS
        if reason not in {*HARMLESS, "remove from list"}
    },
    "signer revoked before genTime without a reason": lambda: _revoked(_signer_revoked(BEFORE, None)),
    "signer revoked after genTime without a reason": lambda: _revoked(_signer_revoked(AFTER, None)),
    "signer revoked at genTime: superseded": lambda: _revoked(_signer_revoked(STAMPED, "superseded")),
    "signer revoked a second before genTime: superseded": lambda: _revoked(
        _signer_revoked(STAMPED - SECOND, "superseded")
    ),
    "intermediate revoked before genTime: superseded": lambda: _revoked(
        _authority_revoked(BEFORE, "superseded")
    ),
    "intermediate revoked after genTime: authority compromise": lambda: _revoked(
        _authority_revoked(AFTER, "authority compromise")
    ),
    "intermediate revoked after genTime without a reason": lambda: _revoked(_authority_revoked(AFTER, None)),
    "intermediate revoked beside a clean list for the signer": lambda: _revoked(
        crl(), _authority_revoked(AFTER, "key compromise")
    ),
    "clean list first, then one that revokes": lambda: _revoked(
        crl(), _signer_revoked(AFTER, "key compromise", issued=ISSUED + DAY)
    ),
    "list that revokes first, then an older clean one": lambda: _revoked(
        _signer_revoked(AFTER, "key compromise", issued=ISSUED + DAY), crl()
    ),
    "older list that already revokes": lambda: _revoked(
        _signer_revoked(BEFORE, "key compromise", issued=STAMPED - DAY)
    ),
    "older list that already revokes: superseded": lambda: _revoked(
        _signer_revoked(BEFORE, "superseded", issued=STAMPED - DAY)
    ),
    "older list that already revokes without a reason": lambda: _revoked(
        _signer_revoked(BEFORE, None, issued=STAMPED - DAY)
    ),
    "revoked among many": lambda: _revoked(
        crl(
            *(Revoked(serial, BEFORE, "superseded") for serial in range(1, 200)),
            Revoked(house().signer.number, AFTER, "key compromise"),
        )
    ),
    "listed twice, the second time for key compromise": lambda: _revoked(
        crl(
            Revoked(house().signer.number, AFTER, "superseded"),
            Revoked(house().signer.number, AFTER, "key compromise"),
        )
    ),
    # RFC 5280, section 5.3.2: since when a certificate is to be considered invalid, whatever the reason.
    "signer revoked after genTime: superseded, and invalid since before": lambda: _revoked(
        crl(Revoked(house().signer.number, AFTER, "superseded", (invalid_since(BEFORE),)))
    ),
    "signer revoked after genTime under an unknown critical condition": lambda: _revoked(
        crl(Revoked(house().signer.number, AFTER, "superseded", (UNKNOWN_CRITICAL,)))
    ),
    "delta list that revokes the signer": lambda: _revoked(
        _signer_revoked(AFTER, "key compromise", extensions=(DELTA,))
    ),
    "list of some reasons that revokes the signer": lambda: _revoked(
        _signer_revoked(AFTER, "key compromise", extensions=(issuing_point(SOME_REASONS),))
    ),
    "list of users' certificates that revokes the signer": lambda: _revoked(
        _signer_revoked(AFTER, "key compromise", extensions=(issuing_point(USER_CERTIFICATES),))
    ),
    # Without a certificateIssuer an entry is of the list's own issuer (RFC 5280, section 5.3.3).
    "indirect list that revokes the signer": lambda: _revoked(
        _signer_revoked(AFTER, "key compromise", extensions=(issuing_point(INDIRECT),))
    ),
    "list with a wrong signature": lambda: _revoked(_damaged(crl())),
    "list of the issuer's name and another key": lambda: _revoked(
        crl(signed_by=key("ecdsa-p256", "impostor"))
    ),
    "list with a wrong signature beside a good one": lambda: _revoked(crl(), _damaged(crl())),
    "list signed with SHA-1": lambda: _revoked(crl(scheme=Scheme("ecdsa", "sha1"))),
    "list cut off": lambda: _revoked(crl()[:-1]),
    "list with a trailing byte": lambda: _revoked(crl() + b"\x00"),
    "list that is a certificate": lambda: _revoked(house().root.der),
    "list empty": lambda: _revoked(b""),
}

KEEPS: Cases = {
    **{
        f"valid: signer revoked after genTime: {reason}": lambda reason=reason: verified(
            recipe(), crls=(_signer_revoked(AFTER, reason),)
        )
        for reason in HARMLESS
    },
    "valid: signer revoked a second after genTime: superseded": lambda: verified(
        recipe(), crls=(_signer_revoked(STAMPED + SECOND, "superseded"),)
    ),
    "valid: intermediate revoked after genTime: superseded": lambda: verified(
        recipe(), crls=(_authority_revoked(AFTER, "superseded"),)
    ),
    "valid: clean list": lambda: verified(recipe(), crls=(crl(),)),
    "valid: clean lists for the whole chain": lambda: verified(
        recipe(), crls=(crl(), crl(issuer=house().root))
    ),
    "valid: clean list that has run out": lambda: verified(recipe(), crls=(crl(next_update=ISSUED + DAY),)),
    "valid: list older than genTime": lambda: verified(recipe(), crls=(crl(issued=STAMPED - DAY),)),
    "valid: list of another issuer": lambda: verified(recipe(), crls=(crl(issuer=house("B").intermediate),)),
    "valid: list of another issuer that has the serial number": lambda: verified(
        recipe(), crls=(_signer_revoked(BEFORE, "key compromise", issuer=house("B").intermediate),)
    ),
    "valid: list of the root that has the signer's serial number": lambda: verified(
        recipe(), crls=(_signer_revoked(BEFORE, "key compromise", issuer=house().root),)
    ),
    "valid: another certificate revoked": lambda: verified(
        recipe(), crls=(crl(Revoked(house().signer.number + 1, BEFORE, "key compromise")),)
    ),
    "valid: clean list beside a serial number shared by two issuers": lambda: verified(
        recipe(signer=_sharing()[1]), crls=(crl(issuer=_sharing()[0]),)
    ),
    "valid: clean delta list": lambda: verified(recipe(), crls=(crl(extensions=(DELTA,)),)),
    "valid: clean list of users' certificates": lambda: verified(
        recipe(), crls=(crl(extensions=(issuing_point(USER_CERTIFICATES),)),)
    ),
    "valid: clean list of authorities' certificates": lambda: verified(
        recipe(), crls=(crl(extensions=(issuing_point(AUTHORITY_CERTIFICATES),)),)
    ),
    "valid: clean list of some reasons": lambda: verified(
        recipe(), crls=(crl(extensions=(issuing_point(SOME_REASONS),)),)
    ),
    "valid: indirect list with the serial number of another issuer's": lambda: verified(
        recipe(), crls=(_indirect(house("B").intermediate),)
    ),
    "valid: clean list with an unknown critical extension": lambda: verified(
        recipe(), crls=(crl(extensions=(UNKNOWN_CRITICAL,)),)
    ),
    "valid: signer revoked after genTime: superseded, and invalid since after": lambda: verified(
        recipe(), crls=(crl(Revoked(house().signer.number, AFTER, "superseded", (invalid_since(AFTER),))),)
    ),
}
