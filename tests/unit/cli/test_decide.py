"""`toolkit decide` and `toolkit explain` on a study with episode rows."""

import hashlib
from pathlib import Path

import pytest

from tests.architecture.test_house_rules import imported_by
from tests.conftest import Toolkit
from tests.unit.decisions.rows_study import registered_study
from tests.unit.decisions.study import amendment, rule
from toolkit.cli.decide import _more_lines, notes
from toolkit.decisions.case import Case, Explanation
from toolkit.decisions.engine import Engine
from toolkit.registers.study import open_study
from toolkit.rules.rulebook import load_rulebook
from toolkit.structs import replace


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
    computed = "computed from episode rows, 10,000 resamples"
    assert f"], {computed}: includes zero" in toolkit("decide", "H2a", "--study", plain).out
    assert f"Intervals are {computed}." in toolkit("decide", "--all", "--study", plain).out


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
    assert "Interval   computed from episode rows, 10,000 resamples: percentile bootstrap" in out
    assert "Register   episodes 6 files, each hashed when it was read" in out


def test_a_close_call_is_loud(case: Case) -> None:
    close = replace(case.decide("H2a"), close_calls=("a test could turn",))
    assert "H2a: CLOSE CALL: a test could turn" in notes([close])


def test_computing_an_interval_imports_nothing_that_it_could_do_without(plain: Path) -> None:
    packages = imported_by(f"decide H2a --study {plain} --json")
    assert not {"pandas", "polars", "scipy", "rich"} & packages


TESTED = """
[tests.flip]
endpoint = "c2_auc"
method = "sign flip"
over = "seeds"
alternative = "two-sided"

[intervals.c2_90]
endpoint = "c2_auc"
level = "0.90"
method = "t over seeds"
"""


def test_explain_says_each_test_and_the_level_of_a_margin(case: Case) -> None:
    tests = rule("S", "p(flip) <= 0.5", "equivalent(c2_90, 0.3)")
    added = amendment("A9", 'adds = ["S"]', TESTED, tests)
    book = load_rulebook(case.registration.rules, [*(a.rules for a in case.registration.amendments), added])
    decision = Engine(book, (case.registration.name, ""), case.engine.registers).decide("S")
    made = {name: getattr(decision, name) for name in decision.__struct_fields__}
    more = {"text": "", "confidence": None, "readings_text": None, "endpoints": (), "deviations": ()}
    explained = Explanation(**made, **more)  # type: ignore[arg-type]
    lines = list(_more_lines(explained))
    assert "equivalence at ±0.3: two one-sided tests (TOST) at 5% each" in "\n".join(lines)
    (said,) = (line for line in lines if line.startswith("Test"))
    assert said.startswith(
        "Test       flip of c2_auc: p = 0.5 (sign-flip test over seeds, exact over all signs"
    )
