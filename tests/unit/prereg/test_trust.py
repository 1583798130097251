"""Trust files, and the freeze record, written and read."""

from datetime import UTC, datetime

import pytest

from toolkit.errors import DamagedError
from toolkit.prereg.record import Authority, FreezeRecord, read_record, write_record
from toolkit.prereg.trust import Trusted, known_authorities, operator_of, parse_trust, slug_of, write_trust

ONE = Trusted(
    "One Ünion", slug_of("One Ünion"), "Operator 1", "https://one.example/tsr", ("a" * 64,), ("1.2.3",)
)
TWO = Trusted(
    "Two", "two", "Operator 2", "demonstration", ("b" * 64, "c" * 64), certificates="https://x.example"
)


def test_a_trust_file_reads_as_it_was_written() -> None:
    assert parse_trust(write_trust((ONE, TWO), "Comment."), "here") == (ONE, TWO)


def test_the_shipped_authorities_are_of_different_operators() -> None:
    known = known_authorities()
    assert {"FreeTSA", "DigiCert"} <= {authority.name for authority in known}
    assert len({authority.operator for authority in known}) == len(known)
    assert len({root for authority in known for root in authority.roots}) == len(known)


def test_a_readers_own_file_is_added(tmp_path) -> None:
    (tmp_path / "mine.toml").write_text(write_trust((ONE,), "Mine."), encoding="utf-8")
    known = known_authorities(tmp_path / "mine.toml")
    assert operator_of("a" * 64, known) == "Operator 1"
    assert operator_of("a" * 64, known_authorities()) is None


GOOD = write_trust((TWO,), "Good.")
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "authorities = 3",
        "authorities = [3]",
        GOOD.replace("b" * 64, "b" * 63),
        GOOD.replace("demonstration", "ftp://x"),
        GOOD.replace('"Two"', '""'),
        GOOD.replace('"Two"', '"\\u0007"'),
        GOOD.replace('"Two"', '"---"'),
        GOOD.replace('"Two"', "'a\\b'"),
        GOOD.replace("roots = [", "roots = []\n# ["),
        GOOD + GOOD,
        "x = " + "[" * 100_000,
    ],
)
def test_a_trust_file_that_says_nothing_is_damaged(text) -> None:
    with pytest.raises(DamagedError, match="trust file"):
        parse_trust(text, "here")


def test_two_authorities_of_one_file_name_are_refused() -> None:
    with pytest.raises(DamagedError, match="names an authority twice"):
        parse_trust(GOOD + "".join(GOOD.partition("[[")[1:]), "here")


def record(*authorities: Authority) -> FreezeRecord:
    return FreezeRecord("public", "x", "f" * 64, "FROZEN.sha256", NOON, "", "here", authorities)


def test_a_record_reads_as_it_was_written() -> None:
    written = record(
        Authority('"quoted" \\ é', "https://one.example", NOON, "evidence/a.tsr", "evidence/a.tsq")
    )
    assert read_record(write_record(written)) == written


@pytest.mark.parametrize("place", ["../a.tsr", "/a.tsr", "a.tsr", "evidence/../a.tsr", "evidence/"])
def test_evidence_lies_in_its_folder(place) -> None:
    with pytest.raises(ValueError, match="is no file under evidence/"):
        read_record(write_record(record(Authority("a", "https://one.example", NOON, place))))


def test_one_token_does_not_stand_for_two_authorities() -> None:
    both = (Authority(name, "https://x.example", NOON, "evidence/a.tsr") for name in "AB")
    with pytest.raises(ValueError, match="named twice"):
        read_record(write_record(record(*both)))
