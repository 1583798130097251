"""`toolkit decide` and `toolkit explain` on a study with episode rows."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from tests.architecture.test_house_rules import imported_by
from tests.conftest import Toolkit
from tests.unit.decisions.rows_study import registered_study
from toolkit.cli.decide import notes
from toolkit.decisions.case import Case
from toolkit.registers.study import open_study


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, case: Case) -> Path:
    return registered_study(tmp_path_factory.mktemp("plain"), case).folder


def test_a_computed_interval_is_printed_with_its_errors(toolkit: Toolkit, plain: Path) -> None:
    (decision,) = toolkit("decide", "H2a", "--study", plain, "--json").json()
    interval = decision["interval"]
    assert (interval["source"], interval["resamples"]) == ("computed", 10000)
    assert 0 < interval["low_error"] < 0.005
    assert 0 < interval["high_error"] < 0.005


def test_people_read_where_intervals_come_from(toolkit: Toolkit, plain: Path) -> None:
    computed = "Intervals are computed from episode rows, 10,000 resamples."
    assert computed in toolkit("decide", "H2a", "--study", plain).out


def test_every_file_that_is_named_was_hashed_and_no_other_is(toolkit: Toolkit, plain: Path) -> None:
    (decision,) = toolkit("decide", "H2a", "--study", plain, "--json").json()
    named = {file: sha256 for read in decision["registers"] for file, sha256 in read["files"].items()}
    assert named == {file: hashlib.sha256((plain / file).read_bytes()).hexdigest() for file in named}
    runs = {f"episodes/C2-{arm}-{seed}.parquet" for arm in ("paired", "independent") for seed in (0, 1, 2)}
    assert {file for file in named if file.startswith("episodes/")} == runs
    whole = {read["config"]: read["sha256"] for read in decision["registers"]}
    assert (whole["episodes"], whole["evaluations"]) == (None, open_study(plain).sha256("evaluations"))


def test_explain_says_what_an_interval_was_computed_from(toolkit: Toolkit, plain: Path) -> None:
    out = toolkit("explain", "H2a", "--study", plain).out
    assert "computed from episode rows, 10,000 resamples: percentile bootstrap" in out
    assert "Register   episodes 6 files, each hashed when it was read" in out


def test_a_close_call_is_loud(case: Case) -> None:
    close = replace(case.decide("H2a"), close_calls=("a test could turn",))
    assert "H2a: CLOSE CALL: a test could turn" in notes([close])


def test_computing_an_interval_imports_nothing_that_it_could_do_without(plain: Path) -> None:
    packages = imported_by(f"decide H2a --study {plain} --json")
    assert not {"pandas", "polars", "scipy", "rich"} & packages


def test_a_quotient_over_nearly_nothing_is_told(toolkit: Toolkit) -> None:
    """P7 of the embedded study: a gap of 0.0016 between two seeds, below one fifteen times as large."""
    (document,) = toolkit("decide", "P7", "--study", "embedded", "--json").json()
    shrinks, positive = document["criteria"]
    (caution,) = shrinks["cautions"]
    assert "the mean of c4_auc_group, is not told from zero" in caution
    assert "cautions" not in positive
    assert caution in " ".join(toolkit("explain", "P7", "--study", "embedded").out.split())
    assert "not told from zero" in " ".join(toolkit("decide", "P7", "--study", "embedded").out.split())
