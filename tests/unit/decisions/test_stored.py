"""Stored decisions: compared with the ones that are reached, and never believed."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.decisions.rows_study import (
    REF,
    REGISTRATION,
    ROW_RULES,
    SMALL_RUNS,
    VALIDATION,
    AsStored,
    write_rows_study,
)
from tests.unit.decisions.study import rule
from toolkit.decisions.engine import Engine, StoredDecisions, decision_rows, inputs_sha256
from toolkit.errors import DamagedError
from toolkit.registers.study import Study
from toolkit.rules.rulebook import load_rulebook
from toolkit.structs import replace

BOOK = load_rulebook(
    ROW_RULES
    + rule("H", "mean(gap) > 0", more='estimate = "gap"\ninterval = "gap_95"')
    + rule("P", "lower(gap_95) > -1", kind="prediction")
)


def engine(study: Study) -> Engine:
    return Engine(BOOK, REGISTRATION, AsStored(study), stored=StoredDecisions(study))


def rows_of(study: Study) -> list[dict[str, Any]]:
    return decision_rows(engine(study).decide_all(), inputs_sha256(study))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A study that stores no decisions."""
    return write_rows_study(tmp_path_factory.mktemp("plain"))


@pytest.fixture
def rows(plain: Study) -> list[dict[str, Any]]:
    """The decisions on it."""
    return rows_of(plain)


def storing(folder: Path, rows: list[dict[str, Any]], **forged: Any) -> Study:
    """Return the same study with these decisions stored; the first, on H, as forged."""
    return write_rows_study(folder, rows={"decisions": [rows[0] | forged, *rows[1:]]})


@pytest.mark.parametrize("method", ["t over tasks", "bca bootstrap"])
def test_an_interval_over_tasks_is_stored_and_compared(tmp_path: Path, plain: Study, method: str) -> None:
    spec = replace(BOOK.intervals["gap_95"], method=method)
    book = replace(BOOK, intervals={"gap_95": spec})
    rows = decision_rows(Engine(book, REGISTRATION, AsStored(plain)).decide_all(), inputs_sha256(plain))
    assert (rows[0]["low_error"] is None) == (method == "t over tasks")
    for folder, forged in (("same", {}), ("other", {"high": rows[0]["high"] + 0.001})):
        study = storing(tmp_path / folder, rows, **forged)
        again = Engine(book, REGISTRATION, AsStored(study), stored=StoredDecisions(study))
        if forged:
            with pytest.raises(DamagedError, match="another high"):
                again.decide("H")
        else:
            assert again.decide("H").interval is not None


def test_a_stored_decision_is_compared_and_its_interval_computed(tmp_path, plain, rows) -> None:
    stored = engine(storing(tmp_path, rows)).decide_all()
    assert [decision.interval for decision in stored] == [d.interval for d in engine(plain).decide_all()]


NO_INTERVAL = dict.fromkeys(("interval", "level", "low", "high", "low_error", "high_error"))


@pytest.mark.parametrize(
    "forged",
    [
        {"verdict": "perhaps"},
        {"evidence": "not_estimated"},
        {"kind": "prediction"},
        {"estimate": 0.9},
        NO_INTERVAL,
        {"low": -0.75},
        {"level": 0.5},
        {"high_error": None},
        {"inputs_sha256": "0" * 64},
    ],
    ids=lambda given: next(iter(given)),
)
def test_a_stored_decision_that_is_not_the_one_reached_is_damage(tmp_path, rows, forged) -> None:
    study = storing(tmp_path, rows, **forged)
    with pytest.raises(DamagedError, match="the stored decision on H has another"):
        engine(study).decide("H")
    assert engine(study).decide("P").verdict == "met"


def test_a_stored_estimate_agrees_but_for_rounding(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    assert engine(storing(tmp_path / "near", rows, estimate=rows[0]["estimate"] + 1e-12)).decide("H")
    with pytest.raises(DamagedError, match="another estimate"):
        engine(storing(tmp_path / "far", rows, estimate=rows[0]["estimate"] + 1e-6)).decide("H")


def test_decisions_that_were_made_on_other_rows_are_damage(tmp_path, rows) -> None:
    runs = [replace(run, facts={"provider": "elsewhere"}) for run in SMALL_RUNS]
    changed = write_rows_study(tmp_path, runs, rows={"decisions": rows})
    with pytest.raises(DamagedError, match="another inputs sha256"):
        engine(changed).decide("H")


def test_a_decision_on_a_rule_that_is_none_is_damage(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    stored = StoredDecisions(storing(tmp_path, rows, rule="A"))
    with pytest.raises(DamagedError, match="a rule that the registration does not have"):
        stored.check_complete(BOOK.rules)


def test_the_inputs_are_every_table_but_decisions_and_launches(tmp_path, plain, rows) -> None:
    other = replace(REF, sha256="1" * 64)
    amended = replace(REF, amendments={"A1": "1" * 64})
    runs = [replace(run, facts={"provider": "elsewhere"}) for run in SMALL_RUNS]
    changed = [
        write_rows_study(tmp_path / "other", registration=other),
        write_rows_study(tmp_path / "amended", registration=amended),
        write_rows_study(tmp_path / "runs", runs),
        write_rows_study(tmp_path / "tasks", evaluations=[replace(VALIDATION, tasks=6)]),
    ]
    assert inputs_sha256(storing(tmp_path / "decided", rows)) == inputs_sha256(plain)
    assert len({inputs_sha256(study) for study in (plain, *changed)}) == 5
