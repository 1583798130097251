"""Every case by its name: a defect, or `valid: ` and what is unusual. Here are the checks 1 to 9."""

import base64
import hashlib
from collections.abc import Callable
from functools import partial

from tests.forge import der, token
from tests.forge.case import (
    Case,
    Cases,
    Made,
    also,
    by,
    case,
    changed,
    edited,
    embedding,
    given,
    incomplete,
    issuing,
    padded,
    placed,
    recipe,
    refused,
    signer,
    signer_of_length_80,
    verified,
)
from tests.forge.defects_chain import AUTHORITY, CHAIN, KEEPS, PURPOSE, REVOCATION, SIGNATURE, TIME
from tests.forge.edges import EDGES
from tests.forge.keys import Scheme, digest, key
from tests.forge.pki import UNKNOWN, UNKNOWN_CRITICAL, Cert, house, stamper
from tests.forge.token import (
    CONTENT_TYPE,
    DATA,
    DOCUMENT,
    MESSAGE_DIGEST,
    PAGE,
    SIGNED_DATA,
    SIGNING_CERTIFICATE_V2,
    Ess,
    Request,
    accuracy,
    attribute,
    own_id,
    protection,
    with_ids,
)
from tests.forge.valid import CHAINS, INFO, RESPONSES, SIGNING

GOOD = recipe


def _pem(raw: bytes, label: str = "TIMESTAMP") -> bytes:
    return (
        f"-----BEGIN {label}-----\n".encode() + base64.encodebytes(raw) + f"-----END {label}-----\n".encode()
    )


FORM: Cases = {
    "empty": lambda: b"",
    "white space only": lambda: b" \n\n",
    "one byte more than a mebibyte": lambda: GOOD().make() + bytes((1 << 20) + 1 - len(GOOD().make())),
    "a megabyte more than a mebibyte": lambda: der.seq(der.octets(bytes(2 << 20))),
    "PEM": lambda: _pem(GOOD().make()),
    "PEM after a line of text": lambda: b"token of today\n" + _pem(GOOD().make()),
    "base64 on one line": lambda: base64.b64encode(GOOD().make()),
    "base64 in lines": lambda: base64.encodebytes(GOOD().make()),
    "HTML": lambda: PAGE,
    "HTML after a blank line": lambda: b"\n  " + PAGE,
    "HTML after a byte order mark": lambda: b"\xef\xbb\xbf" + PAGE,
    "JSON": lambda: b'{"error": "quota exceeded"}\n',
    "plain text": lambda: b"Too many requests\n",
    "hexadecimal": lambda: GOOD().make().hex().encode(),
    "the document instead of the token": lambda: DOCUMENT,
    "a leading blank before the token": lambda: b"\n" + GOOD().make(),
}

ENCODING: Cases = {
    "trailing zero byte": lambda: GOOD().make() + b"\x00",
    "trailing line feed": lambda: GOOD().make() + b"\n",
    "trailing NULL element": lambda: GOOD().make() + der.NULL,
    "the token twice": lambda: GOOD().make() * 2,
    "trailing byte after a bare token": lambda: GOOD(bare=True).make() + b"\x00",
    "trailing zero byte inside the response": lambda: padded("response", b"\x00"),
    "trailing zero byte inside the content info": lambda: padded("content_info", b"\x00"),
    "trailing zero bytes inside SignedData": lambda: padded("signed_data", b"\x00\x00"),
    "trailing byte inside the SignerInfo": lambda: padded("signer_info", b"\x00"),
    "trailing byte among the certificates": lambda: padded("certificates", b"\x00"),
    "cut in half": lambda: GOOD().make()[: len(GOOD().make()) // 2],
    "last byte missing": lambda: GOOD().make()[:-1],
    "first four bytes only": lambda: GOOD().make()[:4],
    "a lone tag": lambda: b"\x30",
    "first byte missing a length": lambda: b"\x30\x82\x01",
    "indefinite length outside": lambda: der.indefinite(GOOD().make()),
    "indefinite length of SignedData": lambda: edited("signed_data", der.indefinite),
    "indefinite length without an end": lambda: b"\x30\x80" + der.body(GOOD().make()),
    "length with a byte too many outside": lambda: der.long_length(GOOD().make()),
    "length with a byte too many in the SignerInfo": lambda: edited("signer_info", der.long_length),
    "length with a byte too many in the status": lambda: changed("response", (0,), der.long_length),
    "length of eight bytes": lambda: b"\x30\x88" + b"\xff" * 8 + b"\x02\x01\x00",
    "length of 126 bytes": lambda: b"\x30\xfe" + b"\x01" * 200,
    "inner length beyond the outer": lambda: der.seq(b"\x30\x7f\x02\x01\x00"),
    "content in two segments": lambda: edited("content", der.constructed),
    "signature in two segments": lambda: changed("signer_info", (5,), der.constructed),
    "status with a needless zero byte": lambda: changed("response", (0, 0), lambda _: b"\x02\x02\x00\x00"),
    "end-of-contents mark as a value": lambda: der.seq(b"\x00\x00"),
    "half a million empty elements": lambda: der.seq(der.NULL * 500_000),
    "a hundred thousand elements in an unsigned attribute": lambda: GOOD(
        unsigned=(der.seq(der.oid("1.3.6.1.4.1.99999.7"), der.tlv(0x31, der.NULL * 100_000)),)
    ),
    "nested 41 deep": lambda: der.nested(41),
    "nested 200 000 deep": lambda: der.nested(200_000),
    "nested deep inside an unsigned attribute": lambda: GOOD(
        unsigned=(der.seq(der.oid("1.3.6.1.4.1.99999.7"), der.set_of(der.nested(50))),)
    ),
}


def _unsuccessful(status: int, **knobs: object) -> Cases:
    return {
        f"status {status} without a token": lambda: GOOD(status=status, with_token=False, **knobs),
        f"status {status} with a token": lambda: GOOD(status=status, **knobs),
    }


FAILURES = {
    "bad algorithm": 0,
    "bad request": 2,
    "bad data format": 5,
    "time not available": 14,
    "unaccepted policy": 15,
    "unaccepted extension": 16,
    "additional information not available": 17,
    "system failure": 25,
}

STATUS: Cases = {
    **_unsuccessful(2),
    **_unsuccessful(3),
    **_unsuccessful(4),
    **_unsuccessful(5),
    **_unsuccessful(6),
    **_unsuccessful(-1),
    **_unsuccessful(256),
    "rejected with a text": lambda: GOOD(status=2, text="Time source is not synchronised", with_token=False),
    "rejected with a text of another alphabet": lambda: GOOD(
        status=2, text="Zeitquelle gestört — 時刻", with_token=False
    ),
    **{
        f"rejected: {name}": lambda bit=bit: GOOD(status=2, failure=bit, with_token=False)
        for name, bit in FAILURES.items()
    },
    "granted without a token": lambda: GOOD(with_token=False),
    "granted with modifications without a token": lambda: GOOD(status=1, with_token=False),
    "granted with a failure and no token": lambda: GOOD(failure=14, with_token=False),
    "empty response": der.seq,
    "a request instead of a reply": lambda: Request(nonce=5).der,
}

GEN_TIMES: dict[str, str | bytes] = {
    "with an offset": "20240301120000+0000",
    "without a zone": "20240301120000",
    "with a fraction and no zone": "20240301120000.5",
    "with a lower case z": "20240301120000z",
    "without seconds": "202403011200Z",
    "with a comma": "20240301120000,5Z",
    "with a point and no fraction": "20240301120000.Z",
    "with two fractions": "20240301120000.5.5Z",
    "of a thirteenth month": "20241301120000Z",
    "of a thirtieth of February": "20240230120000Z",
    "of hour 24": "20240301240000Z",
    "of minute 60": "20240301126000Z",
    "of second 61": "20240301120061Z",
    "of two digits for the year": "240301120000Z",
    "empty": "",
    "of a single Z": "Z",
    "with a blank": "20240301 20000Z",
    "with a sign": "+0240301120000Z",
    "with other digits": "\uff120240301120000Z",
    "with a NUL byte": b"20240301120000Z\x00",
    "of the year 0": "00000301120000Z",
}


def _tst(position: int, change: object) -> object:
    """Return an edit of one field of TSTInfo; None takes it out."""

    def edit(value: bytes) -> bytes:
        parts = list(der.children(value))
        parts[position] = b"" if change is None else change(parts[position])
        return der.seq(*parts)

    return edit


def _without_last(value: bytes) -> bytes:
    return der.seq(*list(der.children(value))[:-1])


def _info(edit: object) -> object:
    return edited("tst_info", edit)


# Where a sequence stands in a response. Nobody signs these: one field more is a place to hide bytes in.
SEQUENCES = {
    "the status": (0,),
    "the content info": (1,),
    "SignedData": (1, 1, 0),
    "a listed digest algorithm": (1, 1, 0, 1, 0),
    "the encapsulated content": (1, 1, 0, 2),
    "the SignerInfo": (1, 1, 0, 4, 0),
    "the signer's identifier": (1, 1, 0, 4, 0, 1),
    "the SignerInfo's digest algorithm": (1, 1, 0, 4, 0, 2),
    "the signature algorithm": (1, 1, 0, 4, 0, 4),
}
# The same for what is wrapped in an explicit tag, which holds one element.
WRAPPERS = {"the content info's tag": (1, 1), "the content's tag": (1, 1, 0, 2, 1)}

# The token's own encoding is looked at in check 2; that of TSTInfo, bytes to the token, where it is read.
CONTENT: Cases = {
    "TRUE that is not 0xff": lambda: recipe(ordering=b"\x01\x01\x01"),
    "trailing byte after TSTInfo": lambda: _info(lambda v: v + b"\x00"),
    "trailing element after TSTInfo": lambda: _info(lambda v: v + der.NULL),
    "TSTInfo twice": lambda: _info(lambda v: v * 2),
    "TSTInfo of indefinite length": lambda: _info(der.indefinite),
    "TSTInfo with a byte too many in its length": lambda: _info(der.long_length),
    "TSTInfo with an integer of needless bytes": lambda: _info(_tst(3, lambda _: b"\x02\x02\x00\x05")),
    "TSTInfo cut off": lambda: _info(lambda v: v[:-1]),
    "TSTInfo with two nonces": lambda: padded("tst_info", der.integer(1), der.integer(2)),
    "TSTInfo with its fields out of order": lambda: _info(
        lambda v: der.with_more(v, der.boolean(True), accuracy(1))
    ),
    "accuracy with a field too many": lambda: recipe(accuracy=der.with_more(accuracy(1), der.NULL)),
    "imprint algorithm with a field too many": lambda: changed(
        "imprint", (0,), lambda a: der.with_more(a, der.NULL)
    ),
    "imprint algorithm with parameters": lambda: changed("imprint", (0, 1), lambda _: der.integer(1)),
}

STRUCTURE: Cases = {
    **CONTENT,
    **{
        f"a field too many in {where}": lambda path=path: changed(
            "response", path, lambda part: der.with_more(part, der.NULL)
        )
        for where, path in (*SEQUENCES.items(), *WRAPPERS.items())
        if path != (0,)
    },
    "embedded element that is no certificate": lambda: recipe(certificates=(house().signer.der, der.NULL)),
    "no digest algorithm listed": lambda: recipe(digest_algorithms=()),
    "another digest algorithm listed": lambda: recipe(digest_algorithms=("sha512",)),
    "sixty-five embedded certificates": lambda: recipe(certificates=(house().signer.der,) * 65),
    "two certificate sets": lambda: changed("signed_data", (3,), lambda one: one * 2),
    "two sets of signed attributes": lambda: changed("signer_info", (3,), lambda one: one * 2),
    "content info of type data": lambda: recipe(outer_type=DATA),
    "content info of type enveloped data": lambda: recipe(outer_type="1.2.840.113549.1.7.3"),
    "content info of an unknown type": lambda: recipe(outer_type="1.3.6.1.4.1.99999.5"),
    "a certificate instead of a token": lambda: der.seq(der.seq(der.integer(0)), house().signer.der),
    "content of type data": lambda: recipe(content_type=DATA),
    "content of type signed data": lambda: recipe(content_type=SIGNED_DATA),
    "content of an unknown type": lambda: recipe(content_type="1.3.6.1.4.1.99999.5"),
    "content left out": lambda: recipe(detached=True),
    "content empty": lambda: edited("tst_info", lambda _: b""),
    "content no TSTInfo but an integer": lambda: _info(lambda _: der.integer(1)),
    "content another sequence": lambda: _info(lambda _: der.seq(der.integer(1))),
    "no SignerInfo": lambda: recipe(signer_infos=0),
    "two SignerInfos": lambda: recipe(signer_infos=2),
    "SignerInfo without a signature": lambda: edited("signer_info", _without_last),
    "SignedData without SignerInfos": lambda: edited("signed_data", _without_last),
    "TSTInfo version 0": lambda: recipe(tst_version=0),
    "TSTInfo version 2": lambda: recipe(tst_version=2),
    "TSTInfo version -1": lambda: recipe(tst_version=-1),
    "TSTInfo without a version": lambda: _info(_tst(0, None)),
    "TSTInfo without a policy": lambda: _info(_tst(1, None)),
    "TSTInfo without an imprint": lambda: _info(_tst(2, None)),
    "TSTInfo without a serial number": lambda: _info(_tst(3, None)),
    "TSTInfo without genTime": lambda: _info(_tst(4, None)),
    "TSTInfo with a field too many": lambda: padded("tst_info", der.NULL),
    "imprint with a field too many": lambda: padded("imprint", der.NULL),
    "genTime as UTCTime": lambda: _info(_tst(4, lambda _: der.tlv(0x17, b"240301120000Z"))),
    "genTime as text": lambda: _info(_tst(4, lambda _: der.utf8("20240301120000Z"))),
    **{f"genTime {how}": lambda text=text: recipe(gen_time=text) for how, text in GEN_TIMES.items()},
    "TSTInfo with a critical extension": lambda: recipe(extensions=(UNKNOWN_CRITICAL,)),
    "accuracy of 1000 milliseconds": lambda: recipe(accuracy=accuracy(millis=1000)),
    "accuracy of 1000 microseconds": lambda: recipe(accuracy=accuracy(micros=1000)),
    "accuracy of less than nothing": lambda: recipe(accuracy=accuracy(seconds=-1)),
    "SignedData version 1": lambda: recipe(version=1),
    "SignerInfo version 3 beside a serial number": lambda: recipe(signer_version=3),
    "SignerInfo version 1 beside a key identifier": lambda: recipe(by_key=True, signer_version=1),
}

HASH = digest("sha256", DOCUMENT)
WINDOWS = DOCUMENT.replace(b"\n", b"\r\n")


IMPRINT: Cases = {
    "token for another document": lambda: recipe(document=b"another"),
    "token for the empty document": lambda: recipe(document=b""),
    "document one byte longer": lambda: given(recipe(), document=DOCUMENT + b" "),
    "document without its last line feed": lambda: given(recipe(), document=DOCUMENT[:-1]),
    "document with other line endings": lambda: given(recipe(), document=WINDOWS),
    "token for the document with other line endings": lambda: recipe(document=WINDOWS),
    "token for the document with a byte order mark": lambda: recipe(document=b"\xef\xbb\xbf" + DOCUMENT),
    "token for the hash of the document": lambda: recipe(document=HASH),
    "token for the hash in hexadecimal": lambda: recipe(document=HASH.hex().encode()),
    "token for a line of sha256sum": lambda: recipe(document=HASH.hex().encode() + b"  protocol.md\n"),
    "imprint of zeros": lambda: recipe(imprint=bytes(32)),
    "imprint cut to half": lambda: recipe(imprint=HASH[:16]),
    "imprint one byte longer": lambda: recipe(imprint=HASH + b"\x00"),
    "imprint empty": lambda: recipe(imprint=b""),
    "imprint a hash in hexadecimal": lambda: recipe(imprint=HASH.hex().encode()),
    "imprint SHA-1": lambda: recipe(imprint_digest="sha1"),
    "imprint MD5": lambda: recipe(imprint_digest="md5"),
    "imprint SHA-224": lambda: recipe(imprint_digest="sha224"),
    "imprint SHA3-256": lambda: recipe(imprint_digest="sha3_256"),
    "SHA-1 bytes under the name of SHA-256": lambda: recipe(imprint=digest("sha1", DOCUMENT)),
    "SHA-256 bytes under the name of SHA-512": lambda: recipe(imprint_digest="sha512", imprint=HASH),
    "SHA-512 bytes under the name of SHA-256": lambda: recipe(imprint=hashlib.sha512(DOCUMENT).digest()),
    "digest of another document": lambda: given(recipe(), document=None, digest=("sha256", bytes(32))),
}

GOOD_REQUEST = Request(nonce=77)


def _answers(request: bytes, **knobs: object) -> object:
    return given(recipe(**{"nonce": 77, **knobs}), request=request)


REQUEST: Cases = {
    "another nonce": lambda: _answers(GOOD_REQUEST.der, nonce=78),
    "nonce of the other sign": lambda: _answers(GOOD_REQUEST.der, nonce=-77),
    "nonce of the same last 64 bits": lambda: _answers(GOOD_REQUEST.der, nonce=77 + (1 << 64)),
    "nonce missing in the token": lambda: _answers(GOOD_REQUEST.der, nonce=None),
    "nonce zero instead of none": lambda: _answers(Request(nonce=0).der, nonce=None),
    "nonce that nobody asked for": lambda: _answers(Request().der),
    "request for another document": lambda: _answers(Request(document=b"another", nonce=77).der),
    "request with another hash": lambda: _answers(Request(digest="sha512", nonce=77).der),
    "request with the same bytes under another algorithm": lambda: _answers(
        Request(digest="sha512", imprint=HASH, nonce=77).der
    ),
    "request for another policy": lambda: _answers(Request(nonce=77, policy="1.3.6.1.4.1.99999.2.2").der),
    "request of version 2": lambda: _answers(Request(nonce=77, version=2).der),
    "request with a trailing byte": lambda: _answers(GOOD_REQUEST.der + b"\x00"),
    "request cut off": lambda: _answers(GOOD_REQUEST.der[:-1]),
    "request of indefinite length": lambda: _answers(der.indefinite(GOOD_REQUEST.der)),
    "request empty": lambda: _answers(b""),
    "request that is a reply": lambda: _answers(recipe(nonce=77).make()),
    "request with a field too many": lambda: _answers(der.with_more(GOOD_REQUEST.der, der.NULL)),
    "request that is text": lambda: _answers(b"openssl ts -query"),
}

OTHER_KEY = "another signer of the same number"


def _twin() -> bytes:
    """Return another key's certificate of the signer's issuer and serial number."""
    return signer(key=key("ecdsa-p256", OTHER_KEY)).der


def _padded(part: int) -> object:
    """An intermediate with one field more in its signed part (0) or in its algorithm (1)."""
    padded = der.change(issuing().der, (part,), lambda v: der.with_more(v, der.NULL))
    return embedding(house().signer, padded)


def _unused_bits() -> Case:
    """A signature said to end a bit earlier: another certificate, and to a careless reader the same."""
    for serial in range(1, 99):
        plain = issuing().but(serial=serial).der
        if plain[-1] % 2 == 0:
            cut = der.change(plain, (2,), lambda v: der.bits(der.body(v)[1:], 1))
            return embedding(house().signer, cut)
    raise ValueError("no signature ends in a zero bit")


def _lacking(*certificates: Cert) -> Case:
    return incomplete("signer", embedding(*certificates))


SIGNER: Cases = {
    "no certificate at all": _lacking,
    "only the intermediate embedded": lambda: _lacking(issuing()),
    "only another signer embedded": lambda: _lacking(stamper("Another", issuing())),
    "only a certificate of another serial number": lambda: _lacking(signer(serial=5)),
    "only a certificate of another issuer": lambda: _lacking(signer(issuer=issuing("B"))),
    "no certificate of the key identifier": lambda: incomplete(
        "signer", recipe(by_key=True, sid=der.tlv(0x80, bytes(20)))
    ),
    "two certificates of one issuer and number": lambda: embedding(signer(), _twin()),
    "two certificates of one key identifier": lambda: embedding(signer(), signer(serial=6), by_key=True),
    "embedded sequence that is no certificate": lambda: embedding(
        signer(), issuing(), der.seq(der.integer(1))
    ),
    "embedded certificate with an extension twice": lambda: embedding(
        signer(), signer(serial=9, extensions=(UNKNOWN, UNKNOWN))
    ),
    "embedded certificate with a field too many": lambda: embedding(
        signer(), der.with_more(issuing().der, der.NULL)
    ),
    "intermediate with unused bits in its signature": _unused_bits,
    "intermediate with a field too many in its signed part": lambda: _padded(0),
    "intermediate with a field too many in its algorithm": lambda: _padded(1),
    "signer given, and the token by another": lambda: given(recipe(), signer=house("B").signer.der),
    "another certificate of the same number archived": lambda: given(recipe(), untrusted=(_twin(),)),
}


def _value(ids: tuple[Ess, ...], version: int) -> tuple[bytes, ...]:
    return (der.seq(der.seq(*(each.encode(version) for each in ids))),)


def _other_id(version: int) -> bytes:
    return _value((Ess(issuing().der),), version)[0]


def _identified(*values: bytes, version: int = 2, **knobs: object) -> object:
    """Return a recipe whose attribute of signing certificates has these values."""
    kind = SIGNING_CERTIFICATE_V2 if version == 2 else token.SIGNING_CERTIFICATE
    return recipe(values=((kind, values),), **knobs)


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
    return by(last, certificates=(changed, issuing().der))


CERTIFICATE_ID: Cases = {
    "certificate that a parser would mend": _reread,
    "ESS missing": lambda: recipe(attributes=(CONTENT_TYPE, MESSAGE_DIGEST)),
    "no signed attributes": lambda: recipe(attributes=()),
    "ESS only among the unsigned attributes": lambda: recipe(
        attributes=(CONTENT_TYPE, MESSAGE_DIGEST),
        unsigned=(attribute(SIGNING_CERTIFICATE_V2, *_value((own_id(),), 2)),),
    ),
    "ESS v2 names the intermediate": lambda: with_ids(Ess(issuing().der)),
    "ESS v2 names another signer": lambda: with_ids(Ess(house("B").signer.der)),
    "ESS v2 names a certificate of the same number": lambda: with_ids(Ess(_twin())),
    "ESS v1 names the intermediate": lambda: with_ids(Ess(issuing().der), version=1),
    "ESS v2 hash of zeros": lambda: with_ids(own_id(value=bytes(32))),
    "ESS v2 hash cut short": lambda: with_ids(own_id(value=bytes.fromhex("00") * 20)),
    "ESS v2 hash empty": lambda: with_ids(own_id(value=b"")),
    "ESS v2 with SHA-1": lambda: with_ids(own_id(digest="sha1")),
    "ESS v2 with MD5": lambda: with_ids(own_id(digest="md5")),
    "ESS v2 names the signer second": lambda: with_ids(Ess(issuing().der), own_id()),
    "ESS v2 empty": with_ids,
    "ESS v1 empty": lambda: with_ids(version=1),
    "ESS v2 with another serial number": lambda: placed(5),
    "ESS v2 with another issuer": lambda: placed(house().signer.number, "B"),
    "ESS v1 with another serial number": lambda: placed(5, version=1),
    "ESS v1 right and v2 wrong": lambda: _identified(_other_id(2), attributes=token.BOTH_IDS),
    "ESS v1 wrong and v2 right": lambda: _identified(_other_id(1), version=1, attributes=token.BOTH_IDS),
    "ESS v2 with two values": lambda: _identified(*_value((own_id(),), 2), _other_id(2)),
    "ESS v2 without a value": _identified,
    "ESS v2 not a sequence": lambda: _identified(der.integer(1)),
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


def _built(judged: Callable[[Made], Case], make: Callable[[], Made]) -> Case:
    return judged(make())


GROUPS: tuple[tuple[str, Cases], ...] = (
    *(("form", FORM), ("encoding", ENCODING), ("status", STATUS), ("structure", STRUCTURE)),
    *(("imprint", IMPRINT), ("request", REQUEST), ("signer", SIGNER), ("certificate_id", CERTIFICATE_ID)),
    *(("signed_attributes", SIGNED_ATTRIBUTES), ("signature", SIGNATURE), ("purpose", PURPOSE)),
    *(("chain", CHAIN), ("authority", AUTHORITY), ("time", TIME), ("revocation", REVOCATION)),
)
VALID = (RESPONSES, INFO, SIGNING, CHAINS, KEEPS)
_TABLES = (
    *((partial(refused, check), cases) for check, cases in GROUPS),
    *((verified, cases) for cases in VALID),
    *((partial(case, check=check, expected=verdict), cases) for (verdict, check), cases in EDGES.items()),
)
CASES: dict[str, Callable[[], Case]] = {
    name: partial(_built, judged, make) for judged, cases in _TABLES for name, make in cases.items()
}
if len(CASES) != sum(len(cases) for _, cases in _TABLES):
    raise ValueError("two cases have one name")
