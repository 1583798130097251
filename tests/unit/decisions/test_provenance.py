"""The SQL of an endpoint lists exactly the rows that the engine reads."""

import tomllib
from fractions import Fraction
from typing import Any

import pytest

from tests.conftest import CHECKOUT
from toolkit.decisions.case import Case, rows_query
from toolkit.decisions.measure import measure
from toolkit.registers.query import ask
from toolkit.rules.values import Missing, Series

MEASURED = {"successes", "spurious", "luck_share", "interval_low", "sharing_one_seed"}
MEASURED |= {"trace_paired", "condition_left"}


class Row(dict[str, Any]):
    """A row that reports when a measured column is read."""

    def __init__(self, row: dict[str, Any], seen: list[dict[str, Any]]) -> None:
        super().__init__(row)
        self._seen = seen

    def __getitem__(self, name: str) -> Any:
        if name in MEASURED and self not in self._seen:
            self._seen.append(self)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        if name not in self:
            return default
        return self[name]


class Recording:
    """A study that hands out the rows of one table so that they report being read."""

    def __init__(self, study: Any, table: str) -> None:
        self._study, self._table = study, table
        self.read: list[dict[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._study, name)

    def rows(self, table: str) -> list[dict[str, Any]]:
        rows = self._study.rows(table)
        return [Row(row, self.read) for row in rows] if table == self._table else rows


RULES = tomllib.loads((CHECKOUT / "prereg/paired-rollouts/rules.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", RULES["endpoints"])
def test_the_query_lists_the_rows_that_were_read(case: Case, name: str) -> None:
    endpoint = case.book.endpoints[name]
    study = Recording(case.study, endpoint.register)
    value = measure(endpoint, study, case.book.plan)  # type: ignore[arg-type]
    answer = ask(case.study, rows_query(endpoint, case.book.plan, case.study))
    shown = {tuple(row) for row in answer.rows}
    read = {tuple(dict.get(row, column) for column in answer.columns if column in row) for row in study.read}
    assert shown == read
    present = value.present() if isinstance(value, Series) else value
    assert shown or isinstance(present, Missing)


def test_the_query_of_h2a_gives_its_number(case: Case) -> None:
    """From the listed rows alone, by hand: the weighted sum of the differences is 71/1920."""
    answer = ask(case.study, rows_query(case.book.endpoints["c2_auc"], case.book.plan, case.study))
    weights = {0: 1, 20: 2, 40: 2, 60: 2, 80: 2, 100: 1}
    total = Fraction(0)
    for arm, _, _, step, successes, episodes in answer.rows:
        sign = 1 if arm == "paired" else -1
        total += sign * Fraction(weights[step], 10) * Fraction(successes, episodes)
    assert total / 3 == Fraction(71, 1920)
