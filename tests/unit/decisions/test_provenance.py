"""The SQL of an endpoint lists exactly the rows that the engine reads."""

from fractions import Fraction
from typing import Any

import pytest

from tests.conftest import CHECKOUT
from toolkit.decisions.case import Case
from toolkit.decisions.measure import measure, rows_query
from toolkit.decisions.values import Missing, Series
from toolkit.registers.query import ask


class Recording:
    """A study that remembers which rows were matched, by handing out rows that report being read."""

    def __init__(self, study: Any) -> None:
        self._study = study
        self.name, self.is_summary, self.origin = study.name, study.is_summary, study.origin
        self.read: dict[str, set[int]] = {}
        self._handed: dict[str, list[dict[str, Any]]] = {}

    def has(self, table: str) -> bool:
        return bool(self._study.has(table))

    def sha256(self, table: str) -> str:
        return str(self._study.sha256(table))

    def files(self, table: str) -> dict[str, str]:
        return dict(self._study.files(table))

    def rows(self, table: str) -> list[dict[str, Any]]:
        if table not in self._handed:
            seen = self.read.setdefault(table, set())
            self._handed[table] = [
                Row(row, number, seen) for number, row in enumerate(self._study.rows(table))
            ]
        return self._handed[table]


class Row(dict[str, Any]):
    """A row that reports when a measured column is read."""

    MEASURED = frozenset(
        {
            "successes",
            "spurious",
            "luck_share",
            "interval_low",
            "sharing_one_seed",
            "trace_paired",
            "condition_left",
        }
    )

    def __init__(self, row: dict[str, Any], number: int, seen: set[int]) -> None:
        super().__init__(row)
        self._number, self._seen = number, seen

    def __getitem__(self, name: str) -> Any:
        if name in self.MEASURED:
            self._seen.add(self._number)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        if name not in self:
            return default
        return self[name]


def endpoint_ids() -> list[str]:
    import tomllib

    rules = tomllib.loads((CHECKOUT / "prereg/paired-rollouts/rules.toml").read_text(encoding="utf-8"))
    return list(rules["endpoints"])


@pytest.mark.parametrize("name", endpoint_ids())
def test_the_query_lists_the_rows_that_were_read(case: Case, name: str) -> None:
    endpoint = case.book.endpoints[name]
    recording = Recording(case.study)
    value = measure(endpoint, recording, case.book.plan)
    read = [
        dict(recording.rows(endpoint.register)[i]) for i in sorted(recording.read.get(endpoint.register, ()))
    ]
    answer = ask(case.study, rows_query(endpoint, case.book.plan))
    listed = {tuple(row) for row in answer.rows}
    assert listed == {tuple(row[column] for column in answer.columns if column in row) for row in read}
    present = value.present() if isinstance(value, Series) else value
    assert listed or isinstance(present, Missing)


def test_the_query_of_h2a_gives_its_number(case: Case) -> None:
    """From the listed rows alone, by hand: the weighted sum of the differences is 71/1920."""
    answer = ask(case.study, rows_query(case.book.endpoints["c2_auc"], case.book.plan))
    weights = {0: 1, 20: 2, 40: 2, 60: 2, 80: 2, 100: 1}
    total = Fraction(0)
    for arm, _, _, step, successes, episodes in answer.rows:
        sign = 1 if arm == "paired" else -1
        total += sign * Fraction(weights[step], 10) * Fraction(successes, episodes)
    assert total / 3 == Fraction(71, 1920)
