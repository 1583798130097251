"""Checks 11 to 13: purpose, chain, authority."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.forge import der
from tests.forge.case import Cases, by, recipe, refused, signer
from tests.forge.keys import Scheme, key
from tests.forge.pki import (
    ANY_PURPOSE,
    CODE_SIGNING,
    OCSP_SIGNING,
    SERVER_AUTH,
    TIME_STAMPING,
    UNKNOWN_CRITICAL,
    Cert,
    alternative_name,
    authority,
    directory,
    dns,
    house,
    name,
    name_constraints,
    root,
    stamper,
)
from tests.forge.token import POLICY, STAMPED

SECOND = timedelta(seconds=1)


def _purpose(**knobs: object) -> object:
    return refused("purpose", by(signer(**knobs)))


PURPOSE: Cases = {
    "eku missing": lambda: _purpose(purposes=None),
    "eku not critical": lambda: _purpose(purposes_critical=False),
    "eku code signing": lambda: _purpose(purposes=(CODE_SIGNING,)),
    "eku any purpose": lambda: _purpose(purposes=(ANY_PURPOSE,)),
    "eku time stamping and any purpose": lambda: _purpose(purposes=(TIME_STAMPING, ANY_PURPOSE)),
    "eku time stamping and code signing": lambda: _purpose(purposes=(TIME_STAMPING, CODE_SIGNING)),
    "eku server authentication and time stamping": lambda: _purpose(purposes=(SERVER_AUTH, TIME_STAMPING)),
    "eku time stamping and an unknown purpose": lambda: _purpose(
        purposes=(TIME_STAMPING, "1.3.6.1.4.1.99999.3")
    ),
    "eku OCSP signing": lambda: _purpose(purposes=(OCSP_SIGNING,)),
    "signer without extensions": lambda: _purpose(purposes=None, usages=None, identifiers=False),
    "signer certificate of version 1": lambda: _purpose(version=1),
    "signer is an authority": lambda: _purpose(ca=True),
    "signer is an authority that signs certificates": lambda: _purpose(
        ca=True, usages=("digital_signature", "certificate_signing")
    ),
    "key usage for certificates": lambda: _purpose(usages=("certificate_signing",)),
    "key usage for signatures and certificates": lambda: _purpose(
        usages=("digital_signature", "certificate_signing")
    ),
    "key usage for revocation lists": lambda: _purpose(usages=("digital_signature", "crl_signing")),
    "key usage for key encipherment": lambda: _purpose(usages=("digital_signature", "key_encipherment")),
    "key usage for key agreement": lambda: _purpose(usages=("key_agreement",)),
    "key usage for data encipherment": lambda: _purpose(usages=("non_repudiation", "data_encipherment")),
    "key usage for nothing": lambda: _purpose(usages=()),
}


def _leads(
    *below: tuple[str, dict[str, object]], top: dict[str, object] | None = None, **last: object
) -> object:
    """Refuse a chain: a root, authorities below it, and a signer, each with its knobs."""
    first = issuer = root("Forge Root of a chain", "ecdsa-p256", **(top or {}))
    for common, knobs in below:
        issuer = authority(common, issuer, **knobs)
    token = by(stamper("Forge Stamper of a chain", issuer).but(**last))
    return refused("chain", token, roots=(first.der,))


def _middle(**knobs: object) -> object:
    return _leads(("Forge Issuing of a chain", knobs))


def _embedding(*extra: bytes, roots: tuple[bytes, ...] | None = None) -> object:
    mine = house()
    token = recipe(certificates=(mine.signer.der, mine.intermediate.der, *extra))
    return refused("chain", token, roots=(mine.root.der,) if roots is None else roots)


def _rogue() -> object:
    """An attacker's whole chain under the names of the honest one, with its root embedded."""
    top = root("Forge Root A", key=key("rsa-2048", "rogue"))
    middle = authority("Forge Issuing A", top, key=key("ecdsa-p256", "rogue"))
    last = stamper("Forge Stamper A", middle, key=key("rsa-2048", "rogue signer"))
    token = by(last, certificates=(last.der, middle.der, top.der))
    return refused("chain", token)


def _loop() -> object:
    """Two authorities that certify each other, and nobody else does."""
    first, second = (Cert(n, key("ecdsa-p256", n), ca=True, usages=("certificate_signing",)) for n in "AB")
    one, two = first.but(issuer=second), second.but(issuer=first)
    last = stamper("Forge Stamper in a loop", one)
    return refused("chain", by(last, certificates=(last.der, one.der, two.der)))


def _crowd() -> object:
    """Many authorities of one name and key that certify each other: paths without end."""
    common, shared = "Forge Crowd", key("ecdsa-p256", "crowd")
    first = Cert(common, shared, ca=True, usages=("certificate_signing",), subject_name=name(common))
    crowd = [first.but(serial=1000 + number, issuer_name=name(common)) for number in range(60)]
    last = stamper("Forge Stamper in a crowd", first)
    return refused("chain", by(last, certificates=(last.der, *(one.der for one in crowd))))


def _renamed(certificate: bytes, times: int = -1) -> bytes:
    """Return a certificate with one letter changed in its names: the issuer's alone, or both."""
    return certificate.replace(b"Forge", b"Forgf", times)


LATER, EARLIER = STAMPED + SECOND, STAMPED - SECOND

CHAIN: Cases = {
    "another root pinned": lambda: refused("chain", recipe(), roots=(house("B").root.der,)),
    "no root pinned": lambda: refused("chain", recipe(), roots=()),
    "a root of the same name and another key pinned": lambda: refused(
        "chain", recipe(), roots=(root("Forge Root A", key=key("rsa-2048", "impostor")).der,)
    ),
    "the signer's sibling pinned": lambda: refused(
        "chain", recipe(), roots=(stamper("Forge Sibling", house().intermediate).der,)
    ),
    "intermediate missing": lambda: refused("chain", recipe(certificates=(house().signer.der,))),
    "intermediate of another authority": lambda: refused(
        "chain", recipe(certificates=(house().signer.der, house("B").intermediate.der))
    ),
    "intermediate of the same name and another key": lambda: refused(
        "chain",
        recipe(certificates=(house().signer.der, house().intermediate.but(key=key("ecdsa-p256", "x")).der)),
    ),
    "rogue chain of the same names": _rogue,
    "embedded self-signed root taken as anchor": lambda: refused(
        "chain",
        by(
            house("C").signer,
            certificates=tuple(c.der for c in (house("C").signer, house("C").intermediate, house("C").root)),
        ),
    ),
    "archived self-signed root taken as anchor": lambda: refused(
        "chain", by(house("C").signer), untrusted=(house("C").root.der,)
    ),
    "self-signed signer": lambda: refused("chain", by(stamper("Forge Alone", None))),
    "self-signed signer with the root's name": lambda: refused(
        "chain", by(stamper("Forge Root A", None, key=key("rsa-2048", "alone")))
    ),
    "authorities that certify each other": _loop,
    "sixty authorities that certify each other": _crowd,
    "signer's certificate with a wrong signature": lambda: refused("chain", by(signer(damaged=True))),
    "signer's certificate signed by another key": lambda: refused(
        "chain", by(signer(signed_by=key("ecdsa-p256", "x")))
    ),
    "signer's certificate names another issuer": lambda: refused(
        "chain", by(signer(issuer_name=name("Nobody")))
    ),
    "intermediate with a wrong signature": lambda: _middle(damaged=True),
    "embedded bystander with a wrong signature": lambda: _embedding(
        stamper("Bystander", house().intermediate, damaged=True).der
    ),
    "embedded bystander authority with a wrong signature": lambda: _embedding(
        authority("Bystander authority", house().root, damaged=True).der
    ),
    "embedded copy of the pinned certificate with another name": lambda: refused(
        "chain",
        recipe(certificates=(house().signer.der, _renamed(house().intermediate.der))),
        roots=(house().intermediate.der,),
    ),
    "embedded copy of the root with another issuer": lambda: _embedding(_renamed(house().root.der, times=1)),
    "signer expired at genTime": lambda: refused("chain", by(signer(dies=EARLIER))),
    "signer not yet valid at genTime": lambda: refused("chain", by(signer(born=LATER))),
    "signer valid now and not at genTime": lambda: refused(
        "chain", by(signer(born=datetime(2025, 1, 1, tzinfo=UTC)))
    ),
    "signer's validity ends before it begins": lambda: refused(
        "chain", by(signer(born=datetime(2024, 6, 1, tzinfo=UTC), dies=datetime(2024, 1, 1, tzinfo=UTC)))
    ),
    "intermediate expired at genTime": lambda: _middle(dies=EARLIER),
    "intermediate not yet valid at genTime": lambda: _middle(born=LATER),
    "root expired at genTime": lambda: _leads(("Forge I", {}), top={"dies": EARLIER}),
    "root not yet valid at genTime": lambda: _leads(("Forge I", {}), top={"born": LATER}),
    "pinned intermediate expired at genTime": lambda: refused(
        "chain", by(stamper("S", _expired())), roots=(_expired().der,)
    ),
    "intermediate is no authority": lambda: _middle(ca=False),
    "intermediate without basic constraints": lambda: _middle(ca=None),
    "intermediate is a signer": lambda: _middle(
        ca=None, usages=("digital_signature",), purposes=(TIME_STAMPING,)
    ),
    "intermediate may not sign certificates": lambda: _middle(usages=("digital_signature", "crl_signing")),
    "intermediate of version 1": lambda: _middle(version=1),
    "root is no authority": lambda: _leads(("Forge I", {}), top={"ca": False}),
    "path length of the root exceeded": lambda: _leads(("Forge I", {}), top={"path_length": 0}),
    "path length of an intermediate exceeded": lambda: _leads(
        ("Forge I", {"path_length": 0}), ("Forge J", {})
    ),
    "path length exceeded two steps on": lambda: _leads(
        ("Forge I", {"path_length": 1}), ("Forge J", {}), ("Forge K", {})
    ),
    "name outside the permitted ones": lambda: _middle(
        extensions=(name_constraints(permitted=(directory(_organization("Another")),)),)
    ),
    "name among the excluded ones": lambda: _middle(
        extensions=(name_constraints(excluded=(directory(_organization("Forge")),)),)
    ),
    # RFC 5280, section 7.1: letters and string types make no difference to a name.
    "name among the excluded ones in other letters": lambda: _middle(
        extensions=(name_constraints(excluded=(directory(_organization("FORGE")),)),)
    ),
    "name among the excluded ones in another string type": lambda: _middle(
        extensions=(name_constraints(excluded=(directory(_organization("Forge", 0x13)),)),)
    ),
    "alternative name outside the permitted ones": lambda: _leads(
        ("Forge I", {"extensions": (name_constraints(permitted=(dns("example.org"),)),)}),
        extensions=(alternative_name(dns("stamp.example.net")),),
    ),
    "alternative name among the excluded ones": lambda: _leads(
        ("Forge I", {"extensions": (name_constraints(excluded=(dns("example.org"),)),)}),
        extensions=(alternative_name(dns("stamp.example.org")),),
    ),
    "intermediate with an unknown critical extension": lambda: _middle(extensions=(UNKNOWN_CRITICAL,)),
    "signer with an unknown critical extension": lambda: refused(
        "chain", by(signer(extensions=(UNKNOWN_CRITICAL,)))
    ),
    "intermediate with an RSA key of 1024 bits": lambda: _leads(
        ("Forge weak", {"key": key("rsa-1024", "weak intermediate")})
    ),
    "root with an RSA key of 1024 bits": lambda: _leads(
        ("Forge I", {}), top={"key": key("rsa-1024", "weak root")}
    ),
    "intermediate signed with SHA-1": lambda: _middle(scheme=Scheme("ecdsa", "sha1")),
    "intermediate signed with RSA and MD5": lambda: _leads(
        ("Forge I", {"scheme": Scheme("rsa", "md5")}), top={"key": key("rsa-2048", "md5 root")}
    ),
    "intermediate signed with PSS and SHA-1": lambda: _leads(
        ("Forge I", {"scheme": Scheme("pss", "sha1")}), top={"key": key("rsa-2048", "pss root")}
    ),
    "signer's certificate signed with SHA-1": lambda: refused(
        "chain", by(signer(scheme=Scheme("ecdsa", "sha1")))
    ),
    "intermediate with a DSA key": lambda: _leads(("Forge dsa", {"key": key("dsa", "weak intermediate")})),
    "intermediate with a curve of 224 bits": lambda: _leads(
        ("Forge p224", {"key": key("ecdsa-p224", "weak intermediate")})
    ),
}


def _organization(organization: str, tag: int = 0x0C) -> bytes:
    """Return a name of an organization alone, as the base of a subtree."""
    return der.seq(der.set_of(der.seq(der.oid("2.5.4.10"), der.tlv(tag, organization.encode()))))


def _expired() -> Cert:
    return authority("Forge pinned and expired", house().root, dies=EARLIER)


def _tsa(general_name: bytes, **knobs: object) -> object:
    return refused("authority", by(signer(**knobs), tsa=general_name))


AUTHORITY: Cases = {
    "tsa names another authority": lambda: _tsa(directory(house("B").signer.subject)),
    "tsa names the signer's issuer": lambda: _tsa(directory(house().intermediate.subject)),
    "tsa names the root": lambda: _tsa(directory(house().root.subject)),
    "tsa names the signer and more": lambda: _tsa(
        directory(der.tlv(0x30, der.body(house().signer.subject), der.body(name("x"))))
    ),
    "tsa an empty name": lambda: _tsa(directory(der.seq())),
    "tsa a host that the signer is not": lambda: _tsa(dns("stamp.example.org")),
    "tsa another host than the signer's": lambda: _tsa(
        dns("stamp.example.org"), extensions=(alternative_name(dns("stamp.example.net")),)
    ),
    "tsa an address that the signer has not": lambda: _tsa(der.tlv(0x86, b"https://stamp.example.org/")),
    "policy not on the list": lambda: refused("authority", recipe(), policies=("1.2.3", "1.2.4")),
    "policy longer than one on the list": lambda: refused(
        "authority", recipe(), policies=(POLICY.rpartition(".")[0],)
    ),
    "policy the beginning of one on the list": lambda: refused(
        "authority", recipe(), policies=(POLICY + ".1",)
    ),
}
