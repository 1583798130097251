"""Rows that follow beside rows that are stored: the first that differs is named."""

from typing import Any

import pytest

from toolkit.errors import DamagedError
from toolkit.registers.validation import NEAR, compare

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
