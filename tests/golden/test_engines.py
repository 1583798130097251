"""What the stored comparison of engines says, and that this verifier's part of it comes out again."""

from functools import cache
from pathlib import Path

import pytest

from tests.forge.defects import CASES, CHECKS
from tests.golden import measure_engines
from tests.unit.prereg.test_real_tokens import MISSING

README = Path(__file__).parents[2] / "toolkit/prereg/token/README.md"
BEGIN, END = "<!-- engines -->", "<!-- /engines -->"
FOUND = measure_engines.stored()
REAL = measure_engines.real_tokens()


@cache
def crafted() -> tuple[measure_engines.Question, ...]:
    return tuple(measure_engines.crafted_tokens())


def test_this_verifiers_row_comes_out_again() -> None:
    assert measure_engines.measure("toolkit", list(crafted())) == FOUND["engines"]["toolkit"]["crafted"]


@pytest.mark.skipif(not REAL, reason=MISSING)
def test_this_verifiers_row_on_real_tokens_comes_out_again() -> None:
    assert measure_engines.measure("toolkit", REAL) == FOUND["engines"]["toolkit"]["real"]


def test_this_verifier_errs_nowhere() -> None:
    for kind in FOUND["engines"]["toolkit"].values():
        assert (kind["valid_rejected"], kind["invalid_accepted"], kind["crashed"]) == ([], {}, {})


def test_every_crafted_token_is_asked_of_every_engine_or_counted_as_not_asked() -> None:
    assert list(FOUND["engines"]) == list(measure_engines.LACKS)
    assert FOUND["crafted_by_check"] == {check: len(names) for check, names in CHECKS.items()}
    for engine, by_kind in FOUND["engines"].items():
        counts = by_kind["crafted"]
        assert counts["valid_asked"] + counts["invalid_asked"] + counts["not_asked"] == len(CASES), engine
        assert counts["not_asked"] == sum(
            not measure_engines.is_asked(engine, question) for question in crafted()
        )


def test_every_other_engine_errs_both_ways() -> None:
    for engine in set(measure_engines.LACKS) - {"toolkit"}:
        counts = FOUND["engines"][engine]["crafted"]
        assert counts["valid_rejected"], engine
        assert counts["invalid_accepted"], engine


def test_an_engine_that_answers_late_or_raises_is_counted_as_crashed(monkeypatch: pytest.MonkeyPatch) -> None:
    def panics(_: measure_engines.Question) -> bool:
        raise BaseException("a panic in Rust")  # noqa: TRY002 - as pyo3 raises it

    monkeypatch.setattr("tests.golden.measure_engines.ASK", {"toolkit": panics})
    assert measure_engines.ask("toolkit", crafted()[0]) == (False, "BaseException: a panic in Rust")


def test_the_readme_has_the_stored_tables() -> None:
    text = README.read_text(encoding="utf-8")
    assert text.partition(BEGIN)[2].partition(END)[0].strip() == measure_engines.table(FOUND)


def test_the_tables_count_what_is_stored() -> None:
    """By hand: the row of an engine, and that of a check, the other cells aside."""
    lines = measure_engines.table(FOUND).splitlines()
    openssl = FOUND["engines"]["openssl ts -verify"]["crafted"]
    accepted = openssl["invalid_accepted"]
    rejects = f"{len(openssl['valid_rejected'])} of {openssl['valid_asked']}"
    accepts = f"{sum(len(names) for names in accepted.values())} of {openssl['invalid_asked']}"
    (row,) = (line for line in lines if line.startswith("| `openssl ts -verify` "))
    assert f"| {rejects} | {accepts} | {openssl['not_asked']} |" in row
    (row,) = (line for line in lines if line.startswith("| time |"))
    asked, cases = openssl["asked_by_check"]["time"], FOUND["crafted_by_check"]["time"]
    count = len(accepted.get("time", [])) if asked == cases else f"{len(accepted.get('time', []))} of {asked}"
    assert row.split(" | ")[1:4] == [str(cases), "0", str(count)]
