"""`toolkit decide` and `toolkit explain` on a study with episode rows."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.architecture.test_house_rules import imported_by
from tests.conftest import Toolkit
from tests.unit.decisions.rows_study import registered_study
from toolkit.cli.decide import notes
from toolkit.decisions.case import Case, open_case
from toolkit.decisions.stored import decision_rows


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, case: Case) -> Path:
    return registered_study(tmp_path_factory.mktemp("plain"), case).folder


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory, case: Case) -> Path:
    folder = tmp_path_factory.mktemp("stored")
    decided = open_case(registered_study(folder / "before", case), case.registration).engine
    rows = {"decisions": decision_rows(decided.decide_all(), decided.inputs_sha256)}
    return registered_study(folder / "after", case, rows).folder


def test_a_computed_interval_is_printed_with_its_errors(toolkit: Toolkit, plain: Path) -> None:
    (decision,) = toolkit("decide", "H2a", "--study", plain, "--json").json()
    interval = decision["interval"]
    assert (interval["source"], interval["resamples"], interval["stored"]) == ("computed", 10000, False)
    assert 0 < interval["low_error"] < 0.005
    assert 0 < interval["high_error"] < 0.005


def test_a_stored_interval_differs_in_nothing_but_that(toolkit: Toolkit, stored: Path) -> None:
    (quick,) = toolkit("decide", "H2a", "--study", stored, "--json").json()
    (anew,) = toolkit("decide", "H2a", "--study", stored, "--recompute", "--json").json()
    assert (quick["interval"].pop("stored"), anew["interval"].pop("stored")) == (True, False)
    assert quick == anew


def test_people_read_where_intervals_come_from(toolkit: Toolkit, plain: Path, stored: Path) -> None:
    computed = "Intervals are computed from episode rows, 10,000 resamples"
    assert f"{computed}." in toolkit("decide", "H2a", "--study", plain).out
    assert f"{computed}, stored with the study." in toolkit("decide", "H2a", "--study", stored).out
    assert f"{computed}." in toolkit("decide", "H2a", "--study", stored, "--recompute").out


def test_explain_says_what_an_interval_was_computed_from(toolkit: Toolkit, plain: Path) -> None:
    out = toolkit("explain", "H2a", "--study", plain).out
    assert "computed from episode rows, 10,000 resamples: percentile bootstrap" in out


def test_a_close_call_is_loud(case: Case) -> None:
    close = replace(case.engine.decide("H2a"), close_calls=("a test could turn",))
    assert "H2a: CLOSE CALL: a test could turn" in notes([close])


def test_a_study_without_rows_recomputes_nothing(toolkit: Toolkit) -> None:
    anew = toolkit("decide", "--all", "--study", "published", "--recompute", "--json")
    assert anew.out == toolkit("decide", "--all", "--study", "published", "--json").out


def test_computing_an_interval_imports_nothing_that_it_could_do_without(plain: Path) -> None:
    packages = imported_by(f"decide H2a --study {plain} --json")
    assert not {"pandas", "polars", "scipy", "rich"} & packages
