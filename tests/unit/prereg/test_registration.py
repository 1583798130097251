"""A registration is exactly its recorded bytes."""

import hashlib
import re
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import CHECKOUT
from tests.registrations import rehash
from toolkit.errors import DamagedError, IncompleteError, ToolkitError, VerificationError
from toolkit.prereg.chain import extend_chain, parse_chain
from toolkit.prereg.evidence import anchor
from toolkit.prereg.record import (
    FreezeRecord,
    Trusted,
    TrustFile,
    known_authorities,
    parse_toml,
    parse_trust,
    read_amendment,
    read_deviation,
    write_record,
    write_trust,
)
from toolkit.prereg.registration import load_registration
from toolkit.prereg.spans import Unrestated

EMBEDDED = CHECKOUT / "prereg" / "embedded"
PAIRED = CHECKOUT / "prereg" / "paired-rollouts"


def test_sha256sum_agrees_with_the_lists_and_with_the_digest() -> None:
    tool = ["sha256sum"] if shutil.which("sha256sum") else ["shasum", "-a", "256"]
    frozen = (PAIRED / "FROZEN.sha256").read_bytes()
    chain = re.sub(rb"(?m)^\w+  ", b"", (PAIRED / "LATER.chain").read_bytes())
    digest = f"{load_registration(PAIRED).sha256}  FROZEN.sha256\n".encode()
    subprocess.run(
        [*tool, "--check"], cwd=PAIRED, check=True, capture_output=True, input=frozen + chain + digest
    )


def swap(old: str, new: str):
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new, 1)

    return change


FILES = ("record.toml", "trust.toml", "unrestated.toml", "amendments/A1.toml", "deviations/D4.toml")
LISTED = (
    "rules.toml",
    "protocol.md",
    "record.toml",
    "trust.toml",
    "deviations/D4.toml",
    "amendments/A1.toml",
)
LISTS = {
    "short hash": lambda text: text[1:],
    "one space": lambda text: text.replace("  ", " "),
    "a name twice": lambda text: text + text,
    "a path upwards": swap("rules.toml", "../rules.toml"),
    "a null byte": swap("rules.toml", "rules\0.toml"),
    "an absolute path": swap("rules.toml", "/etc/passwd"),
    "upper case": str.upper,
    "no text": lambda _: "\0\1\2",
    "not sorted": lambda text: "".join(reversed(text.splitlines(keepends=True))),
    "no last line end": lambda text: text.rstrip("\n"),
}
CHANGED, BYTE = "was changed after its hash was recorded", "\udcff"
# A file, what is made of its text (None: it is removed), and the error.
AS_RECORDED = [
    *((name, swap("0", "1"), VerificationError, CHANGED) for name in LISTED),
    ("amendments/A2.toml", lambda _: "", VerificationError, "belongs to no hash list"),
    *(("FROZEN.sha256", change, DamagedError, None) for change in LISTS.values()),
    *(
        (name, None, IncompleteError, None)
        for name in ("FROZEN.sha256", "LATER.chain", "rules.toml", "record.toml")
    ),
]
HASHED_ANEW = [
    *((name, swap(" =", ""), DamagedError, "is invalid") for name in ("rules.toml", *FILES)),
    ("deviations/D4.toml", swap("D4", "D99"), DamagedError, "another name than its id"),
    ("protocol.md", lambda _: BYTE, DamagedError, "not UTF-8"),
    ("record.toml", swap('name = "FreeTSA"', 'name = "Nobody"'), DamagedError, "does not name"),
    ("record.toml", swap("evidence/document", "FROZEN.sha256"), DamagedError, "not that of"),
]


@pytest.mark.parametrize(
    ("is_hashed", "name", "change", "error", "message"),
    [*((False, *each) for each in AS_RECORDED), *((True, *each) for each in HASHED_ANEW)],
)
def test_a_registration_is_its_recorded_files(restated, is_hashed, name, change, error, message) -> None:
    path = restated / name
    if change:
        text = change(path.read_text(encoding="utf-8") if path.exists() else "")
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
    else:
        path.unlink()
    if is_hashed:
        rehash(restated)
    with pytest.raises(error, match=message) as caught:
        load_registration(restated)
    where = path if message in (CHANGED, "is invalid") else restated
    assert str(where) in str(caught.value)


TEXTS = {name: (PAIRED / name).read_text(encoding="utf-8") for name in FILES}
KINDS = (FreezeRecord, TrustFile, Unrestated, read_amendment, read_deviation)
DAMAGES = [
    ("record.toml", 'standing = "public"\n', "", "missing required field `standing`"),
    ("record.toml", "12:34:39Z", "12:34:39", "timezone"),
    ("record.toml", "public", "whatever", r"\$.standing"),
    ("record.toml", "6dc709de", "zzzzzzzz", r"\$.document_sha256"),
    ("record.toml", '"evidence/document"', '"../../document"', r"\$.document_place"),
    ("record.toml", '"evidence/freetsa.tsr"', "5", r"\$.authorities\[0\].token_place"),
    ("record.toml", '"evidence/freetsa.tsr"', '"/a.tsr"', r"\$.authorities\[0\].token_place"),
    ("record.toml", '"evidence/freetsa.tsr"', '"a.tsr"', r"\$.authorities\[0\].token_place"),
    ("record.toml", '"evidence/freetsa.tsr"', '"evidence/../a.tsr"', r"\$.authorities\[0\].token_place"),
    ("record.toml", '"evidence/freetsa.tsq"', '"evidence/"', r"\$.authorities\[0\].request_place"),
    ("record.toml", "evidence/digicert.tsr", "evidence/freetsa.tsr", "named twice"),
    ("record.toml", "2026-09-08T12:33:49Z", "0001-01-01T00:00:00+14:00", "out of range"),
    ("record.toml", "2026-09-08T12:33:49Z", "9999-12-31T23:00:00-14:00", "out of range"),
    ("record.toml", "docs/PRE", "../PRE", r"\$.checkout.document"),
    ("record.toml", "docs/PRE", "/PRE", r"\$.checkout.document"),
    ("record.toml", "registers/freeze/v1/prereg.tsq", "a/..", r"\$.checkout.request"),
    ("record.toml", "\n", "\nx = 1\n", "unknown field `x`"),
    ("record.toml", "\n", "\nx = " + "[" * 100_000, "recursion"),
    ("trust.toml", "a6379e7c", "a6379e7", r"\$.authorities\[0\].roots\[0\]"),
    ("trust.toml", "https://freetsa", "ftp://x", r"\$.authorities\[0\].address"),
    ("trust.toml", '"FreeTSA"', '""', r"\$.authorities\[0\].name"),
    ("trust.toml", '"FreeTSA"', '"\\u0007"', "cannot be printed"),
    ("trust.toml", '"FreeTSA"', '"---"', "no letter or digit"),
    ("trust.toml", '"FreeTSA"', "'a\\b'", r"\$.authorities\[0\].name"),
    ("trust.toml", '"FreeTSA"', '"digicert"', "named twice"),
    ("trust.toml", "roots = [", "roots = []\n# [", "length >= 1"),
    ("amendments/A1.toml", "2026-09-08", "yesterday", r"\$.dated"),
    ("amendments/A1.toml", 'replaces = ["H1b"]', "replaces = [1]", r"\$.replaces"),
    ("amendments/A1.toml", 'id = "A1"', "id = [1]", r"\$.id"),
    ("amendments/A1.toml", 'title = "', 'title = "FILL IN', "'title' was left as in the template"),
    ("amendments/A1.toml", "[amendment]", "[other]", "got `null`"),
    ("deviations/D4.toml", "[deviation]", "[[deviation]]", "got `array`"),
    ("deviations/D4.toml", "disclosure", "success", r"\$.kind"),
    ("deviations/D4.toml", 'title = "', 'title = " "\n# "', r"\$.title"),
    ("unrestated.toml", "line = ", "line = 0\n# ", r"\$.sentences\[0\].line"),
    ("unrestated.toml", 'sha256 = "', 'sha256 = "g', r"\$.sentences\[0\].sha256"),
]


@pytest.mark.parametrize(("name", "old", "new", "message"), DAMAGES)
def test_a_damaged_file_is_refused_with_its_field(name, old, new, message) -> None:
    read, text = KINDS[FILES.index(name)], TEXTS[name]
    assert old in text
    damaged = text.replace(old, new, 1).encode()
    with pytest.raises(DamagedError, match=message):
        parse_toml(read, damaged, name) if isinstance(read, type) else read(damaged, name)


def test_the_anchor_is_the_hash_of_digest_and_tokens(tmp_path) -> None:
    copied = shutil.copytree(EMBEDDED, tmp_path / "embedded")
    registration = load_registration(copied)
    tokens = [copied / authority.token_place for authority in registration.record.authorities]
    tokens[0].write_bytes(tokens[0].read_bytes() + b"0")
    for folder in (EMBEDDED, copied):
        raw = [(folder / token.relative_to(copied)).read_bytes() for token in tokens]
        lines = [registration.sha256, *(hashlib.sha256(token).hexdigest() for token in raw)]
        expected = hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()
        assert anchor(load_registration(folder)) == expected
    tokens[1].unlink()
    with pytest.raises(IncompleteError):
        anchor(registration)


FROZEN = hashlib.sha256(b"frozen").hexdigest()
NAMES = ("record.toml", "amendments/A1.toml", "deviations/D1.toml")


def chain(*names: str, frozen: str = FROZEN) -> bytes:
    raw = b""
    for name in names or NAMES:
        raw = extend_chain(raw, frozen, name, name.encode())
    return raw


def test_the_links_are_those_of_a_shell(tmp_path) -> None:
    """The recipe in the documentation, in another language."""
    script = """
    link=$1; shift
    for name in "$@"; do
      rest="$(printf %s "$name" | sha256sum | cut -d' ' -f1)  $name"
      link=$(printf '%s\\n%s\\n' "$link" "$rest" | sha256sum | cut -d' ' -f1)
      printf '%s  %s\\n' "$link" "$rest"
    done
    """
    done = subprocess.run(
        ["sh", "-c", script, "sh", FROZEN, *NAMES], capture_output=True, check=True, cwd=tmp_path
    )
    assert done.stdout == chain()


def test_entries_know_their_place() -> None:
    """Each is timestamped with all before it."""
    entries = parse_chain(chain(), FROZEN, "here")
    assert [(entry.number, entry.name) for entry in entries] == list(enumerate(NAMES, start=1))
    assert [entry.id for entry in entries] == ["", "A1", "D1"]
    assert [entry.text for entry in entries] == [chain(*NAMES[: n + 1]) for n in range(3)]


@given(st.integers(0, len(chain()) - 1), st.integers(1, 255))
def test_no_byte_can_be_changed(at, by) -> None:
    raw = bytearray(chain())
    raw[at] ^= by
    with pytest.raises(ToolkitError):
        parse_chain(bytes(raw), FROZEN, "here")


@pytest.mark.parametrize("kept", [(1, 2), (0, 2), (1, 0, 2)])
def test_a_line_that_is_dropped_or_moved_is_found(kept) -> None:
    lines = chain().splitlines(keepends=True)
    with pytest.raises(VerificationError, match="the chain of later files is broken"):
        parse_chain(b"".join(lines[n] for n in kept), FROZEN, "here")


def test_a_chain_follows_one_freeze_to_the_end_of_its_last_line() -> None:
    with pytest.raises(VerificationError, match="the chain of later files is broken"):
        parse_chain(chain(frozen=hashlib.sha256(b"other").hexdigest()), FROZEN, "here")
    with pytest.raises(DamagedError):
        parse_chain(chain().rstrip(), FROZEN, "here")


@pytest.mark.parametrize(
    "name",
    ["record.toml", "../a.toml", "/etc/passwd", "amendments/A 1.toml", "amendments/more/A1.toml", "no.toml"],
)
def test_a_name_that_a_chain_cannot_have_is_refused(name) -> None:
    """Or has already."""
    with pytest.raises(DamagedError):
        chain("record.toml", name)


ONE = Trusted("One Ünion", "Operator 1", "https://one.example/tsr", ("a" * 64,), ("1.2.3",))
TWO = Trusted("Two", "Operator 2", "demonstration", ("B" * 64, "c" * 64), certificates="https://x.example")


def test_a_trust_file_reads_as_it_was_written() -> None:
    assert parse_trust(write_trust((ONE, TWO), "Comment."), "here") == (ONE, TWO)
    assert TWO.roots[0] == "b" * 64


def test_the_shipped_authorities_are_of_different_operators() -> None:
    known = known_authorities()
    assert {"FreeTSA", "DigiCert"} <= {authority.name for authority in known}
    assert len({authority.operator for authority in known}) == len(known)
    assert len({root for authority in known for root in authority.roots}) == len(known)


def test_a_record_is_written_byte_for_byte() -> None:
    raw = (EMBEDDED / "record.toml").read_bytes().replace(b"this folder", '"quoted\\" é'.encode()[1:])
    assert write_record(parse_toml(FreezeRecord, raw, "here")) == raw
