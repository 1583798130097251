"""Rows by value: what an index finds is what a scan finds."""

from tests.unit.decisions.study import small_study
from toolkit.decisions.lookup import Indexed, IndexedRows, rows_with

ROWS = [{"a": 1, "b": None, "c": 3}, {"a": 1, "b": "x", "c": 4}, {"a": 2, "b": "x", "c": 5}]


def test_an_index_finds_what_a_scan_finds_in_order() -> None:
    for wanted in ({"a": 1}, {"a": 1, "b": "x"}, {"b": None}, {"c": 9}, {}):
        assert rows_with(IndexedRows(ROWS), wanted) == rows_with(ROWS, wanted)


def test_a_table_is_read_once() -> None:
    study = Indexed(small_study())
    assert study.rows("runs") is study.rows("runs")
    assert study.rows("runs") == small_study().rows("runs")
