"""What archived revocation lists say of a chain (RFC 5280, section 5; RFC 3161, section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from .der import parse, shape
from .signature import check_signature
from .verdict import NOT_CHECKED, Refused

if TYPE_CHECKING:
    from .certificate import Certificate

_UNREADABLE = (
    ValueError,
    TypeError,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)
TIME = "%Y-%m-%dT%H:%M:%SZ"

_HARMLESS = frozenset(
    getattr(x509.ReasonFlags, name)
    for name in ("superseded", "cessation_of_operation", "affiliation_changed", "privilege_withdrawn")
)
_LIST = shape("signed SEQUENCE, algorithm SEQUENCE, signature BITS")
_UNDERSTOOD = (
    x509.CRLNumber,
    x509.AuthorityKeyIdentifier,
    x509.IssuingDistributionPoint,
    x509.DeltaCRLIndicator,
)


def check_revocation(
    path: Sequence[Certificate], lists: Sequence[bytes], gen_time: datetime, now: datetime
) -> tuple[str, list[str]]:
    """Look a chain up in revocation lists."""
    try:
        return _look_up(path, lists, gen_time, now)
    except _UNREADABLE as error:
        raise Refused(f"a revocation list cannot be read ({error})") from None


def _look_up(
    path: Sequence[Certificate], lists: Sequence[bytes], gen_time: datetime, now: datetime
) -> tuple[str, list[str]]:
    parsed = [x509.load_der_x509_crl(raw) for raw in lists]
    lookup = _Lookup(gen_time, now)
    known = NOT_CHECKED
    for certificate, issuer in pairwise(path):
        issued = [crl for crl in parsed if crl.issuer.public_bytes() == certificate.issuer]
        newest = max((lookup.vouching(crl, certificate, issuer) for crl in issued), default="")
        if certificate is path[0]:
            good = f"not revoked as of {newest}" if newest else NOT_CHECKED
            known = lookup.revoked.get(certificate.sha256) or good
        elif lists and not newest:
            lookup.notes.append(f"revocation of {certificate.name}: {NOT_CHECKED}")
    relevant = {certificate.issuer for certificate in path[:-1]}
    foreign = [
        f"a revocation list of {crl.issuer.rfc4514_string()}, which issued none of the chain, was not used"
        for crl in parsed
        if crl.issuer.public_bytes() not in relevant
    ]
    return known, lookup.notes + foreign


class _Lookup:
    def __init__(self, gen_time: datetime, now: datetime) -> None:
        self._gen_time = gen_time
        self._now = now
        self.notes: list[str] = []
        self.revoked: dict[str, str] = {}

    def vouching(
        self, crl: x509.CertificateRevocationList, certificate: Certificate, issuer: Certificate
    ) -> str:
        """Return the time of a list that is newer than the token and knows the certificate as good."""
        _check_list_signature(crl, issuer)
        scope = _scope(crl, certificate)
        obstacle = self._obstacle(crl, issuer, scope)
        if obstacle:
            self.notes.append(f"a revocation list of {issuer.name} {obstacle}: it was not used")
            return ""
        issued = f"{crl.last_update_utc:{TIME}}"
        entries = _entries(crl, certificate)
        for entry in entries:
            finding = _check_entry(entry, certificate, self._gen_time)
            self.notes.append(finding)
            self.revoked[certificate.sha256] = finding
        if scope == "partial" and not entries:
            self.notes.append(f"the revocation list of {issuer.name} from {issued} is not a complete one")
            return ""
        if crl.last_update_utc <= self._gen_time:
            self.notes.append(f"the revocation list of {issuer.name} from {issued} is older than the token")
            return ""
        return issued

    def _obstacle(self, crl: x509.CertificateRevocationList, issuer: Certificate, scope: str) -> str:
        if issuer.key_usage is not None and "crl_sign" not in issuer.key_usage:
            return "is none that it may sign"
        if crl.last_update_utc > self._now:
            return f"is from {crl.last_update_utc:{TIME}}, after now"
        return "covers other certificates" if scope == "foreign" else ""


def _check_list_signature(crl: x509.CertificateRevocationList, issuer: Certificate) -> None:
    try:
        fields = parse(crl.public_bytes(Encoding.DER)).fields(_LIST)
        check_signature(issuer.key, fields["algorithm"], fields["signature"].bits, crl.tbs_certlist_bytes)
    except Refused as refused:
        raise Refused(f"the revocation list of {issuer.name}: {refused.message}") from None


def _scope(crl: x509.CertificateRevocationList, certificate: Certificate) -> str:
    """Return `complete`, `partial` (it can revoke, not vouch) or `foreign`, for this certificate."""
    scope = "complete"
    for extension in crl.extensions:
        value: Any = extension.value
        if extension.critical and not isinstance(value, _UNDERSTOOD):
            return "foreign"
        if isinstance(value, x509.DeltaCRLIndicator):
            scope = "partial"
        if isinstance(value, x509.IssuingDistributionPoint):
            wrong_kind = value.only_contains_user_certs if certificate.is_ca else value.only_contains_ca_certs
            if value.only_contains_attribute_certs or wrong_kind:
                return "foreign"
            lists = {str(name.value) for name in value.full_name or ()}
            is_shard = bool(lists or value.relative_name) and lists.isdisjoint(certificate.list_places)
            if value.indirect_crl or value.only_some_reasons or is_shard:
                scope = "partial"
    return scope


def _entries(crl: x509.CertificateRevocationList, certificate: Certificate) -> list[x509.RevokedCertificate]:
    """Return every entry on a certificate; an issuer named in an indirect list holds for what follows."""
    if crl.get_revoked_certificate_by_serial_number(certificate.serial) is None:
        return []
    entries = []
    issuer = certificate.issuer
    for entry in crl:
        for extension in entry.extensions:
            if isinstance(extension.value, x509.CertificateIssuer):
                names = extension.value.get_values_for_type(x509.DirectoryName)
                issuer = names[0].public_bytes() if names else b""
        if entry.serial_number == certificate.serial and issuer == certificate.issuer:
            entries.append(entry)
    return entries


def _check_entry(entry: x509.RevokedCertificate, certificate: Certificate, gen_time: datetime) -> str:
    reason = None
    spoiled_from = entry.revocation_date_utc
    for extension in entry.extensions:
        match extension.value:
            case x509.CRLReason() as value:
                reason = value.reason
            case x509.InvalidityDate() as value:
                # From when on the key may have been in other hands (RFC 5280, section 5.3.2).
                spoiled_from = min(spoiled_from, value.invalidity_date_utc)
            case x509.CertificateIssuer():
                pass
            case _ if extension.critical:
                raise Refused(f"{certificate.name} is revoked under conditions that are not understood")
    day = f"{entry.revocation_date_utc:{TIME}}"
    stated = "no reason given" if reason is None else reason.value
    if reason is x509.ReasonFlags.remove_from_crl:
        return f"{certificate.name} was taken off the revocation list again"
    if reason not in _HARMLESS or spoiled_from <= gen_time:
        raise Refused(f"{certificate.name} was revoked ({stated}) on {day}")
    return f"{certificate.name} was revoked ({stated}) on {day}, after the token: the token stays valid"
