"""Checks 14 and 15: time, revocation. RFC 3161, section 4, says which reasons leave earlier tokens valid."""

from datetime import datetime, timedelta
from functools import partial
from typing import Any

from tests.forge import der, pki
from tests.forge.case import Cases, Made, by, given, recipe
from tests.forge.keys import Scheme, key
from tests.forge.pki import Revoked, authority, house, issuing_point
from tests.forge.token import STAMPED

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
ISSUED = STAMPED + 60 * DAY
AFTER = STAMPED + 30 * DAY
BEFORE = STAMPED - 30 * DAY

TIME: Cases = {
    "genTime a second from now": lambda: given(recipe(), at=STAMPED - SECOND),
    "genTime a year from now": lambda: given(recipe(), at=STAMPED - 365 * DAY),
    "genTime a millisecond from now": lambda: given(recipe(gen_time="20240301120000.001Z"), at=STAMPED),
    "genTime in ten years": lambda: recipe(gen_time="20350301120000Z"),
}

# The reasons that say nothing against the time before them. An explicit `unspecified` is one by RFC 3161,
# section 4; the notes count it among "any other reason or none", and so does the verifier: the safe side.
HARMLESS = ("affiliation changed", "superseded", "cessation of operation", "privilege withdrawn")


def crl(*revoked: Revoked, issuer: pki.Cert | None = None, issued: datetime = ISSUED, **knobs: Any) -> bytes:
    return pki.Crl(issuer or house().intermediate, issued, revoked, **knobs).der


def _lists(*lists: bytes) -> Made:
    return given(recipe(), crls=lists)


def _entry(on: datetime, reason: str | None, *extensions: bytes) -> Revoked:
    return Revoked(house().signer.number, on, reason, extensions)


def _revoked(on: datetime, reason: str | None, **knobs: Any) -> Made:
    """Return the usual token beside a list that revokes its signer."""
    return _lists(crl(_entry(on, reason), **knobs))


def _listed(*entries: Revoked) -> Made:
    return _lists(crl(*entries))


def _covering(*fields: bytes) -> Made:
    """Return the usual token beside a list that covers some certificates alone, and revokes its signer."""
    return _revoked(AFTER, _KEY, extensions=(issuing_point(*fields),))


def _issuer_revoked(on: datetime, reason: str | None, *others: bytes) -> Made:
    return _lists(*others, crl(Revoked(house().intermediate.number, on, reason), issuer=house().root))


def _indirect(of: pki.Cert) -> bytes:
    """An indirect list of the signer's issuer that revokes another issuer's certificate of its number."""
    entry = _entry(BEFORE, "key compromise", pki.certificate_issuer(of.subject))
    return crl(entry, extensions=(issuing_point(pki.INDIRECT),))


def _sharing() -> Made:
    """A signer below an intermediate whose serial number is its own, and a clean list of that one."""
    middle = authority("Forge Sharing", house().root, serial=42)
    return given(by(pki.stamper("Forge Shared", middle, serial=42)), crls=(crl(issuer=middle),))


_REPLACED, _KEY, _LATER = "superseded", "key compromise", ISSUED + DAY

REVOCATION: Cases = {
    **{
        f"signer revoked before genTime: {reason}": partial(_revoked, BEFORE, reason)
        for reason in pki.REASONS
        if reason != "remove from list"
    },
    **{
        f"signer revoked after genTime: {reason}": partial(_revoked, AFTER, reason)
        for reason in pki.REASONS
        if reason not in {*HARMLESS, "remove from list"}
    },
    "signer revoked before genTime without a reason": lambda: _revoked(BEFORE, None),
    "signer revoked after genTime without a reason": lambda: _revoked(AFTER, None),
    "signer revoked at genTime: superseded": lambda: _revoked(STAMPED, _REPLACED),
    "signer revoked a second before genTime: superseded": lambda: _revoked(STAMPED - SECOND, _REPLACED),
    "intermediate revoked before genTime: superseded": lambda: _issuer_revoked(BEFORE, _REPLACED),
    "intermediate revoked after genTime: authority compromise": lambda: _issuer_revoked(
        AFTER, "authority compromise"
    ),
    "intermediate revoked after genTime without a reason": lambda: _issuer_revoked(AFTER, None),
    "intermediate revoked beside a clean list for the signer": lambda: _issuer_revoked(AFTER, _KEY, crl()),
    "clean list first, then one that revokes": lambda: _lists(crl(), crl(_entry(AFTER, _KEY), issued=_LATER)),
    "list that revokes first, then an older clean one": lambda: _lists(
        crl(_entry(AFTER, _KEY), issued=_LATER), crl()
    ),
    "older list that already revokes": lambda: _revoked(BEFORE, _KEY, issued=STAMPED - DAY),
    "older list that already revokes: superseded": lambda: _revoked(BEFORE, _REPLACED, issued=STAMPED - DAY),
    "older list that already revokes without a reason": lambda: _revoked(BEFORE, None, issued=STAMPED - DAY),
    "revoked among many": lambda: _lists(
        crl(*(Revoked(serial, BEFORE, _REPLACED) for serial in range(1, 200)), _entry(AFTER, _KEY))
    ),
    "listed twice, the second time for key compromise": lambda: _listed(
        _entry(AFTER, _REPLACED), _entry(AFTER, _KEY)
    ),
    # RFC 5280, section 5.3.2: since when a certificate is to be considered invalid, whatever the reason.
    "signer revoked after genTime: superseded, and invalid since before": lambda: _listed(
        _entry(AFTER, _REPLACED, pki.invalid_since(BEFORE))
    ),
    "signer revoked after genTime under an unknown critical condition": lambda: _listed(
        _entry(AFTER, _REPLACED, pki.UNKNOWN_CRITICAL)
    ),
    "delta list that revokes the signer": lambda: _revoked(AFTER, _KEY, extensions=(pki.DELTA,)),
    "list of some reasons that revokes the signer": lambda: _covering(pki.SOME_REASONS),
    "list of users' certificates that revokes the signer": lambda: _covering(pki.USER_CERTIFICATES),
    # Without a certificateIssuer an entry is of the list's own issuer (RFC 5280, section 5.3.3).
    "indirect list that revokes the signer": lambda: _covering(pki.INDIRECT),
    "list with a wrong signature": lambda: _lists(der.flipped(crl())),
    "list of the issuer's name and another key": lambda: _lists(crl(signed_by=key("ecdsa-p256", "impostor"))),
    "list with a wrong signature beside a good one": lambda: _lists(crl(), der.flipped(crl())),
    "list signed with SHA-1": lambda: _lists(crl(scheme=Scheme("ecdsa", "sha1"))),
    "list cut off": lambda: _lists(crl()[:-1]),
    "list with a trailing byte": lambda: _lists(crl() + b"\x00"),
    "list that is a certificate": lambda: _lists(house().root.der),
    "list empty": lambda: _lists(b""),
}


def _clean(*extensions: bytes, **knobs: Any) -> Made:
    return _lists(crl(extensions=extensions, **knobs))


KEEPS: Cases = {
    **{
        f"valid: signer revoked after genTime: {reason}": partial(_revoked, AFTER, reason)
        for reason in HARMLESS
    },
    "valid: signer revoked a second after genTime: superseded": lambda: _revoked(STAMPED + SECOND, _REPLACED),
    "valid: intermediate revoked after genTime: superseded": lambda: _issuer_revoked(AFTER, _REPLACED),
    "valid: clean list": _clean,
    "valid: clean lists for the whole chain": lambda: _lists(crl(), crl(issuer=house().root)),
    "valid: clean list that has run out": lambda: _clean(next_update=_LATER),
    "valid: list older than genTime": lambda: _clean(issued=STAMPED - DAY),
    "valid: list of another issuer": lambda: _clean(issuer=house("B").intermediate),
    "valid: list of another issuer that has the serial number": lambda: _revoked(
        BEFORE, _KEY, issuer=house("B").intermediate
    ),
    "valid: list of the root that has the signer's serial number": lambda: _revoked(
        BEFORE, _KEY, issuer=house().root
    ),
    "valid: another certificate revoked": lambda: _listed(Revoked(house().signer.number + 1, BEFORE, _KEY)),
    "valid: clean list beside a serial number shared by two issuers": _sharing,
    "valid: clean delta list": lambda: _clean(pki.DELTA),
    "valid: clean list of users' certificates": lambda: _clean(issuing_point(pki.USER_CERTIFICATES)),
    "valid: clean list of authorities' certificates": lambda: _clean(
        issuing_point(pki.AUTHORITY_CERTIFICATES)
    ),
    "valid: clean list of some reasons": lambda: _clean(issuing_point(pki.SOME_REASONS)),
    "valid: indirect list with the serial number of another issuer's": lambda: _lists(
        _indirect(house("B").intermediate)
    ),
    "valid: clean list with an unknown critical extension": lambda: _clean(pki.UNKNOWN_CRITICAL),
    "valid: signer revoked after genTime: superseded, and invalid since after": lambda: _listed(
        _entry(AFTER, _REPLACED, pki.invalid_since(AFTER))
    ),
}
