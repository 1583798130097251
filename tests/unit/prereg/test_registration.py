"""A registration is exactly its recorded bytes."""

import hashlib
import re
import shutil
import subprocess
from datetime import UTC, datetime

import pytest

from tests.conftest import CHECKOUT
from tests.registrations import rehash
from toolkit.errors import DamagedError, IncompleteError, VerificationError
from toolkit.prereg.evidence import anchor
from toolkit.prereg.registration import load_registration

EMBEDDED = CHECKOUT / "prereg" / "embedded"
PAIRED = CHECKOUT / "prereg" / "paired-rollouts"
RECORD, DEVIATION, AMENDMENT = (
    (PAIRED / name).read_text(encoding="utf-8")
    for name in ("record.toml", "deviations/D4.toml", "amendments/A1.toml")
)


def test_the_record_is_the_original_freeze() -> None:
    record = load_registration(PAIRED).record
    assert record.document_sha256 == "6dc709de6f36f008da3a9f04e7de447f862e039afe39db550fda8a341430c2cf"
    assert record.frozen_at == datetime(2026, 9, 8, 12, 33, 49, tzinfo=UTC)
    assert {(a.name, a.recorded_time) for a in record.authorities} == {
        ("FreeTSA", datetime(2026, 9, 8, 12, 34, 39, tzinfo=UTC)),
        ("DigiCert", datetime(2026, 9, 8, 12, 34, 40, tzinfo=UTC)),
    }


def test_amendment_and_exception_are_there() -> None:
    registration = load_registration(PAIRED)
    (amendment,) = registration.amendments
    relations = amendment.replaces, amendment.restates, amendment.adds
    assert (amendment.id, *relations) == ("A1", ("H1b",), ("P13",), ())
    assert [e.run for e in registration.exceptions] == ["gate1-c2-paired-s0"]


def test_sha256sum_agrees_with_the_lists_and_with_the_digest() -> None:
    tool = ["sha256sum"] if shutil.which("sha256sum") else ["shasum", "-a", "256"]
    frozen = (PAIRED / "FROZEN.sha256").read_bytes()
    chain = re.sub(rb"(?m)^\w+  ", b"", (PAIRED / "LATER.chain").read_bytes())
    digest = f"{load_registration(PAIRED).sha256}  FROZEN.sha256\n".encode()
    subprocess.run(
        [*tool, "--check"], cwd=PAIRED, check=True, capture_output=True, input=frozen + chain + digest
    )


@pytest.mark.parametrize(
    "name",
    ["rules.toml", "protocol.md", "record.toml", "trust.toml", "deviations/D4.toml", "amendments/A1.toml"],
)
def test_one_changed_byte_is_refused(restated, name) -> None:
    path = restated / name
    path.write_bytes(path.read_bytes().replace(b"0", b"1", 1))
    with pytest.raises(VerificationError, match="was changed after its hash was recorded") as caught:
        load_registration(restated)
    assert caught.value.where == str(path)


def test_a_file_that_nobody_recorded_is_refused(restated) -> None:
    (restated / "amendments" / "A2.toml").write_text("")
    with pytest.raises(VerificationError, match="belongs to no hash list"):
        load_registration(restated)


def test_a_readers_evidence_is_welcome(restated) -> None:
    (restated / "evidence").mkdir()
    (restated / "evidence" / "document").write_bytes(b"")
    assert load_registration(restated).name == "paired-rollouts"


DAMAGED_LISTS = {
    "short hash": lambda text: text[1:],
    "one space": lambda text: text.replace("  ", " "),
    "a name twice": lambda text: text + text,
    "a path upwards": lambda text: text.replace("rules.toml", "../rules.toml"),
    "a null byte": lambda text: text.replace("rules.toml", "rules\0.toml"),
    "an absolute path": lambda text: text.replace("rules.toml", "/etc/passwd"),
    "upper case": lambda text: text.upper(),
    "no text": lambda _: "\0\1\2",
    "not sorted": lambda text: "".join(reversed(text.splitlines(keepends=True))),
    "no last line end": lambda text: text.rstrip("\n"),
}


@pytest.mark.parametrize("change", DAMAGED_LISTS.values(), ids=DAMAGED_LISTS)
def test_a_damaged_list_is_refused(restated, change) -> None:
    path = restated / "FROZEN.sha256"
    path.write_text(change(path.read_text()))
    with pytest.raises(DamagedError):
        load_registration(restated)


@pytest.mark.parametrize("name", ["FROZEN.sha256", "LATER.chain", "rules.toml", "record.toml"])
def test_a_missing_file_is_incomplete(restated, name) -> None:
    (restated / name).unlink()
    with pytest.raises(IncompleteError):
        load_registration(restated)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("record.toml", "standing ="),
        ("record.toml", ""),
        ("record.toml", RECORD.replace("12:34:39Z", "12:34:39")),
        ("record.toml", RECORD.replace("public", "whatever")),
        ("record.toml", RECORD.replace("6dc709de", "zzzzzzzz")),
        ("record.toml", RECORD.replace("evidence/document", "../../document")),
        ("record.toml", RECORD.replace('"evidence/freetsa.tsr"', "5")),
        ("record.toml", RECORD[: RECORD.index("[[authorities]]")] + "authorities = []"),
        ("record.toml", RECORD.replace("2026-09-08T12:33:49Z", "0001-01-01T00:00:00+14:00")),
        ("record.toml", "x = " + "[" * 100_000),
        ("amendments/A1.toml", AMENDMENT.replace("2026-09-08", "yesterday")),
        ("amendments/A1.toml", AMENDMENT.replace('replaces = ["H1b"]', "replaces = [1]")),
        ("amendments/A1.toml", AMENDMENT.replace('id = "A1"', "id = [1]")),
        ("deviations/D4.toml", "deviation = 3"),
        ("deviations/D4.toml", "[deviation]\nid = 1"),
        ("deviations/D4.toml", DEVIATION.replace("disclosure", "success")),
        ("deviations/D4.toml", DEVIATION.replace("D4", "D99")),
        ("amendments/A1.toml", "x = 1"),
    ],
)
def test_a_recorded_file_that_says_nothing_is_damaged(restated, name, text) -> None:
    path = restated / name
    path.write_text(text)
    rehash(restated)
    with pytest.raises(DamagedError, match="does not say what it has to"):
        load_registration(restated)


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
