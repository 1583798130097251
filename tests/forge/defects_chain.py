"""Checks 10 to 15. RFC 3161, section 4, says which reasons of a revocation leave earlier tokens valid."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from tests.forge import der, keys, pki
from tests.forge.case import (
    Case,
    Cases,
    Made,
    by,
    chain,
    edited,
    embedding,
    given,
    issuing,
    middle,
    organization,
    recipe,
    signer,
)
from tests.forge.keys import (
    Scheme,
    digest,
    digest_identifier,
    explicit_spki,
    key,
    pss_parameters,
    rsa_spki,
    sign,
)
from tests.forge.pki import (
    TIME_STAMPING,
    Cert,
    Revoked,
    alternative_name,
    authority,
    directory,
    dns,
    house,
    issuing_point,
    name,
    name_constraints,
    root,
    stamper,
)
from tests.forge.token import POLICY, STAMPED, attribute
from toolkit.structs import replace


def _signer(kind: str, **knobs: object) -> object:
    return by(stamper(f"Forge {kind}", issuing(), kind), **knobs)


def _pss(algorithm: bytes | None = None, **scheme: object) -> object:
    """Return a recipe signed with RSASSA-PSS under this name."""
    return recipe(scheme=Scheme("pss", **scheme), algorithm=algorithm)


def _named(*parameters: object) -> bytes:
    return der.seq(der.oid(keys.PSS), pss_parameters(*parameters))


def _odd_mask() -> bytes:
    parts = (
        der.explicit(0, digest_identifier("sha256")),
        der.explicit(1, der.seq(der.oid("1.2.840.113549.1.1.99"), digest_identifier("sha256"))),
        der.explicit(2, der.integer(32)),
    )
    return der.seq(der.oid(keys.PSS), der.seq(*parts))


def _numbers(modulus: int, exponent: int, signature: bytes) -> Case:
    """A signer whose certified RSA key has these numbers."""
    odd = replace(key("rsa-2048", "odd"), spki=rsa_spki(modulus, exponent))
    return by(stamper("Forge odd", issuing(), key=odd), signature=signature)


def _exponent_one() -> Case:
    """With the exponent 1 a signature is the padded hash itself: anybody can write it."""
    odd = replace(key("rsa-2048", "odd"), spki=rsa_spki(2**2047 + 1, 1))
    token = by(stamper("Forge one", issuing(), key=odd))
    attributes = der.set_of(*token.signed_attributes(token.tst_info()))
    hashed = der.seq(digest_identifier("sha256"), der.octets(digest("sha256", attributes)))
    padded = b"\x00\x01" + b"\xff" * (256 - 3 - len(hashed)) + b"\x00" + hashed
    return token.but(signature=padded)


def _explicit_curve() -> Case:
    plain = key("ecdsa-p256", "explicit")
    odd = replace(plain, spki=explicit_spki(plain))
    return by(stamper("Forge explicit", issuing(), key=odd))


def _elliptic(edit: Callable[[bytes], bytes]) -> Case:
    last = stamper("Forge elliptic", issuing(), "ecdsa-p256")
    return edited("signature", edit, signer=last)


def _unknown(text: str) -> bytes:
    return attribute("1.3.6.1.4.1.99999.9", der.utf8(text))


def _with_one_more(signer_info: bytes, text: str) -> bytes:
    parts = list(der.children(signer_info))
    parts[3] = der.explicit(0, *sorted([*der.children(parts[3]), _unknown(text)]))
    return der.seq(*parts)


def _signed_under_context_tag() -> object:
    """Sign the attributes as they stand in the token, [0], not as the SET OF that RFC 5652 wants."""
    plain = recipe()
    content = plain.tst_info()
    encoded = der.implicit(0, der.set_of(*plain.signed_attributes(content)))
    return plain.but(signature=sign(plain.signer.key, encoded, Scheme("rsa")))


SIGNATURE: Cases = {
    "signature with a bit flipped": lambda: edited("signature", der.flipped),
    "signature of zeros": lambda: edited("signature", lambda v: bytes(len(v))),
    "signature empty": lambda: recipe(signature=b""),
    "signature cut short": lambda: edited("signature", lambda v: v[:-1]),
    "signature with a trailing byte": lambda: edited("signature", lambda v: v + b"\x00"),
    "signature with a leading zero": lambda: edited("signature", lambda v: b"\x00" + v),
    "signature by another key": lambda: recipe(signing_key=key("rsa-2048", "nobody")),
    "attribute changed after signing": lambda: edited(
        "signer_info", lambda v: v.replace(b"first", b"later"), extra_attributes=(_unknown("first"),)
    ),
    "attribute added after signing": lambda: edited("signer_info", lambda v: _with_one_more(v, "later")),
    "attributes signed under their context tag": _signed_under_context_tag,
    "ECDSA signature not encoded": lambda: _signer("ecdsa-p256", signature=bytes(range(1, 65))),
    "ECDSA signature with a trailing byte": lambda: _elliptic(lambda v: v + b"\x00"),
    "ECDSA signature with a byte too many in its length": lambda: _elliptic(der.long_length),
    "ECDSA signature with a third number": lambda: _elliptic(lambda v: der.with_more(v, der.integer(1))),
    "ECDSA signature with a needless byte": lambda: _elliptic(
        lambda v: der.change(v, (0,), lambda r: der.tlv(0x02, b"\x00\x00", der.body(r)))
    ),
    "curve written out in numbers": _explicit_curve,
    "RSA key of exponent 1": _exponent_one,
    "RSA key of 65 536 bits": lambda: _numbers(2**65535 + 1, 65537, b"\x01" * 8192),
    "RSA key of an exponent of 2047 bits": lambda: _numbers(2**2047 + 1, 2**2046 + 1, b"\x01" * 256),
    "RSA key of modulus zero": lambda: _numbers(0, 65537, b""),
    "RSA key of a negative modulus": lambda: _numbers(-(2**2047), 65537, b"\x01" * 256),
    "ECDSA signature of zeros": lambda: _signer(
        "ecdsa-p256", signature=der.seq(der.integer(0), der.integer(0))
    ),
    "RSA name over an elliptic key": lambda: _signer(
        "ecdsa-p256", algorithm=Scheme("rsa").identifier(), scheme=Scheme("ecdsa")
    ),
    "ECDSA name over an RSA key": lambda: recipe(algorithm=Scheme("ecdsa").identifier()),
    "Ed25519 name over an RSA key": lambda: recipe(algorithm=der.seq(der.oid(keys.ED25519))),
    "unknown signature algorithm": lambda: recipe(algorithm=der.seq(der.oid("1.3.6.1.4.1.99999.8"))),
    "a digest's name as signature algorithm": lambda: recipe(algorithm=digest_identifier("sha256")),
    "signature's hash named wrongly": lambda: recipe(algorithm=Scheme("rsa", "sha512").identifier()),
    "digest SHA-1": lambda: recipe(digest="sha1"),
    "digest MD5": lambda: recipe(digest="md5"),
    "digest SHA-224": lambda: recipe(digest="sha224"),
    "digest SHA-256 signed with SHA-1": lambda: recipe(scheme=Scheme("rsa", "sha1")),
    "digest SHA-1 signed with SHA-256": lambda: recipe(digest="sha1", scheme=Scheme("rsa")),
    "ECDSA with SHA-1": lambda: _signer("ecdsa-p256", digest="sha1"),
    "RSA key of 1024 bits": lambda: _signer("rsa-1024"),
    "curve of 224 bits": lambda: _signer("ecdsa-p224"),
    "DSA key": lambda: _signer("dsa"),
    "PSS with SHA-1": lambda: _pss(digest="sha1"),
    "PSS with SHA-1 in its mask": lambda: _pss(mgf="sha1"),
    "PSS with its salt named wrongly": lambda: _pss(_named("sha256", "sha256", 20)),
    "PSS with its mask named wrongly": lambda: _pss(_named("sha256", "sha512", 32)),
    "PSS with another trailer": lambda: _pss(trailer=2),
    "PSS with another mask than MGF1": lambda: _pss(_odd_mask()),
    "PSS with a salt of less than nothing": lambda: _pss(_named("sha256", "sha256", -1)),
    "PSS hash with something empty for its NULL": lambda: _pss(
        Scheme("pss").identifier().replace(der.NULL, der.octets(b""), 1)
    ),
    "PSS mask's hash with something empty for its NULL": lambda: _pss(
        der.octets(b"").join(Scheme("pss").identifier().rsplit(der.NULL, 1))
    ),
    "Ed448 name over an Ed25519 key": lambda: _signer(
        "ed25519", digest="sha512", algorithm=der.seq(der.oid("1.3.101.113"))
    ),
    "PSS without parameters": lambda: _pss(der.seq(der.oid(keys.PSS))),
    "PSS name over a PKCS #1 v1.5 signature": lambda: recipe(algorithm=Scheme("pss").identifier()),
    "PKCS #1 v1.5 with a key that is for keys.PSS only": lambda: _signer("pss", scheme=Scheme("rsa")),
    "PSS key of SHA-512 used with SHA-256": lambda: _signer("pss-sha512"),
    "PSS key with a short salt": lambda: _signer("pss-sha256", scheme=Scheme("pss", salt=20)),
    "Ed25519 signature with a bit flipped": lambda: _signer(
        "ed25519", digest="sha512", edits=(("signature", der.flipped),)
    ),
}

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


def _at(domain: str, **bases: tuple[bytes, ...]) -> object:
    """A signer at a host of a domain, below an authority with constraints on names."""
    above = ("Forge I", {"extensions": (name_constraints(**bases),)})
    return chain(above, extensions=(alternative_name(dns(f"stamp.{domain}")),))


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
    "the signer's sibling pinned": lambda: given(recipe(), roots=(stamper("Forge Sibling", issuing()).der,)),
    "intermediate missing": lambda: embedding(house().signer),
    "intermediate of another authority": lambda: embedding(house().signer, issuing("B")),
    "intermediate of the same name and another key": lambda: embedding(
        house().signer, issuing().but(key=key("ecdsa-p256", "x"))
    ),
    "rogue chain of the same names": _rogue,
    "embedded self-signed root taken as anchor": lambda: embedding(
        house("C").signer, issuing("C"), house("C").root, signer=house("C").signer
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
        stamper("Bystander", issuing(), damaged=True).der
    ),
    "embedded bystander authority with a wrong signature": lambda: _embedding(
        authority("Bystander authority", house().root, damaged=True).der
    ),
    "embedded copy of the pinned certificate with another name": lambda: given(
        embedding(house().signer, _renamed(issuing().der)), roots=(issuing().der,)
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
    "alternative name outside the permitted ones": lambda: _at(
        "example.net", permitted=(dns("example.org"),)
    ),
    "alternative name among the excluded ones": lambda: _at("example.org", excluded=(dns("example.org"),)),
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
    "tsa names the signer's issuer": lambda: _tsa(directory(issuing().subject)),
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
    return pki.Crl(issuer or issuing(), issued, revoked, **knobs).der


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
    return _lists(*others, crl(Revoked(issuing().number, on, reason), issuer=house().root))


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
    "valid: list of another issuer": lambda: _clean(issuer=issuing("B")),
    "valid: list of another issuer that has the serial number": lambda: _revoked(
        BEFORE, _KEY, issuer=issuing("B")
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
        _indirect(issuing("B"))
    ),
    "valid: clean list with an unknown critical extension": lambda: _clean(pki.UNKNOWN_CRITICAL),
    "valid: signer revoked after genTime: superseded, and invalid since after": lambda: _listed(
        _entry(AFTER, _REPLACED, pki.invalid_since(AFTER))
    ),
}
