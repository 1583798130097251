"""What a verifier must accept: unusual, and right."""

from __future__ import annotations

import re
from datetime import timedelta

from tests.forge import der
from tests.forge.case import Case, Cases, by, recipe, signer, signer_of_length_80, verified
from tests.forge.keys import Scheme, digest, key
from tests.forge.pki import (
    ANY_PURPOSE,
    OCSP_SIGNING,
    TIME_STAMPING,
    UNKNOWN,
    Crl,
    alternative_name,
    authority,
    directory,
    dns,
    extension,
    house,
    name_constraints,
    root,
    stamper,
)
from tests.forge.token import (
    CONTENT_TYPE,
    DOCUMENT,
    MESSAGE_DIGEST,
    POLICY,
    SIGNING_CERTIFICATE,
    SIGNING_CERTIFICATE_V2,
    SIGNING_TIME,
    STAMPED,
    Ess,
    Request,
    accuracy,
    attribute,
    protection,
)

NO_PSS = "PKCS #7 in OpenSSL 3.0 takes an RSA key's signature for PKCS #1 v1.5, whatever the token says"
LAST_SECOND = "OpenSSL counts the last second of a validity as past; RFC 5280, section 4.1.2.5, as within"
NO_WAY_BACK = "OpenSSL follows the first issuer of the name, and does not come back for another"
NO_ED25519 = "PKCS #7 in OpenSSL 3.0 knows no Ed25519"
KEY_IDENTIFIER = "PKCS #7 in OpenSSL knows no key identifiers as signer's names"
BARE_ID = (CONTENT_TYPE, MESSAGE_DIGEST)


def _ids(*ids: Ess, version: int = 2) -> Case:
    kind = SIGNING_CERTIFICATE if version == 1 else SIGNING_CERTIFICATE_V2
    return verified(recipe(attributes=(*BARE_ID, kind), ess=ids))


def _own(**knobs: object) -> Ess:
    return Ess(house().signer.der, **knobs)


def _keyed(kind: str, **knobs: object) -> Case:
    beyond = knobs.pop("beyond_openssl", None)
    token = by(stamper(f"Forge {kind}", house().intermediate, kind), **knobs)
    return verified(token, beyond_openssl=beyond)


def _chain(
    *below: tuple[str, dict[str, object]], top: dict[str, object] | None = None, **last: object
) -> Case:
    first = issuer = root("Forge Root of a chain", "ecdsa-p256", **(top or {}))
    for common, knobs in below:
        issuer = authority(common, issuer, **knobs)
    return verified(by(stamper("Forge Stamper of a chain", issuer).but(**last)), roots=(first.der,))


def _organization() -> bytes:
    return der.seq(der.set_of(der.seq(der.oid("2.5.4.10"), der.utf8("Forge"))))


def _two_ways() -> Case:
    """The intermediate certified by two roots, of which one is pinned; the other way comes first."""
    mine = house()
    other = mine.intermediate.but(issuer=house("B").root, serial=1)
    certificates = (other.der, mine.signer.der, mine.intermediate.der)
    token = recipe(certificates=certificates, sort_certificates=False)
    return verified(token, beyond_openssl=NO_WAY_BACK)


def _renewed() -> Case:
    """Two certificates of the intermediate's key, one of them expired."""
    mine = house()
    old = mine.intermediate.but(serial=2, dies=STAMPED - timedelta(days=1))
    certificates = (old.der, mine.signer.der, mine.intermediate.der)
    return verified(recipe(certificates=certificates, sort_certificates=False))


def _of_size(size: int) -> Case:
    """A token of so many bytes, filled up by an unsigned attribute."""
    filling = size - 4096
    for _ in range(4):
        token = recipe(unsigned=(attribute("1.3.6.1.4.1.99999.7", der.octets(bytes(filling))),)).make()
        filling += size - len(token)
    return verified(token)


def _attributes_of(size: int) -> Case:
    """Signed attributes of so many bytes: a length whose last byte is 0x80."""
    for filling in range(size):
        token = recipe(extra_attributes=(attribute("1.3.6.1.4.1.99999.9", der.octets(bytes(filling))),))
        encoded = der.set_of(*token.signed_attributes(token.tst_info()))
        if len(der.body(encoded)) == size:
            return verified(token)
    raise ValueError("no filling fits")


def _pinned_intermediate(**knobs: object) -> Case:
    middle = house().intermediate
    return verified(recipe(**knobs), roots=(middle.der,))


def _attributed(signing_time: str) -> bytes:
    return attribute(SIGNING_TIME, der.tlv(0x17, signing_time.encode()))


def _printable(name: bytes) -> bytes:
    """Return a name with its texts as PrintableString instead of UTF8String."""
    return re.sub(rb"\x0c(?=.Forge)", b"\x13", name, flags=re.DOTALL)


RESPONSES: Cases = {
    "valid: usual": lambda: verified(recipe()),
    "valid: bare token": lambda: verified(recipe(bare=True)),
    "valid: granted with modifications": lambda: verified(recipe(status=1)),
    "valid: granted with a text": lambda: verified(recipe(text="Operation okay")),
    "valid: certificates not sorted": lambda: verified(
        recipe(certificates=(house().intermediate.der, house().signer.der)[::-1], sort_certificates=False)
    ),
    "valid: certificates in the other order": lambda: verified(
        recipe(certificates=(house().intermediate.der, house().signer.der), sort_certificates=False)
    ),
    "valid: root embedded": lambda: verified(
        recipe(certificates=tuple(c.der for c in (house().signer, house().intermediate, house().root)))
    ),
    "valid: tsa in another string type": lambda: verified(
        recipe(tsa=directory(_printable(house().signer.subject)))
    ),
    "valid: issuer in another string type": lambda: verified(
        recipe(signer=signer(issuer_name=_printable(house().intermediate.subject)))
    ),
    "valid: another digest algorithm listed as well": lambda: verified(
        recipe(digest_algorithms=("sha256", "sha512"))
    ),
    "valid: bystander embedded": lambda: verified(
        recipe(certificates=(house().signer.der, house().intermediate.der, house("B").signer.der))
    ),
    "valid: rogue self-signed root embedded beside the chain": lambda: verified(
        recipe(certificates=(house().signer.der, house().intermediate.der, house("C").root.der))
    ),
    "valid: signer embedded twice": lambda: verified(
        recipe(certificates=(house().signer.der, house().signer.der, house().intermediate.der))
    ),
    "valid: certificates archived beside the token": lambda: verified(
        recipe(certificates=()), untrusted=(house().signer.der, house().intermediate.der)
    ),
    "valid: signer given": lambda: verified(
        recipe(certificates=()), signer=house().signer.der, untrusted=(house().intermediate.der,)
    ),
    "valid: intermediate archived": lambda: verified(
        recipe(certificates=(house().signer.der,)), untrusted=(house().intermediate.der,)
    ),
    "valid: revocation list embedded": lambda: verified(
        recipe(crls=(Crl(house().intermediate, STAMPED + timedelta(days=1)).der,))
    ),
    "valid: unsigned attribute": lambda: verified(
        recipe(unsigned=(attribute("1.3.6.1.4.1.99999.7", der.utf8("anything")),))
    ),
    "valid: one mebibyte to the byte": lambda: _of_size(1 << 20),
    "valid: signer named by key identifier": lambda: verified(
        recipe(by_key=True), beyond_openssl=KEY_IDENTIFIER
    ),
    "valid: digest algorithm without parameters": lambda: verified(recipe(digest_null=False)),
}

INFO: Cases = {
    "valid: fraction of a second": lambda: verified(recipe(gen_time="20240301120000.25Z")),
    "valid: nine digits after the second": lambda: verified(recipe(gen_time="20240301120000.123456789Z")),
    "valid: accuracy": lambda: verified(recipe(accuracy=accuracy(1, 500, 20))),
    "valid: accuracy of milliseconds alone": lambda: verified(recipe(accuracy=accuracy(millis=999))),
    "valid: accuracy of microseconds alone": lambda: verified(recipe(accuracy=accuracy(micros=1))),
    "valid: accuracy of an hour": lambda: verified(recipe(accuracy=accuracy(3600))),
    "valid: ordering": lambda: verified(recipe(ordering=der.boolean(True))),
    "valid: serial number of 160 bits": lambda: verified(recipe(serial=(1 << 159) + 5)),
    "valid: serial number zero": lambda: verified(recipe(serial=0)),
    "valid: extension that is not critical": lambda: verified(recipe(extensions=(UNKNOWN,))),
    "valid: imprint SHA-384": lambda: verified(recipe(imprint_digest="sha384")),
    "valid: imprint SHA-512": lambda: verified(recipe(imprint_digest="sha512")),
    "valid: imprint algorithm without parameters": lambda: verified(recipe(imprint_null=False)),
    "valid: digest instead of the document": lambda: verified(
        recipe(), document=None, digest=("sha256", digest("sha256", DOCUMENT))
    ),
    "valid: empty document": lambda: verified(recipe(document=b""), document=b""),
    "valid: document of line feeds": lambda: verified(recipe(document=b"\r\n" * 9), document=b"\r\n" * 9),
    "valid: tsa names the signer": lambda: verified(recipe(tsa=directory(house().signer.subject))),
    "valid: tsa one of the signer's hosts": lambda: verified(
        by(
            signer(extensions=(alternative_name(dns("a.example.org"), dns("b.example.org")),)),
            tsa=dns("b.example.org"),
        )
    ),
    "valid: policy on the list": lambda: verified(recipe(), policies=("1.2.3", POLICY)),
    "valid: genTime this very second": lambda: verified(recipe(), at=STAMPED),
    "valid: request": lambda: verified(recipe(nonce=77), request=Request(nonce=77).der),
    "valid: request of a long nonce": lambda: verified(
        recipe(nonce=1 << 127), request=Request(nonce=1 << 127).der
    ),
    "valid: request of nonce zero": lambda: verified(recipe(nonce=0), request=Request(nonce=0).der),
    "valid: request without a nonce": lambda: verified(recipe(), request=Request().der),
    "valid: request for the policy": lambda: verified(
        recipe(nonce=77), request=Request(nonce=77, policy=POLICY, certificates=False).der
    ),
    "valid: nonce without a request": lambda: verified(recipe(nonce=77)),
}

SIGNING: Cases = {
    "valid: ESS v1": lambda: _ids(_own(), version=1),
    "valid: ESS v1 and v2": lambda: verified(
        recipe(attributes=(*BARE_ID, SIGNING_CERTIFICATE, SIGNING_CERTIFICATE_V2))
    ),
    "valid: ESS v1 with issuer and serial number": lambda: _ids(
        _own(issuer=house().intermediate.subject, serial=house().signer.number), version=1
    ),
    "valid: ESS v2 with issuer and serial number": lambda: _ids(
        _own(issuer=house().intermediate.subject, serial=house().signer.number)
    ),
    "valid: ESS v2 with SHA-512": lambda: _ids(_own(digest="sha512")),
    "valid: ESS v2 with SHA-384": lambda: _ids(_own(digest="sha384")),
    "valid: ESS v2 that writes its default": lambda: _ids(_own(stated=True)),
    "valid: ESS v2 for the chain": lambda: _ids(_own(), Ess(house().intermediate.der)),
    "valid: ESS v1 for the chain": lambda: _ids(_own(), Ess(house().intermediate.der), version=1),
    "valid: signing time": lambda: verified(recipe(extra_attributes=(_attributed("240301120000Z"),))),
    "valid: algorithm protection": lambda: verified(
        recipe(extra_attributes=(protection("sha256", Scheme("rsa")),))
    ),
    "valid: unknown signed attribute": lambda: verified(
        recipe(extra_attributes=(attribute("1.3.6.1.4.1.99999.9", der.utf8("anything")),))
    ),
    "valid: rsaEncryption as signature algorithm": lambda: verified(recipe(scheme=Scheme("rsa", plain=True))),
    "valid: RSA with SHA-384": lambda: verified(recipe(digest="sha384")),
    "valid: RSA with SHA-512": lambda: verified(recipe(digest="sha512")),
    "valid: RSA-3072": lambda: _keyed("rsa-3072"),
    "valid: P-256": lambda: _keyed("ecdsa-p256"),
    "valid: P-384 with SHA-384": lambda: _keyed("ecdsa-p384", digest="sha384"),
    "valid: P-384 with SHA-256": lambda: _keyed("ecdsa-p384"),
    "valid: P-521 with SHA-512": lambda: _keyed("ecdsa-p521", digest="sha512"),
    "valid: Ed25519": lambda: _keyed("ed25519", digest="sha512", beyond_openssl=NO_ED25519),
    "valid: PSS by an RSA key": lambda: verified(recipe(scheme=Scheme("pss")), beyond_openssl=NO_PSS),
    "valid: PSS with a salt of 20 bytes": lambda: verified(
        recipe(scheme=Scheme("pss", salt=20)), beyond_openssl=NO_PSS
    ),
    "valid: PSS with SHA-512": lambda: verified(
        recipe(digest="sha512", scheme=Scheme("pss", "sha512")), beyond_openssl=NO_PSS
    ),
    "valid: PSS key": lambda: _keyed("pss"),
    "valid: PSS key with parameters": lambda: _keyed("pss-sha256"),
}

CHAINS: Cases = {
    "valid: key usage non-repudiation": lambda: verified(by(signer(usages=("non_repudiation",)))),
    "valid: key usage of both signatures": lambda: verified(
        by(signer(usages=("digital_signature", "non_repudiation")))
    ),
    "valid: key usage not stated": lambda: verified(by(signer(usages=None))),
    "valid: key usage not critical": lambda: verified(by(signer(usages_critical=False))),
    "valid: signer says that it is no authority": lambda: verified(by(signer(ca=False))),
    "valid: signer without key identifiers": lambda: verified(by(signer(identifiers=False))),
    "valid: signer with an unknown extension": lambda: verified(by(signer(extensions=(UNKNOWN,)))),
    "valid: signer expired since": lambda: verified(by(signer(dies=STAMPED + timedelta(days=1)))),
    "valid: signer's first second": lambda: verified(by(signer(born=STAMPED))),
    "valid: signer's last second": lambda: verified(by(signer(dies=STAMPED)), beyond_openssl=LAST_SECOND),
    "valid: signer's end in GeneralizedTime": lambda: verified(by(signer(dies=STAMPED.replace(year=2060)))),
    "valid: signer below the root": _chain,
    "valid: chain of four": lambda: _chain(("Forge I", {}), ("Forge J", {})),
    "valid: chain of six": lambda: _chain(("Forge I", {}), ("Forge J", {}), ("Forge K", {}), ("Forge L", {})),
    "valid: path length just long enough": lambda: _chain(
        ("Forge I", {"path_length": 0}), top={"path_length": 1}
    ),
    "valid: intermediate for time stamping": lambda: _chain(
        ("Forge I", {"purposes": (TIME_STAMPING,), "purposes_critical": False})
    ),
    "valid: intermediate for any purpose": lambda: _chain(
        ("Forge I", {"purposes": (ANY_PURPOSE,), "purposes_critical": False})
    ),
    # RFC 5280 lets an extended key usage speak of its own certificate's key only, and authorities that are in
    # use have others than time stamping above a signer (Fujitsu, GlobalSign for Adobe).
    "valid: intermediate for OCSP signing": lambda: _chain(
        ("Forge I", {"purposes": (OCSP_SIGNING,), "purposes_critical": False})
    ),
    "valid: root for OCSP signing": lambda: _chain(
        ("Forge I", {}), top={"purposes": (OCSP_SIGNING,), "purposes_critical": False}
    ),
    "valid: certificate whose length ends in 0x80": lambda: verified(by(signer_of_length_80())),
    "valid: certificate whose length ends in 0x80 and that writes a default": lambda: verified(
        by(signer_of_length_80(extension("2.5.29.19", der.seq(der.boolean(False)))))
    ),
    "valid: signer that writes a default": lambda: verified(
        by(signer(extensions=(extension("2.5.29.19", der.seq(der.boolean(False))),)))
    ),
    "valid: signed attributes of 384 bytes": lambda: _attributes_of(384),
    "valid: name among the permitted ones": lambda: _chain(
        ("Forge I", {"extensions": (name_constraints(permitted=(directory(_organization()),)),)})
    ),
    "valid: names of another kind constrained": lambda: _chain(
        ("Forge I", {"extensions": (name_constraints(permitted=(dns("example.org"),)),)})
    ),
    "valid: root signed with SHA-1": lambda: _chain(("Forge I", {}), top={"scheme": Scheme("ecdsa", "sha1")}),
    "valid: root whose own signature is wrong": lambda: _chain(("Forge I", {}), top={"damaged": True}),
    "valid: intermediate signed with PSS": lambda: _chain(
        ("Forge I", {"scheme": Scheme("pss")}), top={"key": key("rsa-2048", "pss root")}
    ),
    "valid: intermediate with an Ed25519 key": lambda: _chain(
        ("Forge I", {"key": key("ed25519", "intermediate")})
    ),
    "valid: pinned intermediate": _pinned_intermediate,
    "valid: pinned intermediate with the signer alone": lambda: _pinned_intermediate(
        certificates=(house().signer.der,)
    ),
    "valid: two roots pinned": lambda: verified(recipe(), roots=(house("B").root.der, house().root.der)),
    "valid: intermediate certified twice": _two_ways,
    "valid: intermediate renewed": _renewed,
}
