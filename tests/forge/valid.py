"""What a verifier must accept: unusual, and right."""

import re
from datetime import timedelta

from tests.forge import der, pki
from tests.forge.case import (
    Case,
    Cases,
    also,
    by,
    chain,
    embedding,
    given,
    issuing,
    middle,
    organization,
    placed,
    recipe,
    signer,
    signer_of_length_80,
)
from tests.forge.keys import Scheme, digest, key
from tests.forge.pki import alternative_name, directory, dns, extension, house, name_constraints, stamper
from tests.forge.token import (
    BOTH_IDS,
    DOCUMENT,
    POLICY,
    SIGNING_TIME,
    STAMPED,
    Ess,
    Request,
    accuracy,
    attribute,
    own_id,
    protection,
    with_ids,
)

NO_PSS = "PKCS #7 in OpenSSL 3.0 takes an RSA key's signature for PKCS #1 v1.5, whatever the token says"
LAST_SECOND = "OpenSSL counts the last second of a validity as past; RFC 5280, section 4.1.2.5, as within"
NO_WAY_BACK = "OpenSSL follows the first issuer of the name, and does not come back for another"
NO_ED25519 = "PKCS #7 in OpenSSL 3.0 knows no Ed25519"
KEY_IDENTIFIER = "PKCS #7 in OpenSSL knows no key identifiers as signer's names"


def _keyed(kind: str, **knobs: object) -> Case:
    beyond = knobs.pop("beyond_openssl", None)
    token = by(stamper(f"Forge {kind}", issuing(), kind), **knobs)
    return given(token, beyond_openssl=beyond)


def _pss(digest: str = "sha256", **knobs: int) -> Case:
    return given(recipe(digest=digest, scheme=Scheme("pss", digest, **knobs)), beyond_openssl=NO_PSS)


def _meant_for(purpose: str) -> Case:
    return middle(purposes=(purpose,), purposes_critical=False)


def _two_ways() -> Case:
    """The intermediate certified by two roots, of which one is pinned; the other way comes first."""
    mine = house()
    other = mine.intermediate.but(issuer=house("B").root, serial=1)
    certificates = (other.der, mine.signer.der, mine.intermediate.der)
    token = recipe(certificates=certificates, sort_certificates=False)
    return given(token, beyond_openssl=NO_WAY_BACK)


def _renewed() -> Case:
    """Two certificates of the intermediate's key, one of them expired."""
    mine = house()
    old = mine.intermediate.but(serial=2, dies=STAMPED - timedelta(days=1))
    certificates = (old.der, mine.signer.der, mine.intermediate.der)
    return recipe(certificates=certificates, sort_certificates=False)


def _of_size(size: int) -> Case:
    """A token of so many bytes, filled up by an unsigned attribute."""
    filling = size - 4096
    for _ in range(4):
        token = recipe(unsigned=(attribute("1.3.6.1.4.1.99999.7", der.octets(bytes(filling))),)).make()
        filling += size - len(token)
    return token


def _attributes_of(size: int) -> Case:
    """Signed attributes of so many bytes: a length whose last byte is 0x80."""
    for filling in range(size):
        token = also(attribute("1.3.6.1.4.1.99999.9", der.octets(bytes(filling))))
        encoded = der.set_of(*token.signed_attributes(token.tst_info()))
        if len(der.body(encoded)) == size:
            return token
    raise ValueError("no filling fits")


def _pinned_intermediate(**knobs: object) -> Case:
    middle = issuing()
    return given(recipe(**knobs), roots=(middle.der,))


def _with_everything() -> Case:
    token = recipe(nonce=77, accuracy=accuracy(1, 500), tsa=directory(house().signer.subject), text="granted")
    return given(token, request=Request(nonce=77).der)


def _printable(name: bytes) -> bytes:
    """Return a name with its texts as PrintableString instead of UTF8String."""
    return re.sub(rb"\x0c(?=.Forge)", b"\x13", name, flags=re.DOTALL)


RESPONSES: Cases = {
    "valid: usual": recipe,
    "valid: with everything": _with_everything,
    "valid: bare token": lambda: recipe(bare=True),
    "valid: granted with modifications": lambda: recipe(status=1),
    "valid: granted with a text": lambda: recipe(text="Operation okay"),
    "valid: certificates not sorted": lambda: embedding(house().signer, issuing(), sort_certificates=False),
    "valid: certificates in the other order": lambda: embedding(
        issuing(), house().signer, sort_certificates=False
    ),
    "valid: root embedded": lambda: embedding(house().signer, issuing(), house().root),
    "valid: tsa in another string type": lambda: recipe(tsa=directory(_printable(house().signer.subject))),
    "valid: issuer in another string type": lambda: recipe(
        signer=signer(issuer_name=_printable(issuing().subject))
    ),
    "valid: another digest algorithm listed as well": lambda: recipe(digest_algorithms=("sha256", "sha512")),
    "valid: bystander embedded": lambda: embedding(house().signer, issuing(), house("B").signer),
    "valid: rogue self-signed root embedded beside the chain": lambda: embedding(
        house().signer, issuing(), house("C").root
    ),
    "valid: signer embedded twice": lambda: embedding(house().signer, house().signer, issuing()),
    "valid: certificates archived beside the token": lambda: given(
        embedding(), untrusted=(house().signer.der, issuing().der)
    ),
    "valid: signer given": lambda: given(embedding(), signer=house().signer.der, untrusted=(issuing().der,)),
    "valid: intermediate archived": lambda: given(embedding(house().signer), untrusted=(issuing().der,)),
    "valid: revocation list embedded": lambda: recipe(
        crls=(pki.Crl(issuing(), STAMPED + timedelta(days=1)).der,)
    ),
    "valid: unsigned attribute": lambda: recipe(
        unsigned=(attribute("1.3.6.1.4.1.99999.7", der.utf8("anything")),)
    ),
    "valid: one mebibyte to the byte": lambda: _of_size(1 << 20),
    "valid: signer named by key identifier": lambda: given(
        recipe(by_key=True), beyond_openssl=KEY_IDENTIFIER
    ),
    "valid: digest algorithm without parameters": lambda: recipe(digest_null=False),
}

INFO: Cases = {
    "valid: fraction of a second": lambda: recipe(gen_time="20240301120000.25Z"),
    "valid: nine digits after the second": lambda: recipe(gen_time="20240301120000.123456789Z"),
    "valid: accuracy": lambda: recipe(accuracy=accuracy(1, 500, 20)),
    "valid: accuracy of milliseconds alone": lambda: recipe(accuracy=accuracy(millis=999)),
    "valid: accuracy of microseconds alone": lambda: recipe(accuracy=accuracy(micros=1)),
    "valid: accuracy of an hour": lambda: recipe(accuracy=accuracy(3600)),
    "valid: ordering": lambda: recipe(ordering=der.boolean(True)),
    "valid: serial number of 160 bits": lambda: recipe(serial=(1 << 159) + 5),
    "valid: serial number zero": lambda: recipe(serial=0),
    "valid: extension that is not critical": lambda: recipe(extensions=(pki.UNKNOWN,)),
    "valid: imprint SHA-384": lambda: recipe(imprint_digest="sha384"),
    "valid: imprint SHA-512": lambda: recipe(imprint_digest="sha512"),
    "valid: imprint algorithm without parameters": lambda: recipe(imprint_null=False),
    "valid: digest instead of the document": lambda: given(
        recipe(), document=None, digest=("sha256", digest("sha256", DOCUMENT))
    ),
    "valid: empty document": lambda: given(recipe(document=b""), document=b""),
    "valid: document of line feeds": lambda: given(recipe(document=b"\r\n" * 9), document=b"\r\n" * 9),
    "valid: tsa names the signer": lambda: recipe(tsa=directory(house().signer.subject)),
    "valid: tsa one of the signer's hosts": lambda: by(
        signer(extensions=(alternative_name(dns("a.org"), dns("b.org")),)), tsa=dns("b.org")
    ),
    "valid: policy on the list": lambda: given(recipe(), policies=("1.2.3", POLICY)),
    "valid: genTime this very second": lambda: given(recipe(), at=STAMPED),
    "valid: request": lambda: given(recipe(nonce=77), request=Request(nonce=77).der),
    "valid: request of a long nonce": lambda: given(
        recipe(nonce=1 << 127), request=Request(nonce=1 << 127).der
    ),
    "valid: request of nonce zero": lambda: given(recipe(nonce=0), request=Request(nonce=0).der),
    "valid: request without a nonce": lambda: given(recipe(), request=Request().der),
    "valid: request for the policy": lambda: given(
        recipe(nonce=77), request=Request(nonce=77, policy=POLICY, certificates=False).der
    ),
    "valid: nonce without a request": lambda: recipe(nonce=77),
}

SIGNING: Cases = {
    "valid: ESS v1": lambda: with_ids(own_id(), version=1),
    "valid: ESS v1 and v2": lambda: recipe(attributes=BOTH_IDS),
    "valid: ESS v1 with issuer and serial number": lambda: placed(house().signer.number, version=1),
    "valid: ESS v2 with issuer and serial number": lambda: placed(house().signer.number),
    "valid: ESS v2 with SHA-512": lambda: with_ids(own_id(digest="sha512")),
    "valid: ESS v2 with SHA-384": lambda: with_ids(own_id(digest="sha384")),
    "valid: ESS v2 that writes its default": lambda: with_ids(own_id(stated=True)),
    "valid: ESS v2 for the chain": lambda: with_ids(own_id(), Ess(issuing().der)),
    "valid: ESS v1 for the chain": lambda: with_ids(own_id(), Ess(issuing().der), version=1),
    "valid: signing time": lambda: also(attribute(SIGNING_TIME, der.tlv(0x17, b"240301120000Z"))),
    "valid: algorithm protection": lambda: also(protection("sha256", Scheme("rsa"))),
    "valid: unknown signed attribute": lambda: also(attribute("1.3.6.1.4.1.99999.9", der.utf8("anything"))),
    "valid: rsaEncryption as signature algorithm": lambda: recipe(scheme=Scheme("rsa", plain=True)),
    "valid: RSA with SHA-384": lambda: recipe(digest="sha384"),
    "valid: RSA with SHA-512": lambda: recipe(digest="sha512"),
    "valid: RSA-3072": lambda: _keyed("rsa-3072"),
    "valid: P-256": lambda: _keyed("ecdsa-p256"),
    "valid: P-384 with SHA-384": lambda: _keyed("ecdsa-p384", digest="sha384"),
    "valid: P-384 with SHA-256": lambda: _keyed("ecdsa-p384"),
    "valid: P-521 with SHA-512": lambda: _keyed("ecdsa-p521", digest="sha512"),
    "valid: Ed25519": lambda: _keyed("ed25519", digest="sha512", beyond_openssl=NO_ED25519),
    "valid: PSS by an RSA key": _pss,
    "valid: PSS with a salt of 20 bytes": lambda: _pss(salt=20),
    "valid: PSS with SHA-512": lambda: _pss("sha512"),
    "valid: PSS key": lambda: _keyed("pss"),
    "valid: PSS key with parameters": lambda: _keyed("pss-sha256"),
}

WRITTEN_DEFAULT = extension("2.5.29.19", der.seq(der.boolean(False)))
SIGNATURES = ("digital_signature", "non_repudiation")
CHAINS: Cases = {
    "valid: key usage non-repudiation": lambda: by(signer(usages=("non_repudiation",))),
    "valid: key usage of both signatures": lambda: by(signer(usages=SIGNATURES)),
    "valid: key usage not stated": lambda: by(signer(usages=None)),
    "valid: key usage not critical": lambda: by(signer(usages_critical=False)),
    "valid: signer says that it is no authority": lambda: by(signer(ca=False)),
    "valid: signer without key identifiers": lambda: by(signer(identifiers=False)),
    "valid: signer with an unknown extension": lambda: by(signer(extensions=(pki.UNKNOWN,))),
    "valid: signer expired since": lambda: by(signer(dies=STAMPED + timedelta(days=1))),
    "valid: signer's first second": lambda: by(signer(born=STAMPED)),
    "valid: signer's last second": lambda: given(by(signer(dies=STAMPED)), beyond_openssl=LAST_SECOND),
    "valid: signer's end in GeneralizedTime": lambda: by(signer(dies=STAMPED.replace(year=2060))),
    "valid: signer below the root": chain,
    "valid: chain of four": lambda: chain(("Forge I", {}), ("Forge J", {})),
    "valid: chain of six": lambda: chain(("Forge I", {}), ("Forge J", {}), ("Forge K", {}), ("Forge L", {})),
    "valid: path length just long enough": lambda: middle({"path_length": 1}, path_length=0),
    "valid: intermediate for time stamping": lambda: _meant_for(pki.TIME_STAMPING),
    "valid: intermediate for any purpose": lambda: _meant_for(pki.ANY_PURPOSE),
    # RFC 5280 lets an extended key usage speak of its own certificate's key only, and authorities that are in
    # use have others than time stamping above a signer (Fujitsu, GlobalSign for Adobe).
    "valid: intermediate for OCSP signing": lambda: _meant_for(pki.OCSP_SIGNING),
    "valid: root for OCSP signing": lambda: middle(
        {"purposes": (pki.OCSP_SIGNING,), "purposes_critical": False}
    ),
    "valid: certificate whose length ends in 0x80": lambda: by(signer_of_length_80()),
    "valid: certificate whose length ends in 0x80 and that writes a default": lambda: by(
        signer_of_length_80(WRITTEN_DEFAULT)
    ),
    "valid: signer that writes a default": lambda: by(signer(extensions=(WRITTEN_DEFAULT,))),
    "valid: signed attributes of 384 bytes": lambda: _attributes_of(384),
    "valid: name among the permitted ones": lambda: middle(
        extensions=(name_constraints(permitted=(organization("Forge"),)),)
    ),
    "valid: names of another kind constrained": lambda: middle(
        extensions=(name_constraints(permitted=(dns("example.org"),)),)
    ),
    "valid: root signed with SHA-1": lambda: middle({"scheme": Scheme("ecdsa", "sha1")}),
    "valid: root whose own signature is wrong": lambda: middle({"damaged": True}),
    "valid: intermediate signed with PSS": lambda: middle(
        {"key": key("rsa-2048", "pss root")}, scheme=Scheme("pss")
    ),
    "valid: intermediate with an Ed25519 key": lambda: middle(key=key("ed25519", "intermediate")),
    "valid: pinned intermediate": _pinned_intermediate,
    "valid: pinned intermediate with the signer alone": lambda: _pinned_intermediate(
        certificates=(house().signer.der,)
    ),
    "valid: two roots pinned": lambda: given(recipe(), roots=(house("B").root.der, house().root.der)),
    "valid: intermediate certified twice": _two_ways,
    "valid: intermediate renewed": _renewed,
}
