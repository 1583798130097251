"""The task pools as a dataset: splits, and that a changed task is found."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT
from tests.described import configs
from toolkit.errors import DamagedError, VerificationError
from toolkit.registers.columns import POOLS as SPLITS
from toolkit.registers.study import Study, open_study
from toolkit.study.new.task_pools import task_row, verify
from toolkit.tasks.pools import POOLS, load_task


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
    row = loaded["validation"][0]
    assert row == task_row(load_task("validation:0"))
    assert os.environ["HF_HUB_OFFLINE"] == "1"


class Changed:
    """A study whose rows were changed after they were read."""

    def __init__(self, study: Study, rows: list[dict[str, Any]]) -> None:
        self.folder = study.folder
        self._rows = rows

    def rows(self, _: str) -> list[dict[str, Any]]:
        return self._rows


def quiet(_: str) -> None:
    pass


@pytest.mark.parametrize("column", ["prompt", "plan", "expected", "world", "budget", "sha256", "forms"])
def test_a_changed_field_is_found(study: Study, column: str) -> None:
    rows = study.rows("task_pools")
    rows[1234] = {**rows[1234], column: "changed"}
    with pytest.raises(VerificationError, match=f"{column} of task"):
        verify(Changed(study, rows), quiet)  # type: ignore[arg-type]


def test_a_missing_task_is_found(study: Study) -> None:
    rows = study.rows("task_pools")
    with pytest.raises(DamagedError, match="is missing"):
        verify(Changed(study, rows[:-1]), quiet)  # type: ignore[arg-type]


def test_a_task_too_many_is_found(study: Study) -> None:
    rows = study.rows("task_pools")
    extra = {**rows[-1], "index": 300}
    with pytest.raises(DamagedError, match="that no pool has"):
        verify(Changed(study, [*rows, extra]), quiet)  # type: ignore[arg-type]
