"""Stored decisions: used for the same inputs only, and never believed where they can be checked."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.decisions.rows_study import REGISTRATION, ROW_RULES, SMALL_RUNS, write_rows_study
from tests.unit.decisions.study import SmallStudy, rule
from toolkit.decisions import computed
from toolkit.decisions.engine import Engine
from toolkit.decisions.interval import Interval
from toolkit.decisions.rulebook import load_rulebook
from toolkit.decisions.stored import decision_rows, inputs_sha256
from toolkit.errors import DamagedError
from toolkit.registers.study import Study

BOOK = load_rulebook(
    ROW_RULES
    + rule("H", "mean(gap) > 0", more='estimate = "gap"\ninterval = "gap_95"')
    + rule("P", "lower(gap_95) > -1", kind="prediction")
)


def engine(study: Study, amendments: dict[str, str] | None = None, *, recompute: bool = False) -> Engine:
    return Engine(BOOK, REGISTRATION, study, amendments, recompute=recompute)


def rows_of(study: Study) -> list[dict[str, Any]]:
    deciding = engine(study)
    return decision_rows(deciding.decide_all(), deciding.inputs_sha256)


def with_decisions(folder: Path, **forged: Any) -> Study:
    """Return a study that stores its decisions; those on H as forged."""
    rows = rows_of(write_rows_study(folder / "plain"))
    rows[0] |= forged
    return write_rows_study(folder / "stored", rows={"decisions": rows})


@pytest.fixture
def no_bootstrap(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise AssertionError("a bootstrap was drawn")

    monkeypatch.setattr(computed, "draw_weights", fails)


def interval_of(study: Study, *, recompute: bool = False) -> Interval:
    interval = engine(study, recompute=recompute).decide("H").interval
    assert isinstance(interval, Interval)
    return interval


def test_a_stored_interval_is_the_computed_one_to_the_bit(tmp_path: Path) -> None:
    stored = interval_of(with_decisions(tmp_path))
    assert stored == replace(interval_of(write_rows_study(tmp_path / "again")), is_stored=True)


@pytest.mark.usefixtures("no_bootstrap")
def test_the_guard_sees_a_bootstrap(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="drawn"):
        engine(write_rows_study(tmp_path)).decide("H")


def test_nothing_is_resampled_for_inputs_that_are_stored(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    study = with_decisions(tmp_path)
    request.getfixturevalue("no_bootstrap")
    assert [decision.verdict for decision in engine(study).decide_all()][1] == "met"


def test_recomputing_takes_no_stored_interval(tmp_path: Path) -> None:
    assert not interval_of(with_decisions(tmp_path), recompute=True).is_stored


def test_an_interval_stored_on_other_inputs_is_not_taken(tmp_path: Path) -> None:
    assert not interval_of(with_decisions(tmp_path, inputs_sha256="0" * 64)).is_stored


def test_a_changed_table_makes_the_stored_decisions_stale(tmp_path: Path) -> None:
    rows = rows_of(write_rows_study(tmp_path / "plain"))
    runs = [replace(run, facts={"provider": "elsewhere"}) for run in SMALL_RUNS]
    changed = write_rows_study(tmp_path / "changed", runs, rows={"decisions": rows})
    assert not interval_of(changed).is_stored


def test_a_new_amendment_makes_the_stored_decisions_stale(tmp_path: Path) -> None:
    study = with_decisions(tmp_path)
    decision = engine(study, {"A1": "1" * 64}).decide("H")
    assert isinstance(decision.interval, Interval)
    assert not decision.interval.is_stored


@pytest.mark.parametrize(
    "forged",
    [
        {"verdict": "perhaps"},
        {"evidence": "not_estimated"},
        {"kind": "prediction"},
        {"estimate": 0.9},
        {"interval": None, "level": None, "low": None, "high": None, "low_error": None, "high_error": None},
    ],
    ids=lambda forged: next(iter(forged)),
)
def test_a_stored_decision_that_its_own_inputs_contradict_is_damage(
    tmp_path: Path, forged: dict[str, Any]
) -> None:
    with pytest.raises(DamagedError, match="the stored decision on H has another"):
        engine(with_decisions(tmp_path, **forged)).decide("H")


def test_a_stored_estimate_agrees_but_for_rounding(tmp_path: Path) -> None:
    estimate = rows_of(write_rows_study(tmp_path / "first"))[0]["estimate"]
    with pytest.raises(DamagedError, match="another estimate than its own inputs give"):
        engine(with_decisions(tmp_path, estimate=estimate + 1e-6)).decide("H")


def test_a_forged_end_is_found_when_it_is_recomputed(tmp_path: Path) -> None:
    study = with_decisions(tmp_path, low=-0.75)
    with pytest.raises(DamagedError, match="another low than its own inputs give"):
        engine(study, recompute=True).decide("H")


@pytest.mark.parametrize("forged", [{"level": 0.5}, {"high_error": None}])
def test_a_stored_interval_that_is_none_of_the_registered_is_damage(
    tmp_path: Path, forged: dict[str, Any]
) -> None:
    with pytest.raises(DamagedError, match="is not the registered one"):
        engine(with_decisions(tmp_path, **forged))


def test_one_interval_with_two_values_is_damage(tmp_path: Path) -> None:
    rows = rows_of(write_rows_study(tmp_path / "plain"))
    kept = ("interval", "level", "low", "high", "low_error", "high_error")
    rows[1] |= {name: rows[0][name] for name in kept} | {"low": rows[0]["low"] - 0.5}
    with pytest.raises(DamagedError, match="another low"):
        engine(write_rows_study(tmp_path / "stored", rows={"decisions": rows}))


def test_what_is_not_stored_is_computed(tmp_path: Path) -> None:
    rows = rows_of(write_rows_study(tmp_path / "plain"))
    study = write_rows_study(tmp_path / "stored", rows={"decisions": rows[1:]})
    assert not interval_of(study).is_stored


def small(**tables: str) -> SmallStudy:
    study = SmallStudy({name: [] for name in ("runs", "evaluations", *tables)})
    study.sha256 = lambda table: tables.get(table, table)  # type: ignore[method-assign]
    return study


@pytest.mark.parametrize("table", ["decisions", "launches"])
def test_the_inputs_leave_out_what_decides_nothing(table: str) -> None:
    assert inputs_sha256(REGISTRATION, {}, small(**{table: "x"})) == inputs_sha256(REGISTRATION, {}, small())


@pytest.mark.parametrize("table", ["runs", "evaluations", "episodes", "checkpoints"])
def test_the_inputs_are_every_other_table(table: str) -> None:
    assert inputs_sha256(REGISTRATION, {}, small(**{table: "x"})) != inputs_sha256(REGISTRATION, {}, small())


def test_the_inputs_are_the_registration_and_its_amendments() -> None:
    known = {
        inputs_sha256(*named, small())
        for named in ((REGISTRATION, {}), (("other", "0" * 64), {}), (REGISTRATION, {"A1": "1"}))
    }
    assert len(known) == 3
