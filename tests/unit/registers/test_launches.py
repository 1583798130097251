"""When runs were launched."""

from __future__ import annotations

from tests.conftest import CHECKOUT
from toolkit.registers.study import Study, launched_runs, open_study


def test_a_study_without_launches_says_so_in_its_runs(published: Study) -> None:
    assert launched_runs(published) == published.rows("runs")


def test_a_run_was_launched_when_its_first_attempt_was() -> None:
    embedded = open_study(CHECKOUT / "registers" / "embedded")
    launches = embedded.rows("launches")
    first = {run["run_id"]: run["launched_at"] for run in launched_runs(embedded)}
    assert all(
        first[run_id] == min(one["launched_at"] for one in launches if one["run_id"] == run_id)
        for run_id in first
    )


def test_a_later_attempt_does_not_count() -> None:
    class Cut:
        """A study of one run, cut off once."""

        def has(self, _: str) -> bool:
            return True

        def rows(self, table: str) -> list[dict[str, object]]:
            if table == "runs":
                return [{"run_id": "r", "launched_at": None}]
            return [{"run_id": "r", "launched_at": at} for at in (2, 1, 3)]

    assert launched_runs(Cut()) == [{"run_id": "r", "launched_at": 1}]
