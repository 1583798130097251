"""The authorities on loopback answer over real HTTP, and fail as told."""

from __future__ import annotations

import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from http.client import HTTPException

import pytest

from tests.forge.server import FAULTS, Authority, OpensslAuthority
from tests.forge.token import DOCUMENT, STAMPED, Request
from toolkit.prereg.token.verify import Material, verify_token

REQUEST = Request(nonce=1 << 62)
# Where each fault shows: at the verifier, or before it in what HTTP says.
SHOWS = {
    "wrong nonce": "request",
    "no nonce": "request",
    "wrong imprint": "imprint",
    "rejection": "status",
    "truncated": "encoding",
    "HTML": "form",
    "empty body": "form",
    "5 MB body": "form",
    "genTime in the future": "time",
    "no certificate": "signer",
    "other policy": "authority",
    "wrong signature": "signature",
    "genTime off by days": None,
    "HTTP 404": urllib.error.HTTPError,
    "HTTP 500": urllib.error.HTTPError,
    "HTTP 503 twice": urllib.error.HTTPError,
    "redirect": urllib.error.HTTPError,
    "redirect in a circle": urllib.error.HTTPError,
    "closes the connection": (HTTPException, OSError),
    "less than announced": HTTPException,
    "slow": OSError,
}


def ask(url: str, request: Request = REQUEST, patience: float = 20) -> bytes:
    call = urllib.request.Request(  # noqa: S310 - loopback
        url, data=request.der, headers={"Content-Type": "application/timestamp-query"}
    )
    try:
        with urllib.request.urlopen(call, timeout=patience) as answer:  # noqa: S310 - loopback
            return answer.read()
    except urllib.error.HTTPError as error:
        error.close()
        raise


def judge(raw: bytes, root: bytes, at: datetime | None = None, request: Request = REQUEST):
    material = Material(
        document=DOCUMENT, roots=(root,), request=request.der, policies=("1.3.6.1.4.1.99999.2.1",)
    )
    return verify_token(raw, material, at=at or datetime.now(UTC) + timedelta(seconds=2))


def test_a_forged_authority_answers() -> None:
    with Authority() as authority:
        found = judge(ask(authority.url), authority.root)
    assert found.verdict == "verified", found.message
    assert authority.requests == [REQUEST.der]


def test_it_states_the_time_it_is_told() -> None:
    with Authority(at=STAMPED) as authority:
        assert judge(ask(authority.url), authority.root).gen_time == STAMPED


def test_it_embeds_certificates_only_where_asked() -> None:
    request = Request(nonce=5, certificates=False)
    with Authority() as authority:
        assert judge(ask(authority.url, request), authority.root, request=request).verdict == "incomplete"


def test_every_fault_is_listed() -> None:
    assert set(SHOWS) == set(FAULTS)
    with pytest.raises(ValueError, match="no fault is called earthquake"):
        Authority(fault="earthquake")


@pytest.mark.parametrize("fault", [f for f in FAULTS if isinstance(SHOWS[f], str | None)])
def test_a_fault_in_the_answer_shows_in_the_verdict(fault) -> None:
    with Authority(fault=fault) as authority:
        assert judge(ask(authority.url), authority.root).failed_check == SHOWS[fault]


@pytest.mark.parametrize("fault", [f for f in FAULTS if not isinstance(SHOWS[f], str | None)])
def test_a_fault_on_the_way_shows_in_http(fault) -> None:
    patience = 0.3 if fault == "slow" else 20
    with Authority(fault=fault) as authority, pytest.raises(SHOWS[fault]):
        ask(authority.url, patience=patience)


def test_the_third_attempt_succeeds_after_two_refusals() -> None:
    with Authority(fault="HTTP 503 twice") as authority:
        for _ in range(2):
            with pytest.raises(urllib.error.HTTPError, match="503"):
                ask(authority.url)
        assert judge(ask(authority.url), authority.root).verdict == "verified"


def test_the_place_it_redirects_to_answers() -> None:
    with Authority(fault="redirect") as authority:
        assert judge(ask(authority.url.replace("/tsr", "/moved")), authority.root).verdict == "verified"


def test_forty_at_once() -> None:
    with Authority() as authority, ThreadPoolExecutor(40) as pool:
        answers = list(pool.map(lambda _: ask(authority.url), range(40)))
        assert {judge(one, authority.root).verdict for one in answers} == {"verified"}


def test_openssl_answers_beside_it() -> None:
    with OpensslAuthority() as authority, ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: ask(authority.url), range(8)))
        found = [judge(one, authority.root) for one in answers]
    assert {one.verdict for one in found} == {"verified"}, found[0].message
    assert sorted(int(one.serial) for one in found) == list(range(2, 10))
