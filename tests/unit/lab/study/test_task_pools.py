"""The task pools as a dataset: splits, and that a changed task is found."""

import pytest

from tests.conftest import CHECKOUT
from tests.unit.lab.study.changed import Changed
from toolkit.errors import DamagedError, VerificationError
from toolkit.lab.task_pools import TABLE, verify
from toolkit.registers.study import Study, open_study


@pytest.fixture(scope="module")
def study() -> Study:
    return open_study(CHECKOUT / "registers/task-pools")


def test_a_task_that_was_changed_or_is_missing_or_too_many_is_found(study, monkeypatch) -> None:
    monkeypatch.setattr("toolkit.lab.task_pools.POOLS", ("diagnostic",))  # the smallest
    rows = [row for row in study.rows(TABLE) if row["pool"] == "diagnostic"]
    assert list(verify(Changed(study, {TABLE: rows}), print)) == ["diagnostic"]  # type: ignore[arg-type]
    columns = ("prompt", "plan", "expected", "world", "budget", "sha256", "forms")
    defects = [
        *(([*rows[:9], {**rows[9], name: "changed"}, *rows[10:]], f"{name} of task") for name in columns),
        (rows[:-1], "is missing"),
        ([*rows, {**rows[-1], "index": 300}], "that no pool has"),
    ]
    for defect, said in defects:
        with pytest.raises((DamagedError, VerificationError), match=said):
            verify(Changed(study, {TABLE: defect}), print)  # type: ignore[arg-type]
