"""Checks 7 to 9: signer, certificate identifier, signed attributes."""

from tests.forge import der, token
from tests.forge.case import (
    Case,
    Cases,
    also,
    by,
    edited,
    embedding,
    given,
    incomplete,
    placed,
    recipe,
    signer,
    signer_of_length_80,
)
from tests.forge.keys import Scheme, digest, key
from tests.forge.pki import UNKNOWN, Cert, house, stamper
from tests.forge.token import (
    CONTENT_TYPE,
    MESSAGE_DIGEST,
    SIGNING_CERTIFICATE_V2,
    Ess,
    attribute,
    own_id,
    protection,
    with_ids,
)

OTHER_KEY = "another signer of the same number"


def _twin() -> bytes:
    """Return another key's certificate of the signer's issuer and serial number."""
    return signer(key=key("ecdsa-p256", OTHER_KEY)).der


def _padded(part: int) -> object:
    """An intermediate with one field more in its signed part (0) or in its algorithm (1)."""
    padded = der.change(house().intermediate.der, (part,), lambda v: der.with_more(v, der.NULL))
    return embedding(house().signer, padded)


def _unused_bits() -> Case:
    """A signature said to end a bit earlier: another certificate, and to a careless reader the same."""
    for serial in range(1, 99):
        plain = house().intermediate.but(serial=serial).der
        if plain[-1] % 2 == 0:
            cut = der.change(plain, (2,), lambda v: der.bits(der.body(v)[1:], 1))
            return embedding(house().signer, cut)
    raise ValueError("no signature ends in a zero bit")


def _lacking(*certificates: Cert) -> Case:
    return incomplete("signer", embedding(*certificates))


SIGNER: Cases = {
    "no certificate at all": _lacking,
    "only the intermediate embedded": lambda: _lacking(house().intermediate),
    "only another signer embedded": lambda: _lacking(stamper("Another", house().intermediate)),
    "only a certificate of another serial number": lambda: _lacking(signer(serial=5)),
    "only a certificate of another issuer": lambda: _lacking(signer(issuer=house("B").intermediate)),
    "no certificate of the key identifier": lambda: incomplete(
        "signer", recipe(by_key=True, sid=der.tlv(0x80, bytes(20)))
    ),
    "two certificates of one issuer and number": lambda: embedding(signer(), _twin()),
    "two certificates of one key identifier": lambda: embedding(signer(), signer(serial=6), by_key=True),
    "embedded sequence that is no certificate": lambda: embedding(
        signer(), house().intermediate, der.seq(der.integer(1))
    ),
    "embedded certificate with an extension twice": lambda: embedding(
        signer(), signer(serial=9, extensions=(UNKNOWN, UNKNOWN))
    ),
    "embedded certificate with a field too many": lambda: embedding(
        signer(), der.with_more(house().intermediate.der, der.NULL)
    ),
    "intermediate with unused bits in its signature": _unused_bits,
    "intermediate with a field too many in its signed part": lambda: _padded(0),
    "intermediate with a field too many in its algorithm": lambda: _padded(1),
    "signer given, and the token by another": lambda: given(recipe(), signer=house("B").signer.der),
    "another certificate of the same number archived": lambda: given(recipe(), untrusted=(_twin(),)),
}


def _value(ids: tuple[Ess, ...], version: int) -> tuple[bytes, ...]:
    return (der.seq(der.seq(*(each.encode(version) for each in ids))),)


def _reread() -> Case:
    """The signer's certificate changed where a parser that writes it again would mend it.

    Its length ends in the byte 0x80, which asn1crypto takes for an indefinite length: `dump` then does not
    return the bytes that were read but new ones, without the bits that a key usage does not count.
    """
    last = signer_of_length_80()
    usage = bytes.fromhex("0403020780")
    changed = last.der.replace(usage, bytes.fromhex("0403020781"))
    if changed == last.der:
        raise ValueError("nothing was changed")
    return by(last, certificates=(changed, house().intermediate.der))


CERTIFICATE_ID: Cases = {
    "certificate that a parser would mend": _reread,
    "ESS missing": lambda: recipe(attributes=(CONTENT_TYPE, MESSAGE_DIGEST)),
    "no signed attributes": lambda: recipe(attributes=()),
    "ESS only among the unsigned attributes": lambda: recipe(
        attributes=(CONTENT_TYPE, MESSAGE_DIGEST),
        unsigned=(attribute(SIGNING_CERTIFICATE_V2, *_value((own_id(),), 2)),),
    ),
    "ESS v2 names the intermediate": lambda: with_ids(Ess(house().intermediate.der)),
    "ESS v2 names another signer": lambda: with_ids(Ess(house("B").signer.der)),
    "ESS v2 names a certificate of the same number": lambda: with_ids(Ess(_twin())),
    "ESS v1 names the intermediate": lambda: with_ids(Ess(house().intermediate.der), version=1),
    "ESS v2 hash of zeros": lambda: with_ids(own_id(value=bytes(32))),
    "ESS v2 hash cut short": lambda: with_ids(own_id(value=bytes.fromhex("00") * 20)),
    "ESS v2 hash empty": lambda: with_ids(own_id(value=b"")),
    "ESS v2 with SHA-1": lambda: with_ids(own_id(digest="sha1")),
    "ESS v2 with MD5": lambda: with_ids(own_id(digest="md5")),
    "ESS v2 names the signer second": lambda: with_ids(Ess(house().intermediate.der), own_id()),
    "ESS v2 empty": with_ids,
    "ESS v1 empty": lambda: with_ids(version=1),
    "ESS v2 with another serial number": lambda: placed(5),
    "ESS v2 with another issuer": lambda: placed(house().signer.number, "B"),
    "ESS v1 with another serial number": lambda: placed(5, version=1),
    "ESS v1 right and v2 wrong": lambda: recipe(
        attributes=token.BOTH_IDS,
        values=((SIGNING_CERTIFICATE_V2, _value((Ess(house().intermediate.der),), 2)),),
    ),
    "ESS v1 wrong and v2 right": lambda: recipe(
        attributes=token.BOTH_IDS,
        values=((token.SIGNING_CERTIFICATE, _value((Ess(house().intermediate.der),), 1)),),
    ),
    "ESS v2 with two values": lambda: recipe(
        values=(
            (SIGNING_CERTIFICATE_V2, (*_value((own_id(),), 2), *_value((Ess(house().intermediate.der),), 2))),
        )
    ),
    "ESS v2 without a value": lambda: recipe(values=((SIGNING_CERTIFICATE_V2, ()),)),
    "ESS v2 not a sequence": lambda: recipe(values=((SIGNING_CERTIFICATE_V2, (der.integer(1),)),)),
}


def _attributes(*kinds: str, **knobs: object) -> object:
    return recipe(attributes=(*kinds, SIGNING_CERTIFICATE_V2), **knobs)


def _values(kind: str, *values: bytes) -> object:
    return recipe(values=((kind, values),))


WRONG = der.octets(bytes(32))

SIGNED_ATTRIBUTES: Cases = {
    "ESS v2 twice": lambda: recipe(attributes=(*token.BOTH_IDS, SIGNING_CERTIFICATE_V2)),
    "an unknown attribute twice": lambda: also(*(attribute("1.3.6.1.4.1.99999.9", der.NULL),) * 2),
    "algorithm protection of another digest": lambda: also(protection("sha512", Scheme("rsa"))),
    "algorithm protection of another signature": lambda: also(protection("sha256", Scheme("rsa", "sha512"))),
    "message digest of the encoded content": lambda: _values(
        MESSAGE_DIGEST, der.octets(digest("sha256", der.octets(recipe().tst_info())))
    ),
    "content type missing": lambda: _attributes(MESSAGE_DIGEST),
    "content type twice": lambda: _attributes(CONTENT_TYPE, CONTENT_TYPE, MESSAGE_DIGEST),
    "content type with two values": lambda: _values(
        CONTENT_TYPE, der.oid(token.TST_INFO), der.oid(token.DATA)
    ),
    "content type without a value": lambda: _values(CONTENT_TYPE),
    "content type data": lambda: _values(CONTENT_TYPE, der.oid(token.DATA)),
    "content type text": lambda: _values(CONTENT_TYPE, der.utf8(token.TST_INFO)),
    "message digest missing": lambda: _attributes(CONTENT_TYPE),
    "message digest twice": lambda: _attributes(CONTENT_TYPE, MESSAGE_DIGEST, MESSAGE_DIGEST),
    "message digest right and wrong": lambda: recipe(extra_attributes=(attribute(MESSAGE_DIGEST, WRONG),)),
    "message digest with two values": lambda: _values(MESSAGE_DIGEST, WRONG, der.octets(b"\x01" * 32)),
    "message digest without a value": lambda: _values(MESSAGE_DIGEST),
    "message digest wrong": lambda: _values(MESSAGE_DIGEST, WRONG),
    "message digest empty": lambda: _values(MESSAGE_DIGEST, der.octets(b"")),
    "message digest no octet string": lambda: _values(MESSAGE_DIGEST, der.integer(1)),
    "content changed after signing": lambda: edited(
        "content", lambda v: v.replace(b"20240301120000Z", b"20230301120000Z")
    ),
    "serial number changed after signing": lambda: edited(
        "content", lambda v: v.replace(der.integer(20240301), der.integer(20240302))
    ),
}
