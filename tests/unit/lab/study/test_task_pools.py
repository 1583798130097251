"""The task pools as a dataset: splits, and that a changed task is found."""

from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from tests.described import configs
from tests.unit.lab.study.changed import Changed
from toolkit.errors import DamagedError, VerificationError
from toolkit.lab.task_pools import TABLE, task_row, verify
from toolkit.lab.tasks.pools import POOLS, load_task
from toolkit.registers.columns import POOLS as SPLITS
from toolkit.registers.study import Study, open_study


@pytest.fixture(scope="module")
def study() -> Study:
    return open_study(CHECKOUT / "registers/task-pools")


def test_the_splits_are_the_pools(study: Study) -> None:
    (config,) = configs(study)
    assert {split.name for split in config.splits} == set(POOLS) == set(SPLITS)


def test_datasets_loads_every_split(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    from datasets import load_dataset

    loaded = load_dataset(str(CHECKOUT / "registers/task-pools"), cache_dir=str(tmp_path))
    assert {name: part.num_rows for name, part in loaded.items()} == {p.name: p.size for p in POOLS.values()}
    assert loaded["validation"][0] == task_row(load_task("validation:0"))


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
