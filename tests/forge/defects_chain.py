"""Checks 11 to 13: purpose, chain, authority."""

from datetime import UTC, datetime, timedelta

from tests.forge import der, pki
from tests.forge.case import Cases, by, chain, embedding, given, middle, organization, recipe, signer
from tests.forge.keys import Scheme, key
from tests.forge.pki import (
    TIME_STAMPING,
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
    return by(signer(**knobs))


def _eku(*purposes: str) -> object:
    return _purpose(purposes=purposes)


BOTH = ("digital_signature", "certificate_signing")
PURPOSE: Cases = {
    "eku missing": lambda: _purpose(purposes=None),
    "eku not critical": lambda: _purpose(purposes_critical=False),
    "eku code signing": lambda: _eku(pki.CODE_SIGNING),
    "eku any purpose": lambda: _eku(pki.ANY_PURPOSE),
    "eku time stamping and any purpose": lambda: _eku(TIME_STAMPING, pki.ANY_PURPOSE),
    "eku time stamping and code signing": lambda: _eku(TIME_STAMPING, pki.CODE_SIGNING),
    "eku server authentication and time stamping": lambda: _eku(pki.SERVER_AUTH, TIME_STAMPING),
    "eku time stamping and an unknown purpose": lambda: _eku(TIME_STAMPING, "1.3.6.1.4.1.99999.3"),
    "eku OCSP signing": lambda: _eku(pki.OCSP_SIGNING),
    "signer without extensions": lambda: _purpose(purposes=None, usages=None, identifiers=False),
    "signer certificate of version 1": lambda: _purpose(version=1),
    "signer is an authority": lambda: _purpose(ca=True),
    "signer is an authority that signs certificates": lambda: _purpose(ca=True, usages=BOTH),
    "key usage for certificates": lambda: _purpose(usages=("certificate_signing",)),
    "key usage for signatures and certificates": lambda: _purpose(usages=BOTH),
    "key usage for revocation lists": lambda: _purpose(usages=("digital_signature", "crl_signing")),
    "key usage for key encipherment": lambda: _purpose(usages=("digital_signature", "key_encipherment")),
    "key usage for key agreement": lambda: _purpose(usages=("key_agreement",)),
    "key usage for data encipherment": lambda: _purpose(usages=("non_repudiation", "data_encipherment")),
    "key usage for nothing": lambda: _purpose(usages=()),
}


def _constrained(**bases: bytes) -> object:
    return middle(extensions=(name_constraints(**{kind: (base,) for kind, base in bases.items()}),))


def _embedding(*extra: bytes, roots: tuple[bytes, ...] | None = None) -> object:
    mine = house()
    token = embedding(mine.signer, mine.intermediate, *extra)
    return given(token, roots=(mine.root.der,) if roots is None else roots)


def _rogue() -> object:
    """An attacker's whole chain under the names of the honest one, with its root embedded."""
    top = root("Forge Root A", key=key("rsa-2048", "rogue"))
    middle = authority("Forge Issuing A", top, key=key("ecdsa-p256", "rogue"))
    last = stamper("Forge Stamper A", middle, key=key("rsa-2048", "rogue signer"))
    return by(last, certificates=(last.der, middle.der, top.der))


def _loop() -> object:
    """Two authorities that certify each other, and nobody else does."""
    first, second = (Cert(n, key("ecdsa-p256", n), ca=True, usages=("certificate_signing",)) for n in "AB")
    below_second, below_first = first.but(issuer=second), second.but(issuer=first)
    last = stamper("Forge Stamper in a loop", below_second)
    return by(last, certificates=(last.der, below_second.der, below_first.der))


def _crowd() -> object:
    """Many authorities of one name and key that certify each other: paths without end."""
    common, shared = "Forge Crowd", key("ecdsa-p256", "crowd")
    first = Cert(common, shared, ca=True, usages=("certificate_signing",), subject_name=name(common))
    crowd = [first.but(serial=1000 + number, issuer_name=name(common)) for number in range(60)]
    last = stamper("Forge Stamper in a crowd", first)
    return by(last, certificates=(last.der, *(member.der for member in crowd)))


def _renamed(certificate: bytes, times: int = -1) -> bytes:
    """Return a certificate with one letter changed in its names: the issuer's alone, or both."""
    return certificate.replace(b"Forge", b"Forgf", times)


LATER, EARLIER = STAMPED + SECOND, STAMPED - SECOND


def _expired() -> object:
    """A pinned intermediate that had expired."""
    pinned = authority("Forge pinned and expired", house().root, dies=EARLIER)
    return given(by(stamper("S", pinned)), roots=(pinned.der,))


CHAIN: Cases = {
    "another root pinned": lambda: given(recipe(), roots=(house("B").root.der,)),
    "no root pinned": lambda: given(recipe(), roots=()),
    "a root of the same name and another key pinned": lambda: given(
        recipe(), roots=(root("Forge Root A", key=key("rsa-2048", "impostor")).der,)
    ),
    "the signer's sibling pinned": lambda: given(
        recipe(), roots=(stamper("Forge Sibling", house().intermediate).der,)
    ),
    "intermediate missing": lambda: embedding(house().signer),
    "intermediate of another authority": lambda: embedding(house().signer, house("B").intermediate),
    "intermediate of the same name and another key": lambda: embedding(
        house().signer, house().intermediate.but(key=key("ecdsa-p256", "x"))
    ),
    "rogue chain of the same names": _rogue,
    "embedded self-signed root taken as anchor": lambda: by(
        house("C").signer,
        certificates=(house("C").signer.der, house("C").intermediate.der, house("C").root.der),
    ),
    "archived self-signed root taken as anchor": lambda: given(
        by(house("C").signer), untrusted=(house("C").root.der,)
    ),
    "self-signed signer": lambda: by(stamper("Forge Alone", None)),
    "self-signed signer with the root's name": lambda: by(
        stamper("Forge Root A", None, key=key("rsa-2048", "alone"))
    ),
    "authorities that certify each other": _loop,
    "sixty authorities that certify each other": _crowd,
    "signer's certificate with a wrong signature": lambda: by(signer(damaged=True)),
    "signer's certificate signed by another key": lambda: by(signer(signed_by=key("ecdsa-p256", "x"))),
    "signer's certificate names another issuer": lambda: by(signer(issuer_name=name("Nobody"))),
    "intermediate with a wrong signature": lambda: middle(damaged=True),
    "embedded bystander with a wrong signature": lambda: _embedding(
        stamper("Bystander", house().intermediate, damaged=True).der
    ),
    "embedded bystander authority with a wrong signature": lambda: _embedding(
        authority("Bystander authority", house().root, damaged=True).der
    ),
    "embedded copy of the pinned certificate with another name": lambda: given(
        embedding(house().signer, _renamed(house().intermediate.der)),
        roots=(house().intermediate.der,),
    ),
    "embedded copy of the root with another issuer": lambda: _embedding(_renamed(house().root.der, times=1)),
    "signer expired at genTime": lambda: by(signer(dies=EARLIER)),
    "signer not yet valid at genTime": lambda: by(signer(born=LATER)),
    "signer valid now and not at genTime": lambda: by(signer(born=datetime(2025, 1, 1, tzinfo=UTC))),
    "signer's validity ends before it begins": lambda: by(
        signer(born=datetime(2024, 6, 1, tzinfo=UTC), dies=datetime(2024, 1, 1, tzinfo=UTC))
    ),
    "intermediate expired at genTime": lambda: middle(dies=EARLIER),
    "intermediate not yet valid at genTime": lambda: middle(born=LATER),
    "root expired at genTime": lambda: middle({"dies": EARLIER}),
    "root not yet valid at genTime": lambda: middle({"born": LATER}),
    "pinned intermediate expired at genTime": _expired,
    "intermediate is no authority": lambda: middle(ca=False),
    "intermediate without basic constraints": lambda: middle(ca=None),
    "intermediate is a signer": lambda: middle(ca=None, usages=BOTH[:1], purposes=(TIME_STAMPING,)),
    "intermediate may not sign certificates": lambda: middle(usages=("digital_signature", "crl_signing")),
    "intermediate of version 1": lambda: middle(version=1),
    "root is no authority": lambda: middle({"ca": False}),
    "path length of the root exceeded": lambda: middle({"path_length": 0}),
    "path length of an intermediate exceeded": lambda: chain(
        ("Forge I", {"path_length": 0}), ("Forge J", {})
    ),
    "path length exceeded two steps on": lambda: chain(
        ("Forge I", {"path_length": 1}), ("Forge J", {}), ("Forge K", {})
    ),
    "name outside the permitted ones": lambda: _constrained(permitted=organization("Another")),
    "name among the excluded ones": lambda: _constrained(excluded=organization("Forge")),
    # RFC 5280, section 7.1: letters and string types make no difference to a name.
    "name among the excluded ones in other letters": lambda: _constrained(excluded=organization("FORGE")),
    "name among the excluded ones in another string type": lambda: _constrained(
        excluded=organization("Forge", 0x13)
    ),
    "alternative name outside the permitted ones": lambda: chain(
        ("Forge I", {"extensions": (name_constraints(permitted=(dns("example.org"),)),)}),
        extensions=(alternative_name(dns("stamp.example.net")),),
    ),
    "alternative name among the excluded ones": lambda: chain(
        ("Forge I", {"extensions": (name_constraints(excluded=(dns("example.org"),)),)}),
        extensions=(alternative_name(dns("stamp.example.org")),),
    ),
    "intermediate with an unknown critical extension": lambda: middle(extensions=(pki.UNKNOWN_CRITICAL,)),
    "signer with an unknown critical extension": lambda: by(signer(extensions=(pki.UNKNOWN_CRITICAL,))),
    "intermediate with an RSA key of 1024 bits": lambda: middle(key=key("rsa-1024", "weak intermediate")),
    "root with an RSA key of 1024 bits": lambda: middle({"key": key("rsa-1024", "weak root")}),
    "intermediate signed with SHA-1": lambda: middle(scheme=Scheme("ecdsa", "sha1")),
    "intermediate signed with RSA and MD5": lambda: middle(
        {"key": key("rsa-2048", "md5 root")}, scheme=Scheme("rsa", "md5")
    ),
    "intermediate signed with PSS and SHA-1": lambda: middle(
        {"key": key("rsa-2048", "pss root")}, scheme=Scheme("pss", "sha1")
    ),
    "signer's certificate signed with SHA-1": lambda: by(signer(scheme=Scheme("ecdsa", "sha1"))),
    "intermediate with a DSA key": lambda: middle(key=key("dsa", "weak intermediate")),
    "intermediate with a curve of 224 bits": lambda: middle(key=key("ecdsa-p224", "weak intermediate")),
}


def _tsa(general_name: bytes, **knobs: object) -> object:
    return by(signer(**knobs), tsa=general_name)


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
    "policy not on the list": lambda: given(recipe(), policies=("1.2.3", "1.2.4")),
    "policy longer than one on the list": lambda: given(recipe(), policies=(POLICY.rpartition(".")[0],)),
    "policy the beginning of one on the list": lambda: given(recipe(), policies=(POLICY + ".1",)),
}
