"""Whatever bytes a token is, there is a verdict, and soon."""

import json
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import Result
from tests.forge import der
from tests.forge.case import recipe
from tests.forge.pki import house
from tests.forge.token import DOCUMENT, NOW
from toolkit.prereg.evidence import write_certificates
from toolkit.prereg.token.der import MAX_BYTES, MAX_DEPTH
from toolkit.prereg.token.verify import STEPS, Material, verify_token

CHECKS = {name for _, name in STEPS}
# A standstill, not a measurement: a collection of garbage falls where it will. tests/golden/mutations.json is
# held to the goal of 0.1 s.
SOON_S = 10
TAGS = st.sampled_from([0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x0A, 0x0C, 0x13, 0x17, 0x18, 0x80, 0x81])
NESTS = st.sampled_from([0x30, 0x31, 0xA0, 0xA1, 0xA3, 0x24, 0x3F])
LEAVES = st.builds(der.tlv, TAGS, st.binary(max_size=24)) | st.binary(max_size=6)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.builds(lambda tag, parts: der.tlv(tag, *parts), NESTS, st.lists(inner, max_size=5)),
)


@cache
def honest() -> bytes:
    return recipe(bare=True, certificates=(house().signer.der, house().intermediate.der)).make()


def judged(raw: bytes, **given_besides: object) -> str:
    """Return a verdict, having seen that it is one and that it came soon."""
    material = Material(**{"document": DOCUMENT, "roots": (house().root.der,), **given_besides})  # type: ignore[arg-type]
    started = time.thread_time()
    verdict = verify_token(raw, material, NOW)
    assert time.thread_time() - started < SOON_S
    assert verdict.failed_check in (CHECKS if verdict.verdict != "verified" else {None})
    assert verdict.message
    return verdict.verdict


SEQUENCES = st.binary(max_size=300).map(lambda rest: b"\x30" + der.length(len(rest)) + rest)


@given(TREES | SEQUENCES | st.binary(max_size=3000))
def test_random_bytes_and_trees_are_refused(raw: bytes) -> None:
    assert judged(raw) == "not_verified"


@cache
def paths() -> tuple[tuple[int, ...], ...]:
    """Return the path of every element of an honest token."""
    known: list[tuple[int, ...]] = []
    waiting: list[tuple[bytes, tuple[int, ...]]] = [(honest(), ())]
    while waiting:
        value, path = waiting.pop()
        known.append(path)
        if value[0] & 0x20:
            waiting += [(child, (*path, number)) for number, child in enumerate(der.children(value))]
    return tuple(known)


@given(st.data())
def test_a_random_tree_inside_a_token_is_judged(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(paths()))
    tree = data.draw(TREES)
    how = data.draw(st.sampled_from(["instead", "inside", "wrapped"]))
    edits: dict[str, Callable[[bytes], bytes]] = {
        "instead": lambda _: tree,
        "inside": lambda one: der.tlv(one[0], tree),
        "wrapped": lambda one: der.tlv(one[0], one, tree),
    }
    changed = der.change(honest(), path, edits[how])
    if judged(changed) == "verified" and changed != honest():
        # Only what nobody signs: which certificates, which algorithms are listed, NULL parameters or none.
        assert path[:3] in {(1, 0, 1), (1, 0, 3), (1, 0, 4)}
        assert path[2] == 3 or path[4:5] not in {(3,), (5,)}


@given(st.integers(1, 300_000))
def test_a_nested_bomb_is_refused(depth: int) -> None:
    assert judged(der.nested(depth)) == "not_verified"


@given(st.integers(MAX_DEPTH, 2000))
def test_a_nested_bomb_inside_a_token_is_refused(depth: int) -> None:
    changed = der.change(
        honest(), (1, 0, 4, 0), lambda one: der.with_more(one, der.implicit(1, der.nested(depth)))
    )
    assert judged(changed) == "not_verified"


@given(st.integers(0, 127), st.binary(max_size=140), st.sampled_from([0x30, 0x04, 0x02]))
def test_a_huge_length_is_refused(count: int, digits: bytes, tag: int) -> None:
    element = bytes([tag, 0x80 | count]) + (digits + b"\xff" * count)[:count]
    assert judged(element) == "not_verified"
    assert judged(der.seq(element)) == "not_verified"


@given(st.integers(1, MAX_BYTES // 2))
def test_a_crowd_of_empty_elements_is_refused(number: int) -> None:
    assert judged(der.seq(der.NULL * number)) == "not_verified"


@given(TREES | st.binary(max_size=200))
def test_a_random_request_list_or_certificate_beside_a_good_token_is_judged(raw: bytes) -> None:
    assert judged(honest()) == "verified"
    assert judged(honest(), request=raw) == "not_verified"
    for name in ("crls", "untrusted"):
        assert judged(honest(), **{name: (raw,)}) in {"not_verified", "verified", "incomplete"}
    assert judged(honest(), roots=(raw,)) == judged(honest(), signer=raw) == "not_verified"


def test_fifty_megabytes_are_answered_at_once(toolkit: Callable[..., Result], tmp_path: Path) -> None:
    """No more of it is read than the largest token has."""
    size = 50 << 20
    token, document, root = (tmp_path / name for name in ("token.tsr", "document", "root.pem"))
    with token.open("wb") as file:
        file.write(b"\x30\x84" + size.to_bytes(4, "big"))
        file.truncate(size)
    document.write_bytes(DOCUMENT)
    root.write_bytes(write_certificates((house().root.der,)))
    arguments = ("verify-token", token, "--document", document, "--root", root, "--json")
    toolkit(*arguments)  # what has to be imported is
    started = time.thread_time()
    result = toolkit(*arguments)
    assert time.thread_time() - started < SOON_S
    assert result.code == 1
    assert json.loads(result.out)["failed_check"] == "form"
