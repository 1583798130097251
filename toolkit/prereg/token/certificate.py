"""A certificate as the checks need it: names as bytes, extensions by name, the key as it stands."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from asn1crypto import x509

from .der import Node, check_der, parse, shape
from .verdict import Refused

_CERTIFICATE = shape("signed SEQUENCE, algorithm SEQUENCE, signature BITS")
_SIGNED = shape(
    "version? [0], serial INTEGER, algorithm SEQUENCE, issuer SEQUENCE, validity SEQUENCE, "
    "subject SEQUENCE, key SEQUENCE, issuer_id? [1]p, subject_id? [2]p, extensions? [3]"
)
_EXTENSION = shape("id OID, critical? BOOLEAN, value OCTETS")
# Their object identifiers, 2.5.29.30 and 2.5.29.17, as DER has them.
_NAME_CONSTRAINTS, _ALTERNATIVE_NAMES = b"\x55\x1d\x1e", b"\x55\x1d\x11"
_DIRECTORY = 0xA4
_KEY = shape("algorithm SEQUENCE, key BITS")


@dataclass(frozen=True)
class Certificate:
    """A certificate."""

    der: bytes  # its bytes; two are equal when these are
    sha256: str  # its fingerprint, hexadecimal
    subject: bytes  # the subject, DER
    issuer: bytes  # the issuer, DER
    serial: int  # the serial number
    name: str  # the subject as people read it
    issuer_name: str  # the issuer as people read it
    begins: datetime  # first moment of its validity, UTC
    ends: datetime  # last moment of its validity, UTC
    key: bytes  # the SubjectPublicKeyInfo, DER
    key_sha256: str  # its SHA-256, hexadecimal
    signed_part: bytes  # the bytes that its issuer signed
    signature_algorithm: Node  # the AlgorithmIdentifier of that signature
    signature: bytes  # that signature
    key_identifier: bytes | None  # the subject key identifier, or None
    is_ca: bool  # whether it says that it may issue certificates
    path_length: int | None  # how many further authorities may stand below it, or None
    key_usage: frozenset[str] | None  # what its key may be used for, or None where it does not say
    purposes: tuple[str, ...] | None  # its extended key usage, or None where it does not say
    critical: frozenset[str]  # the extensions that it calls critical
    name_constraints: Node | None  # its NameConstraints, or None
    alternative_names: tuple[Node, ...]  # its subject's alternative names, a GeneralName each
    list_places: frozenset[str]  # addresses of the revocation lists that it says cover it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Certificate) and other.der == self.der

    def __hash__(self) -> int:
        return hash(self.der)

    @property
    def is_self_issued(self) -> bool:
        """Whether subject and issuer are one name."""
        return self.subject == self.issuer

    def is_valid_at(self, moment: datetime) -> bool:
        """Whether a moment lies within its validity."""
        return self.begins <= moment <= self.ends


@lru_cache(maxsize=256)  # a registration's tokens are judged with the same certificates
def read_certificate(der: bytes) -> Certificate:
    """Read a certificate completely, so that nothing in it comes as a surprise later."""
    check_der(der)
    try:
        return _read(der)
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, AttributeError) as error:
        raise Refused(f"damaged (a certificate cannot be read: {first_line(error)})") from None


def _read(der: bytes) -> Certificate:
    outer = parse(der).fields(_CERTIFICATE)
    inner = outer["signed"].fields(_SIGNED)
    parsed = x509.Certificate.load(der, strict=True)
    name = readable_name(parsed.subject)
    if outer["algorithm"].der != inner["algorithm"].der:
        raise Refused(f"certificate {name} names two signature algorithms")
    inner["key"].fields(_KEY)
    extensions = _extensions(inner.get("extensions"), name)
    basic, usage = parsed.basic_constraints_value, parsed.key_usage_value
    purposes, identifier = parsed.extended_key_usage_value, parsed.key_identifier_value
    return Certificate(
        der=der,
        sha256=hashlib.sha256(der).hexdigest(),
        subject=inner["subject"].der,
        issuer=inner["issuer"].der,
        serial=int.from_bytes(inner["serial"].content, signed=True),
        name=name,
        issuer_name=readable_name(parsed.issuer),
        begins=parsed.not_valid_before,
        ends=parsed.not_valid_after,
        key=inner["key"].der,
        key_sha256=hashlib.sha256(inner["key"].der).hexdigest(),
        signed_part=outer["signed"].der,
        signature_algorithm=outer["algorithm"],
        signature=outer["signature"].bits,
        key_identifier=None if identifier is None else bytes(identifier.native),
        is_ca=basic is not None and bool(basic["ca"].native),
        path_length=None if basic is None else basic["path_len_constraint"].native,
        key_usage=None if usage is None else frozenset(usage.native),
        purposes=None if purposes is None else tuple(purposes.native),
        critical=frozenset(parsed.critical_extensions),
        name_constraints=extensions.get(_NAME_CONSTRAINTS),
        alternative_names=extensions[_ALTERNATIVE_NAMES].children if _ALTERNATIVE_NAMES in extensions else (),
        list_places=_list_places(parsed.crl_distribution_points_value),
    )


def _extensions(extensions: Node | None, name: str) -> dict[bytes, Node]:
    """Return the values of extensions by identifier."""
    values: dict[bytes, Node] = {}
    for extension in extensions.only_child().children if extensions else ():
        fields = extension.fields(_EXTENSION)
        identifier = fields["id"].content
        if identifier in values:
            raise Refused(f"damaged (certificate {name} has an extension twice)")
        value = fields["value"].content
        if identifier in {_NAME_CONSTRAINTS, _ALTERNATIVE_NAMES}:
            check_der(value)
        values[identifier] = parse(value)
    return values


def _list_places(points: Any) -> frozenset[str]:
    names = (point["distribution_point"] for point in points or ())
    return frozenset(str(name.native) for full in names if full.name == "full_name" for name in full.chosen)


def directory_name(name: Node) -> bytes | None:
    """Return the distinguished name of a GeneralName, DER; None for a name of another kind."""
    return name.only_child().der if name.tag == _DIRECTORY else None


def same_name(one: bytes, other: bytes) -> bool:
    """Whether two distinguished names are one, whatever their letters and string types (RFC 5280, 7.1)."""
    return one == other or relative_names(one) == relative_names(other)


@lru_cache(maxsize=1024)
def relative_names(name: bytes) -> tuple[str, ...]:
    """Return the parts of a distinguished name, DER, in the form in which they are compared."""
    return tuple(relative.hashable for relative in x509.Name.load(name).chosen)


def readable_name(name: Any) -> str:
    """Return a distinguished name on one line, as in `CN=…, O=…`."""
    short = {"common_name": "CN", "organization_name": "O", "organizational_unit_name": "OU"}
    short |= {"country_name": "C", "locality_name": "L", "state_or_province_name": "ST"}
    parts = [
        f"{short.get(part['type'].native, part['type'].native)}={part['value'].native}"
        for relative in name.chosen
        for part in relative
    ]
    return ", ".join(parts)


def first_line(error: BaseException) -> str:
    """Return what an error says, on one short line."""
    return " ".join(str(error).split())[:120] or type(error).__name__
