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


@pytest.fixture
def no_bootstrap(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise AssertionError("a bootstrap was drawn")

    monkeypatch.setattr(computed, "draw_weights", fails)


def interval_of(study: Study, *, recompute: bool = False) -> Interval:
    interval = engine(study, recompute=recompute).decide("H").interval
    assert isinstance(interval, Interval)
    return interval


def test_a_stored_interval_is_as_computed(tmp_path: Path, plain: Study, rows: list[dict[str, Any]]) -> None:
    assert interval_of(storing(tmp_path, rows)) == replace(interval_of(plain), is_stored=True)


@pytest.mark.usefixtures("no_bootstrap")
def test_the_guard_sees_a_bootstrap(plain: Study) -> None:
    with pytest.raises(AssertionError, match="drawn"):
        engine(plain).decide("H")


def test_nothing_is_resampled_for_inputs_that_are_stored(
    tmp_path: Path, rows: list[dict[str, Any]], request: pytest.FixtureRequest
) -> None:
    study = storing(tmp_path, rows)
    request.getfixturevalue("no_bootstrap")
    assert [decision.verdict for decision in engine(study).decide_all()][1] == "met"


def test_what_is_not_stored_is_computed(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    stored = storing(tmp_path / "stored", rows)
    assert not interval_of(stored, recompute=True).is_stored
    amended = engine(stored, {"A1": "1" * 64}).decide("H").interval
    assert isinstance(amended, Interval)
    assert not amended.is_stored
    assert not interval_of(storing(tmp_path / "other", rows, inputs_sha256="0" * 64)).is_stored
    runs = [replace(run, facts={"provider": "elsewhere"}) for run in SMALL_RUNS]
    changed = write_rows_study(tmp_path / "changed", runs, rows={"decisions": rows})
    assert not interval_of(changed).is_stored
    assert not interval_of(write_rows_study(tmp_path / "less", rows={"decisions": rows[1:]})).is_stored


NO_INTERVAL = dict.fromkeys(("interval", "level", "low", "high", "low_error", "high_error"))


@pytest.mark.parametrize(
    ("forged", "recompute", "problem"),
    [
        ({"verdict": "perhaps"}, False, "the stored decision on H has another"),
        ({"evidence": "not_estimated"}, False, "the stored decision on H has another"),
        ({"kind": "prediction"}, False, "the stored decision on H has another"),
        ({"estimate": 0.9}, False, "another estimate than its own inputs give"),
        (NO_INTERVAL, False, "the stored decision on H has another"),
        ({"low": -0.75}, True, "another low than its own inputs give"),
        ({"level": 0.5}, False, "is not the registered one"),
        ({"high_error": None}, False, "is not the registered one"),
    ],
    ids=lambda given: next(iter(given)) if isinstance(given, dict) else "",
)
def test_a_stored_decision_that_its_own_inputs_contradict_is_damage(
    tmp_path: Path, rows: list[dict[str, Any]], forged: dict[str, Any], recompute: bool, problem: str
) -> None:
    study = storing(tmp_path, rows, **forged)
    with pytest.raises(DamagedError, match=problem):
        engine(study, recompute=recompute).decide("H")


def test_a_stored_estimate_agrees_but_for_rounding(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    estimate = rows[0]["estimate"] + 1e-6
    with pytest.raises(DamagedError, match="another estimate than its own inputs give"):
        engine(storing(tmp_path, rows, estimate=estimate)).decide("H")


def test_one_interval_with_two_values_is_damage(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    rows[1] |= {name: rows[0][name] for name in NO_INTERVAL} | {"low": rows[0]["low"] - 0.5}
    with pytest.raises(DamagedError, match="another low"):
        engine(storing(tmp_path, rows))


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
        inputs_sha256(*inputs, small())
        for inputs in ((REGISTRATION, {}), (("other", "0" * 64), {}), (REGISTRATION, {"A1": "1"}))
    }
    assert len(known) == 3
