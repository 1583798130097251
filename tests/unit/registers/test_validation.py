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
from toolkit.registers.validation import check_rows, check_table


def tables(study: Study, **defect: Any) -> dict[str, Any]:
    """Return runs and evaluations as Arrow, the first evaluation changed."""
    rows = {name: study.rows(name) for name in ("runs", "evaluations")}
    rows["evaluations"][0].update(defect)
    return {name: to_arrow(TABLES[name], listed) for name, listed in rows.items()}


def test_good_rows_pass(published: Study) -> None:
    check_rows(tables(published))


@pytest.mark.parametrize(
    ("defect", "problem"),
    [
        ({"successes": -1}, "too small"),
        ({"successes": 65}, "larger than it can be"),
        ({"observed_successes": 64, "successes": 1}, "larger than it can be"),
        ({"episodes": 0, "successes": 0, "observed_successes": 0}, "too small"),
        ({"regime": "stormy"}, "not one of the allowed values"),
        ({"arm": "alone"}, "not one of the allowed values"),
        ({"run_id": "AAA-unknown"}, "refers to nothing"),
        ({"seed": 7}, "contradicts runs"),
        ({"arm": "independent"}, "contradicts runs"),
        ({"observed_successes": 1}, "do not add up to successes"),
    ],
)
def test_a_defect_is_refused_with_its_place(published: Study, defect: dict[str, Any], problem: str) -> None:
    with pytest.raises(DamagedError, match=problem) as caught:
        check_rows(tables(published, **defect))
    assert "run_id=" in str(caught.value.where)


@pytest.mark.parametrize(
    ("table", "defect", "problem"),
    [
        ("groups_summary", {"several_seeds": 1, "sharing_one_seed": 1}, "do not add up to groups"),
        ("luck_share_summary", {"interval_low": Decimal(5)}, "too large|larger than it can be"),
        ("luck_share_summary", {"run_id": "AAA-ghost", "condition": "C2"}, "refers to nothing"),
        ("intervals", {"low": Decimal("0.05")}, "larger than it can be"),
        ("intervals", {"high": Decimal("-0.5")}, "larger than it can be"),
        ("intervals", {"decimals": 0}, "too small"),
        ("probe", {"trajectory": "AA"}, "refers to nothing"),
    ],
)
def test_figures_that_contradict_each_other_are_refused(
    published: Study, table: str, defect: dict[str, Any], problem: str
) -> None:
    rows = {name: published.rows(name) for name in {table, "runs", "probe_checkpoints"}}
    rows[table][0].update(defect)
    with pytest.raises(DamagedError, match=problem):
        check_rows({name: to_arrow(TABLES[name], listed) for name, listed in rows.items()})


def test_a_row_twice_is_refused(published: Study) -> None:
    rows = published.rows("runs")
    with pytest.raises(DamagedError, match="not unique"):
        check_rows({"runs": to_arrow(TABLES["runs"], [*rows, rows[0]])})


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_is_none_is_refused(published: Study, value: float) -> None:
    rows = published.rows("probe_checkpoints")
    rows[0]["weight_mean"] = value
    with pytest.raises(DamagedError, match="not finite"):
        check_rows({"probe_checkpoints": to_arrow(TABLES["probe_checkpoints"], rows)})


def test_an_absent_value_is_refused_where_one_has_to_be(published: Study) -> None:
    with pytest.raises(DamagedError, match=r"absent|wrong type"):
        check_rows(tables(published, successes=None))


def test_a_row_with_other_columns_is_refused(published: Study) -> None:
    rows = published.rows("runs")
    del rows[0]["status"]
    with pytest.raises(DamagedError, match="does not have the schema's columns"):
        to_arrow(TABLES["runs"], rows)


def whole(name: str, row: int = 0, **defect: Any) -> pa.Table:
    """Return episodes or groups of two runs, values of one row changed."""
    made = {"episodes": row_study.episodes, "groups": row_study.groups}[name]
    table = pa.concat_tables([made(run_id, seed) for seed, run_id in enumerate(row_study.run_ids(2))])
    for column, value in defect.items():
        position = table.column_names.index(column)
        values = table[column].to_pylist()
        values[row] = value
        field = table.schema.field(position)
        table = table.set_column(position, field, pa.array(values, field.type))
    return table


@pytest.mark.parametrize("name", ["episodes", "groups"])
def test_many_good_rows_pass(name: str) -> None:
    table = whole(name)
    check_table(TABLES[name].narrowed(table.column_names), table)


ROW_DEFECTS: dict[str, tuple[str, dict[str, Any], str, str, str]] = {
    "reward without success": (
        "episodes",
        {"true_success": False, "observed_reward": True},
        "episodes.observed_reward is larger than it can be",
        "at most true_success = False",
        "True",
    ),
    "more recoveries than were due": (
        "episodes",
        {"reread_after_stale_due": 0, "reread_after_stale_made": 9},
        "episodes.reread_after_stale_made is larger than it can be",
        "at most reread_after_stale_due = 0",
        "9",
    ),
    "fewer calls than none": ("episodes", {"calls": -1}, "episodes.calls is too small", "at least 0", "-1"),
    "an end that is none": (
        "episodes",
        {"ended": "asleep"},
        "episodes.ended is not one of the allowed values",
        "finished, budget_exceeded, stopped",
        "asleep",
    ),
    "no seed": ("episodes", {"schedule_seed": None}, "episodes.schedule_seed is absent", "a value", "None"),
    "fewer exposed than none": ("groups", {"exposed": -7}, "groups.exposed is too small", "at least 0", "-7"),
    "an advantage that is no number": (
        "groups",
        {"advantages": [0.0, float("nan")]},
        "groups.advantages is not finite",
        "finite numbers",
        "[0.0, nan]",
    ),
    "an absent advantage": (
        "groups",
        {"advantages": [0.0, None]},
        "groups.advantages holds an absent value",
        "a value at every place of the list",
        "[0.0, None]",
    ),
    "an absent seed": (
        "groups",
        {"schedule_seeds": [None]},
        "groups.schedule_seeds holds an absent value",
        "a value at every place of the list",
        "[None]",
    ),
    "an absent list": (
        "groups",
        {"true_successes": None},
        "groups.true_successes is absent",
        "a value",
        "None",
    ),
}


@pytest.mark.parametrize("defect", ROW_DEFECTS)
@pytest.mark.parametrize("row", [0, 1234, -1])
def test_a_defect_of_many_rows_is_refused_with_what_was_expected_and_found(defect: str, row: int) -> None:
    name, values, problem, expected, found = ROW_DEFECTS[defect]
    table = whole(name, row, **values)
    with pytest.raises(DamagedError) as caught:
        check_table(TABLES[name].narrowed(table.column_names), table)
    key = table.select(list(TABLES[name].key)).to_pylist()[row]
    where = f"{name} row " + ", ".join(f"{column}={value}" for column, value in key.items())
    error = caught.value
    assert (error.problem, str(error.expected), str(error.found), error.where) == (
        problem,
        expected,
        found,
        where,
    )


def test_the_first_of_several_defects_is_named() -> None:
    table = whole("episodes", 700, calls=-1)
    values = table["ended"].to_pylist()
    values[699] = "asleep"
    position = table.column_names.index("ended")
    table = table.set_column(position, table.schema.field(position), pa.array(values))
    with pytest.raises(DamagedError, match=r"episodes\.ended"):
        check_table(TABLES["episodes"], table)


def test_two_rows_that_changed_places_are_found() -> None:
    table = whole("episodes")
    swapped = pa.concat_tables([table.slice(0, 50), table.slice(51, 1), table.slice(50, 1), table.slice(52)])
    with pytest.raises(DamagedError, match="the rows of episodes are not sorted"):
        check_table(TABLES["episodes"], swapped)


def test_a_row_that_refers_to_nothing_is_found_among_many() -> None:
    table = whole("groups", -1, run_id="c2-paired-s999")
    with pytest.raises(DamagedError, match="refers to nothing") as caught:
        check_rows({"runs": row_study.runs(row_study.run_ids(2)), "groups": table})
    assert caught.value.where == "groups row run_id=c2-paired-s999, step=300, position=7"


def test_a_time_outside_the_calendar_is_refused(published: Study) -> None:
    table = published.arrow("events")
    field = table.schema.field("occurred_at")
    ticks = table["occurred_at"].cast(pa.int64()).to_pylist()
    late = pa.array([*ticks[:-1], 2**62], pa.int64()).cast(field.type)
    with pytest.raises(DamagedError, match="a time lies outside the calendar"):
        check_table(TABLES["events"], table.set_column(table.column_names.index(field.name), field, late))
