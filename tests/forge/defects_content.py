"""Checks 4 to 6: structure, imprint, request."""

import hashlib

from tests.forge import der
from tests.forge.case import Cases, changed, edited, given, padded, recipe
from tests.forge.keys import digest
from tests.forge.pki import UNKNOWN_CRITICAL, house
from tests.forge.token import DATA, DOCUMENT, SIGNED_DATA, Request, accuracy

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
