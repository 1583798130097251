"""Verifying a token: fifteen checks in order; it stops at the first that does not hold.

Sources: RFC 3161 (time-stamp protocol), RFC 5652 (CMS), RFC 5035 and 5816 (signing certificate), RFC 5280
(certificates, revocation lists), ITU-T X.690 (DER).
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from . import binding
from .certificate import Certificate, directory_name, first_line, read_certificate, same_name
from .der import ISSUER_AND_SERIAL, SEQUENCE, Node, check_der, check_form
from .path import build_path, check_unused
from .signature import check_signature
from .timestamp import Timestamp, granted_token, read_timestamp
from .verdict import INCOMPLETE, NOT_CHECKED, NOT_VERIFIED, VERIFIED, Refused, TokenVerdict, Verdict

_CHECKS = (
    "form encoding status structure imprint request signer certificate_id signed_attributes signature "
    "purpose chain authority time revocation"
)
STEPS = tuple(enumerate(_CHECKS.split(), 1))
"""The checks, by number and name."""

LOOSE_ACCURACY_SECONDS = 60
_SIGNING = frozenset({"digital_signature", "non_repudiation"})
# What parsers of hostile bytes raise; anything else is a defect of this program and is shown as one.
_DAMAGE = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError)


@dataclass(frozen=True)
class Material:
    """What a token is judged by."""

    document: bytes | None = None  # the document's bytes
    digest: tuple[str, bytes] | None = None  # algorithm and hash, where the document itself is not at hand
    roots: tuple[bytes, ...] = ()  # pinned certificates, DER: the only ones that are trusted
    untrusted: tuple[bytes, ...] = ()  # certificates that may stand between, DER
    signer: bytes | None = None  # the signing certificate, DER, where it was archived apart from the token
    request: bytes | None = None  # the request that the token answers, DER
    crls: tuple[bytes, ...] = ()  # archived revocation lists, DER
    policies: tuple[str, ...] = ()  # the policies accepted; any where none is named


@dataclass
class _Record:
    """How far an examination came, and what it learned."""

    step: int = 0
    facts: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def verdict(self, verdict: Verdict, message: str) -> TokenVerdict:
        """Return what the examination ends with."""
        step, check = (None, None) if verdict == VERIFIED else STEPS[self.step - 1]
        return TokenVerdict(verdict, check, step, message, **self.facts, notes=tuple(self.notes))


def verify_token(raw: bytes, material: Material, at: datetime) -> TokenVerdict:
    """Verify a token."""
    record = _Record()
    try:
        _examine(raw, material, at, record)
        return record.verdict(VERIFIED, "all checks hold")
    except Refused as refused:
        return record.verdict(INCOMPLETE if refused.is_incomplete else NOT_VERIFIED, refused.message)
    except _DAMAGE as error:
        return record.verdict(NOT_VERIFIED, f"damaged ({first_line(error)})")


def _examine(raw: bytes, material: Material, at: datetime, record: _Record) -> None:
    record.step = 1
    check_form(raw)

    record.step = 2
    check_der(raw)

    record.step = 3
    token, notes = granted_token(raw)
    record.notes += notes

    record.step = 4
    timestamp = read_timestamp(token)
    record.notes += timestamp.notes
    record.facts |= {
        "gen_time": timestamp.gen_time,
        "accuracy_seconds": None if timestamp.accuracy is None else timestamp.accuracy.total_seconds(),
        "serial": str(timestamp.serial),
        "policy": timestamp.policy,
        "imprint_algorithm": timestamp.imprint_algorithm,
        "imprint": timestamp.imprint.hex(),
    }

    record.step = 5
    binding.check_imprint(timestamp.imprint_algorithm, timestamp.imprint, material.document, material.digest)

    record.step = 6
    if material.request is not None:
        binding.check_request(material.request, timestamp)

    record.step = 7
    embedded = _distinct(timestamp.certificates)
    signer = _signer(timestamp, embedded, material)
    record.facts["signer"] = signer.name

    record.step = 8
    record.notes += binding.check_certificate_id(timestamp, signer)

    record.step = 9
    binding.check_attributes(timestamp)

    record.step = 10
    scheme, digest = timestamp.signature_algorithm, timestamp.digest_algorithm
    record.facts["signature_algorithm"] = check_signature(
        signer.key, scheme, timestamp.signature, binding.signed_bytes(timestamp), digest
    )

    record.step = 11
    _check_purpose(signer)

    record.step = 12
    path, path_notes = _path(signer, embedded, material, timestamp.gen_time)
    record.notes += path_notes
    binding.check_further_ids(timestamp, path)
    record.facts["root"], record.facts["root_sha256"] = path[-1].name, path[-1].sha256
    record.facts["key_sha256"] = tuple(certificate.key_sha256 for certificate in path)

    record.step = 13
    _check_authority(timestamp, signer, material.policies)

    record.step = 14
    record.notes += _check_time(timestamp, at)

    record.step = 15
    record.facts["revocation"] = NOT_CHECKED
    if material.crls:
        from .revocation import check_revocation

        known, further = check_revocation(path, material.crls, timestamp.gen_time, at)
        record.facts["revocation"] = known
        record.notes += further


def _distinct(certificates: tuple[bytes, ...]) -> tuple[Certificate, ...]:
    return tuple(read_certificate(der) for der in dict.fromkeys(certificates))


def _signer(timestamp: Timestamp, embedded: tuple[Certificate, ...], material: Material) -> Certificate:
    """Find the one certificate that the token says signed it, embedded or archived."""
    archived = _distinct(((material.signer,) if material.signer else ()) + material.untrusted)
    candidates = dict.fromkeys((*embedded, *archived))
    matching = [certificate for certificate in candidates if _is_meant(timestamp.signer_id, certificate)]
    if not matching:
        raise Refused("signer certificate missing: it is neither embedded nor given", is_incomplete=True)
    if len(matching) > 1:
        raise Refused(f"{len(matching)} different certificates answer to the signer's name")
    if material.signer is not None and matching[0].der != material.signer:
        raise Refused(f"it was signed by {matching[0].name}, not by the certificate given as signer")
    return matching[0]


def _is_meant(signer_id: Node, certificate: Certificate) -> bool:
    if signer_id.tag == SEQUENCE:
        stated = signer_id.fields(ISSUER_AND_SERIAL)
        serial = int.from_bytes(stated["serial"].content, signed=True)
        return (stated["issuer"].der, serial) == (certificate.issuer, certificate.serial)
    return signer_id.content == certificate.key_identifier


def _check_purpose(signer: Certificate) -> None:
    """RFC 3161, section 2.3: a key for timestamping and nothing else, and its certificate says so firmly."""
    problems = (
        (signer.purposes != ("time_stamping",), "its extended key usage is not timestamping alone"),
        ("extended_key_usage" not in signer.critical, "its extended key usage is not critical"),
        (signer.is_ca, "it is a certificate authority"),
        (
            signer.key_usage is not None and not (signer.key_usage and signer.key_usage <= _SIGNING),
            "its key usage is not signing alone",
        ),
    )
    for wrong, problem in problems:
        if wrong:
            raise Refused(f"not a timestamping certificate: {problem} ({signer.name})")


def _path(
    signer: Certificate, embedded: tuple[Certificate, ...], material: Material, moment: datetime
) -> tuple[tuple[Certificate, ...], list[str]]:
    anchors = _distinct(material.roots)
    others = tuple(dict.fromkeys((*embedded, *_distinct(material.untrusted))))
    path = build_path(signer, others, anchors, moment)
    unused = [certificate for certificate in embedded if certificate not in (*path, *anchors)]
    notes = check_unused(unused, (*path, *others, *anchors))
    if notes and signer not in embedded:
        # RFC 3161, section 2.4.1: who embeds certificates embeds the signer's. This may have been it.
        raise Refused("it embeds a certificate that nobody can vouch for in place of its signer's")
    return path, notes


def _check_authority(timestamp: Timestamp, signer: Certificate, policies: tuple[str, ...]) -> None:
    if timestamp.tsa is not None:
        own = [name.der for name in signer.alternative_names]
        stated = directory_name(timestamp.tsa)
        is_subject = stated is not None and same_name(stated, signer.subject)
        if not is_subject and timestamp.tsa.der not in own:
            raise Refused(f"the token names another authority than its signer, {signer.name}")
    if policies and timestamp.policy not in policies:
        raise Refused(f"policy {timestamp.policy} is none of {', '.join(policies)}")


def _check_time(timestamp: Timestamp, at: datetime) -> list[str]:
    if timestamp.gen_time > at:
        raise Refused(f"time in the future: {timestamp.gen_time:%Y-%m-%dT%H:%M:%SZ}")
    if timestamp.accuracy is None:
        return ["the authority does not state how accurate its clock is"]
    seconds = timestamp.accuracy.total_seconds()
    return [f"its clock may be {seconds:g} s off"] if seconds > LOOSE_ACCURACY_SECONDS else []
