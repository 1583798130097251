"""What the stored comparison of engines says, and that this verifier's part of it comes out again."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.forge.defects import CASES, CHECKS
from tests.golden.measure_engines import (
    LACKS,
    Question,
    ask,
    crafted_tokens,
    is_asked,
    measure,
    real_tokens,
    stored,
    table,
)
from tests.unit.prereg.test_real_tokens import MISSING

README = Path(__file__).parents[2] / "toolkit/prereg/token/README.md"
BEGIN, END = "<!-- engines -->", "<!-- /engines -->"
FOUND = stored()
REAL = real_tokens()


@cache
def crafted() -> tuple[Question, ...]:
    return tuple(crafted_tokens())


def test_this_verifiers_row_comes_out_again() -> None:
    assert measure("toolkit", list(crafted())) == FOUND["engines"]["toolkit"]["crafted"]


@pytest.mark.skipif(not REAL, reason=MISSING)
def test_this_verifiers_row_on_real_tokens_comes_out_again() -> None:
    assert measure("toolkit", REAL) == FOUND["engines"]["toolkit"]["real"]


def test_this_verifier_errs_nowhere() -> None:
    for kind in FOUND["engines"]["toolkit"].values():
        assert (kind["valid_rejected"], kind["invalid_accepted"], kind["crashed"]) == ([], {}, {})


def test_every_crafted_token_is_asked_of_every_engine_or_counted_as_not_asked() -> None:
    assert list(FOUND["engines"]) == list(LACKS)
    assert FOUND["crafted_by_check"] == {check: len(names) for check, names in CHECKS.items()}
    for engine, by_kind in FOUND["engines"].items():
        counts = by_kind["crafted"]
        assert counts["valid_asked"] + counts["invalid_asked"] + counts["not_asked"] == len(CASES), engine
        assert counts["not_asked"] == sum(not is_asked(engine, question) for question in crafted())


def test_every_other_engine_errs_both_ways() -> None:
    for engine in set(LACKS) - {"toolkit"}:
        counts = FOUND["engines"][engine]["crafted"]
        assert counts["valid_rejected"], engine
        assert counts["invalid_accepted"], engine


def test_an_engine_that_answers_late_or_raises_is_counted_as_crashed(monkeypatch: pytest.MonkeyPatch) -> None:
    def panics(_: Question) -> bool:
        raise BaseException("a panic in Rust")  # noqa: TRY002 - as pyo3 raises it

    monkeypatch.setattr("tests.golden.measure_engines.ASK", {"toolkit": panics})
    assert ask("toolkit", crafted()[0]) == (False, "BaseException: a panic in Rust")


def test_the_readme_has_the_stored_tables() -> None:
    text = README.read_text(encoding="utf-8")
    assert text.partition(BEGIN)[2].partition(END)[0].strip() == table(FOUND)


def test_the_tables_count_what_is_stored() -> None:
    counts: dict[str, Any] = {
        "valid_asked": 3,
        "invalid_asked": 5,
        "asked_by_check": {"form": 2, "chain": 3},
        "not_asked": 4,
        "valid_rejected": ["a"],
        "invalid_accepted": {"form": ["b"], "chain": ["c", "d"]},
        "crashed": {"a": "TypeError"},
    }
    found = {
        "versions": {"openssl": "3"},
        "crafted_by_check": {"form": 2, "chain": 6, "time": 1},
        "engines": {
            "toolkit": {"real": None, "crafted": counts},
            "openssl ts": {"real": counts, "crafted": counts},
        },
    }
    lines = table(found).splitlines()
    assert lines[2] == "| `toolkit` | not at hand | not at hand | 1 of 3 | 3 of 5 | 4 | 1 |"
    assert lines[3] == "| `openssl ts` 3 | 1 of 3 | 3 of 5 | 1 of 3 | 3 of 5 | 4 | 2 |"
    assert lines[7:] == [
        "| form | 2 | 1 | 1 |",
        "| chain | 6 | 2 of 3 | 2 of 3 |",
        "| time | 1 | not asked | not asked |",
    ]
    assert len({line.count("|") for line in lines[:4]}) == len({line.count("|") for line in lines[5:]}) == 1
