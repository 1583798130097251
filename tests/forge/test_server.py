"""The authorities on loopback answer over real HTTP, and fail as told."""

import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from tests.forge.server import Authority, OpensslAuthority
from tests.forge.token import DOCUMENT, STAMPED, Request
from toolkit.prereg.token.verify import Material, verify_token

REQUEST = Request(nonce=1 << 62)


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


def test_only_a_fault_that_there_is_can_be_asked_for() -> None:
    with pytest.raises(ValueError, match="no fault is called earthquake"):
        Authority(fault="earthquake")


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
