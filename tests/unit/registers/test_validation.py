"""Rows that break the schema, one defect at a time."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from toolkit.errors import DamagedError
from toolkit.registers.arrow import to_arrow
from toolkit.registers.schema import TABLES
from toolkit.registers.validation import check_rows

if TYPE_CHECKING:
    from toolkit.registers.study import Study


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
