"""Checks 1 to 3: form, encoding, status."""

import base64

from tests.forge import der
from tests.forge.case import Cases, changed, edited, padded, recipe
from tests.forge.token import DOCUMENT, PAGE, Request

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
