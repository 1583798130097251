"""Rows that break the schema, one defect at a time."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests import row_study
from toolkit.errors import DamagedError
from toolkit.registers.arrow import to_arrow
from toolkit.registers.schema import TABLES
from toolkit.registers.study import Study
from toolkit.registers.validation import NEAR, check_rows, check_table, compare

DEFECTS = [
    ("evaluations", {"successes": -1}, "too small"),
    ("evaluations", {"successes": 65}, "larger than it can be"),
    ("evaluations", {"observed_successes": 64, "successes": 1}, "larger than it can be"),
    ("evaluations", {"episodes": 0, "successes": 0, "observed_successes": 0}, "too small"),
    ("evaluations", {"regime": "stormy"}, "not one of the allowed values"),
    ("evaluations", {"run_id": "AAA-unknown"}, "refers to nothing"),
    ("evaluations", {"seed": 7}, "contradicts runs"),
    ("evaluations", {"arm": "independent"}, "contradicts runs"),
    ("evaluations", {"observed_successes": 1}, "do not add up to successes"),
    ("groups_summary", {"several_seeds": 1, "sharing_one_seed": 1}, "do not add up to groups"),
    ("luck_share_summary", {"interval_low": Decimal(5)}, "too large|larger than it can be"),
    ("luck_share_summary", {"run_id": "AAA-ghost", "condition": "C2"}, "refers to nothing"),
    ("intervals", {"low": Decimal("0.05")}, "larger than it can be"),
    ("intervals", {"high": Decimal("-0.5")}, "larger than it can be"),
    ("intervals", {"decimals": 0}, "too small"),
    ("probe", {"trajectory": "AA"}, "refers to nothing"),
]


@pytest.mark.parametrize(("table", "defect", "problem"), DEFECTS)
def test_figures_that_contradict_each_other_are_refused_with_their_place(
    published, table, defect, problem
) -> None:
    rows = {name: published.rows(name) for name in {table, "runs", "probe_checkpoints"}}
    rows[table][0].update(defect)
    with pytest.raises(DamagedError, match=problem) as caught:
        check_rows({name: to_arrow(TABLES[name], values) for name, values in rows.items()})
    assert str(caught.value.where).startswith(f"{table} row ")


def test_a_row_with_other_columns_is_refused(published: Study) -> None:
    rows = published.rows("runs")
    del rows[0]["status"]
    with pytest.raises(DamagedError, match="does not have the schema's columns"):
        to_arrow(TABLES["runs"], rows)


def test_a_time_outside_the_calendar_is_refused(published: Study) -> None:
    table = published.arrow("events")
    ticks = table["occurred_at"].cast(pa.int64()).to_pylist()
    late = pa.array([*ticks[:-1], 2**62], pa.int64()).cast(table.schema.field("occurred_at").type)
    with pytest.raises(DamagedError, match="a time lies outside the calendar"):
        check_table(TABLES["events"], row_study.with_column(table, "occurred_at", late))


KEY = {"pool": "test", "task": 2, "schedule": 0}
ROW = KEY | {"schedule_seed": 7}


@pytest.mark.parametrize(
    ("derived", "stored"),
    [
        ([], []),
        ([ROW], [ROW]),
        ([ROW], [ROW | {"beside": 1}]),
        ([ROW | {"beside": 1}], [ROW]),
        ([ROW, ROW | {"task": 1}], [ROW | {"task": 1}, ROW]),
    ],
    ids=["nothing", "the same", "more stored", "more derived", "another order"],
)
def test_rows_that_agree_in_what_both_say_pass(derived: list[Any], stored: list[Any]) -> None:
    compare("schedules", derived, stored)


@pytest.mark.parametrize(
    ("derived", "stored", "problem"),
    [
        ([ROW], [], "lacks a row that follows from"),
        ([], [ROW], "has a row that does not follow from"),
        ([ROW], [ROW | {"schedule_seed": 8}], "schedules.schedule_seed is not what follows"),
        ([ROW], [ROW | {"schedule_seed": None}], "schedules.schedule_seed is not what follows"),
        ([ROW | {"schedule_seed": None}], [ROW], "schedules.schedule_seed is not what follows"),
    ],
)
def test_a_row_that_differs_is_named(derived: list[Any], stored: list[Any], problem: str) -> None:
    with pytest.raises(DamagedError, match=problem) as caught:
        compare("schedules", derived, stored)
    assert caught.value.where == "schedules row pool=test, task=2, schedule=0"


def test_the_first_row_by_its_key_is_named() -> None:
    derived = [ROW | {"task": task} for task in (10, 2, 1)]
    stored = [row | {"schedule_seed": row["task"]} for row in derived]
    with pytest.raises(DamagedError) as caught:
        compare("schedules", derived, stored)
    assert "task=1, " in str(caught.value.where)
    assert (caught.value.expected, caught.value.found) == ("7", "1")


def test_the_tables_that_a_row_follows_from_are_named() -> None:
    row = {"run_id": "r", "groups": 1}
    with pytest.raises(DamagedError, match=r"groups_summary\.groups is not what follows from groups"):
        compare("groups_summary", [row], [row | {"groups": 2}])


@pytest.mark.parametrize(
    ("value", "off", "agrees"),
    [(0.5, 0.4 * NEAR, True), (0.5, 4 * NEAR, False), (0.0, 1e-19, True), (0.0, 1e-12, False)],
)
def test_doubles_agree_but_for_their_last_digits(value: float, off: float, agrees: bool) -> None:
    row = {"run_id": "r", "groups": 1, "mean_max_abs_advantage": value}
    other = row | {"mean_max_abs_advantage": value + off}
    if agrees:
        compare("groups_summary", [row], [other])
    else:
        with pytest.raises(DamagedError, match="mean_max_abs_advantage"):
            compare("groups_summary", [row], [other])
