"""From rows to the value of an endpoint."""

from fractions import Fraction
from typing import Any

import pytest

from tests.unit.decisions.study import RULES, SmallStudy, rule, small_study
from toolkit.decisions.measure import Indexed, IndexedRows, measure, rows_with
from toolkit.errors import DamagedError, RuleError
from toolkit.rules.rulebook import load_rulebook
from toolkit.rules.values import Series, exact
from toolkit.structs import replace

BOOK = load_rulebook(RULES + rule("H", "mean(gap) > 0"))


def test_a_stored_double_counts_as_the_decimal_that_prints_it() -> None:
    assert exact(0.1) == Fraction(1, 10)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_that_is_none_is_damage(number: float) -> None:
    with pytest.raises(DamagedError, match="not finite"):
        exact(number)


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
