"""From rows to the value of an endpoint."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from tests.unit.decisions.study import RULES, SmallStudy, evaluation_row, rule, run_row, small_study
from toolkit.decisions.measure import Indexed, IndexedRows, measure, rows_with
from toolkit.errors import DamagedError, RuleError
from toolkit.rules.rulebook import RuleBook, load_rulebook
from toolkit.rules.values import Missing, Series, exact
from toolkit.structs import replace

BOOK = load_rulebook(RULES + rule("H", "mean(gap) > 0"))


def value(study: SmallStudy, endpoint: str = "gap") -> object:
    return measure(BOOK.endpoints[endpoint], study, BOOK.plan)


def members(study: SmallStudy) -> dict[str, Fraction | Missing]:
    return dict(series(study).items)


def test_a_contrast_is_first_minus_second_seed_by_seed() -> None:
    assert members(small_study()) == {"0": Fraction(1, 10), "1": Fraction(-1, 10)}


def test_pooled_counts_are_summed_before_they_are_divided() -> None:
    study = small_study()
    assert value(study, "pooled") == Fraction(3, 30)
    study.tables["groups_summary"][1]["spurious"] = 5
    assert value(study, "pooled") == Fraction(6, 30)


def test_a_stored_double_counts_as_the_decimal_that_prints_it() -> None:
    assert exact(0.1) == Fraction(1, 10)


def test_a_tier_that_was_never_run_is_not_run() -> None:
    assert all(isinstance(v, Missing) and v.not_run for v in series(small_study(), endpoint="other").values)


def test_a_run_missing_from_a_tier_that_was_begun_is_a_gap() -> None:
    study = small_study()
    study.tables["runs"] = [r for r in study.tables["runs"] if r["run_id"] != "X-paired-1"]
    gap = Missing(not_run=False, reasons=("X paired seed 1 was not run",))
    assert members(study) == {"0": Fraction(1, 10), "1": gap}


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda s: s.tables["evaluations"].pop(0), "has no row with"),
        (lambda s: s.tables["evaluations"][0].update(episodes=9), "expected 10 episodes, found 9"),
        (lambda s: s.tables["evaluations"][0].update(successes=None), "was not published"),
        (lambda s: s.tables["runs"][0].update(status="INCOMPLETE"), "is not complete"),
    ],
)
def test_incomplete_evidence_says_why(damage: Callable[[SmallStudy], None], reason: str) -> None:
    study = small_study()
    damage(study)
    gap = members(study)["0"]
    assert isinstance(gap, Missing)
    assert not gap.not_run
    assert reason in gap.reasons[0]


def test_an_arm_that_is_missing_altogether_is_a_gap_while_its_cell_was_begun() -> None:
    study = small_study()
    study.tables["runs"] = [r for r in study.tables["runs"] if r["arm"] != "independent"]
    gaps = members(study).values()
    assert all(isinstance(gap, Missing) and not gap.not_run for gap in gaps)


def test_a_run_with_other_settings_than_registered_does_not_count() -> None:
    settings = '[training]\nsteps = 100\nloss_type = "dapo"\n\n[[matrix]]'
    book = load_rulebook(RULES.replace("[[matrix]]", settings, 1))
    study = small_study()
    for run in study.tables["runs"]:
        run.update(steps=100, loss_type="dapo")
    assert not isinstance(series(study, book).present(), Missing)
    study.tables["runs"][0]["steps"] = 1
    reason = "X-paired-0 has steps 1, and 100 is registered"
    assert series(study, book).values[0] == Missing(not_run=False, reasons=(reason,))


def series(study: SmallStudy, book: RuleBook = BOOK, endpoint: str = "gap") -> Series[Fraction]:
    measured = measure(book.endpoints[endpoint], study, book.plan)
    assert isinstance(measured, Series)
    return measured


def test_a_series_by_run_names_its_runs_and_the_places_of_those_that_are_missing() -> None:
    book = load_rulebook(RULES.replace('by = "pooled"', 'by = "run"'))
    study = small_study()
    both = (("X-paired-0", Fraction(1, 10)), ("X-paired-1", Fraction(1, 10)))
    assert series(study, book, "pooled").items == both
    study.tables["runs"] = [run for run in study.tables["runs"] if run["run_id"] != "X-paired-1"]
    assert [key for key, _ in series(study, book, "pooled").items] == ["X-paired-0", "X paired seed 1"]


def test_counts_of_too_few_groups_are_missing() -> None:
    book = load_rulebook(RULES.replace('by = "pooled"', 'by = "pooled"\nexpect = { groups = 30 }'))
    study = small_study()
    for row in study.tables["groups_summary"]:
        row["groups"] = 30
    assert measure(book.endpoints["pooled"], study, book.plan) == Fraction(3, 30)
    study.tables["groups_summary"][0]["groups"] = 29
    gap = measure(book.endpoints["pooled"], study, book.plan)
    assert isinstance(gap, Missing)
    assert "expected 30 groups, found 29" in gap.reasons[0]


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_is_none_is_damage(number: float) -> None:
    with pytest.raises(DamagedError, match="not finite"):
        exact(number)


def test_a_curve_that_never_arrives_is_censored() -> None:
    parts = {
        'arms = ["paired", "independent"]\nseeds = [0, 1]\nby': 'arms = ["paired"]\nseeds = [0, 1]\nby',
        'over_steps = "auc"': 'over_steps = "steps_to_threshold"\nthreshold = "0.55"',
        'unit = "fraction"\nrange = ["-1", "1"]': 'unit = "steps"\nrange = ["0", "20"]',
    }
    waiting = RULES
    for old, new in parts.items():
        waiting = waiting.replace(old, new, 1)
    book = load_rulebook(waiting)
    first, second = series(small_study(), book).values
    assert first == 0
    assert isinstance(second, Missing)
    assert "censored at step 20" in second.reasons[0]


def test_a_study_without_the_register_has_no_value() -> None:
    study = small_study()
    del study.tables["evaluations"]
    assert all(isinstance(v, Missing) for v in members(study).values())


def test_a_rate_of_nothing_is_missing_not_zero() -> None:
    study = small_study()
    for row in study.tables["groups_summary"]:
        row.update(spurious=0, all_correct=0)
    gap = value(study, "pooled")
    assert isinstance(gap, Missing)
    assert not gap.not_run


def test_a_run_of_another_role_is_not_read() -> None:
    study = small_study()
    study.tables["runs"].append(run_row("X", "paired", 0, run_id="again", role="replication"))
    assert members(study)["0"] == Fraction(1, 10)


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda s: s.tables["evaluations"][0].update(successes=500), "outside its declared range"),
        (lambda s: s.tables["runs"].append(run_row("X", "paired", 0, run_id="again")), "two deciding runs"),
        (
            lambda s: s.tables["evaluations"].append(evaluation_row("X-paired-0", 0, 1)),
            "2 rows where the endpoint needs one",
        ),
        (lambda s: s.tables["evaluations"][0].update(successes="six"), "is no number"),
    ],
)
def test_rows_that_cannot_be_are_damage(damage: Callable[[SmallStudy], None], problem: str) -> None:
    study = small_study()
    damage(study)
    with pytest.raises(DamagedError, match=problem):
        members(study)


PROBED = """
[endpoints.ratio]
title = "Trace ratio"
register = "probe"
outcome = { figure = "trace_paired", over = "trace_independent" }
where = { noise = "outcome", estimator = "MC" }
by = "checkpoint"
checkpoints = ["base@0", "t@20"]
unit = "ratio"
range = ["0", "1000000"]
"""


def probe_row(trajectory: str, step: int, paired: float, **facts: object) -> dict[str, object]:
    key = {"trajectory": trajectory, "step": step, "noise": "outcome", "estimator": "MC"}
    return {**key, "trace_paired": paired, "trace_independent": 4.0, **facts}


def probed(*rows: dict[str, object], rules: str = PROBED) -> object:
    book = load_rulebook(RULES + rules)
    return measure(book.endpoints["ratio"], SmallStudy({"probe": list(rows)}), book.plan)


def test_a_series_by_checkpoint_has_the_row_of_each() -> None:
    other = probe_row("base", 0, 9.0, estimator="SW"), probe_row("t", 20, 9.0, noise="transition")
    measured = probed(probe_row("base", 0, 2.0), probe_row("t", 20, 3.0), *other)
    assert isinstance(measured, Series)
    assert measured.items == (("base@0", Fraction(1, 2)), ("t@20", Fraction(3, 4)))


def test_an_endpoint_that_leaves_a_column_of_the_key_open_is_told_which() -> None:
    rows = probe_row("base", 0, 2.0), probe_row("base", 0, 3.0, estimator="SW"), probe_row("t", 20, 3.0)
    with pytest.raises(
        RuleError, match="2 rows where the endpoint needs one: it does not say which estimator"
    ) as e:
        probed(*rows, rules=PROBED.replace(', estimator = "MC"', ""))
    assert e.value.where == "endpoint ratio"
    assert e.value.found == "noise=outcome, trajectory=base, step=0, with estimator=MC or SW"
    assert "estimator in its `where`" in str(e.value.remedy)


def test_two_open_columns_are_both_named() -> None:
    rows = [
        probe_row("base", 0, 2.0, estimator=e, noise=n)
        for e in ("MC", "SW")
        for n in ("outcome", "transition")
    ]
    with pytest.raises(RuleError, match=r"4 rows .* which noise and estimator"):
        probed(*rows, rules=PROBED.replace('where = { noise = "outcome", estimator = "MC" }\n', ""))


def test_rows_with_one_key_are_damage_and_not_the_endpoints_fault() -> None:
    with pytest.raises(DamagedError, match="2 rows where the endpoint needs one") as caught:
        probed(probe_row("base", 0, 2.0), probe_row("base", 0, 3.0))
    assert not isinstance(caught.value, RuleError)


ROWS = [{"a": 1, "b": None, "c": 3}, {"a": 1, "b": "x", "c": 4}, {"a": 2, "b": "x", "c": 5}]


def test_an_index_finds_what_a_scan_finds_in_order() -> None:
    for wanted in ({"a": 1}, {"a": 1, "b": "x"}, {"b": None}, {"c": 9}, {}):
        assert rows_with(IndexedRows(ROWS), wanted) == rows_with(ROWS, wanted)


def test_a_table_is_read_once() -> None:
    study = Indexed(small_study())
    assert study.rows("runs") is study.rows("runs")
    assert study.rows("runs") == small_study().rows("runs")


@pytest.mark.parametrize(
    "fewer", [{"seeds": (0,)}, {"arms": ("paired",)}, {"steps": ()}, {}], ids=["seeds", "arms", "steps", ""]
)
def test_an_endpoint_covers_one_that_reads_fewer_of_its_rows(fewer: dict[str, Any]) -> None:
    gap = BOOK.endpoints["gap"]
    less = replace(gap, **fewer)
    assert gap.covers(less)
    assert less.covers(gap) == (less == gap)
    assert not gap.covers(replace(less, condition="elsewhere"))
    assert not gap.covers(replace(less, where={**gap.where, "regime": "elsewhere"}))
