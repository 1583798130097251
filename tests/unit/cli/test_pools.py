"""`toolkit pools`: list, show, build, verify."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.conftest import CHECKOUT, Result, snapshot
from toolkit.tasks.pools import load_task

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from toolkit.places import Home

PINNED = json.loads((CHECKOUT / "tests/golden/pools.json").read_text(encoding="utf-8"))


def test_the_pools_are_listed_with_their_digests(toolkit: Callable[..., Result]) -> None:
    listed = toolkit("pools", "list", "--json").json()
    assert {entry["pool"]: entry["sha256"] for entry in listed} == PINNED
    assert [entry["tasks"] for entry in listed] == [2000, 300, 300, 16, 128]


def test_a_task_is_shown(toolkit: Callable[..., Result]) -> None:
    task = load_task("validation:3")
    done = toolkit("pools", "show", "validation:3")
    assert task.prompt in done.out
    assert all(f"{call.tool}(" in done.out for call in task.plan)
    assert toolkit("pools", "show", "validation:3", "--json").json()["budget"] == task.budget


def test_a_task_that_is_none_is_wrong_usage(toolkit: Callable[..., Result]) -> None:
    assert toolkit("pools", "show", "validation:999").code == 2


def test_the_shipped_pools_verify(toolkit: Callable[..., Result]) -> None:
    assert toolkit("pools", "verify", "--json").json() == {
        "verdict": "verified",
        "study": "task-pools",
        "pools": PINNED,
    }


def test_the_shipped_pools_are_what_the_generator_gives(toolkit: Callable[..., Result]) -> None:
    done = toolkit("pools", "build", "--check", "--json")
    assert (done.code, done.json()["outcome"]) == (0, "identical")


def test_building_elsewhere_gives_the_same_bytes(toolkit: Callable[..., Result], tmp_path: Path) -> None:
    assert toolkit("pools", "build", "--out", tmp_path / "pools").code == 0
    assert snapshot(tmp_path / "pools") == snapshot(CHECKOUT / "registers/task-pools")


def test_a_changed_file_fails_verification_and_nothing_is_written(
    toolkit: Callable[..., Result], copy: Home
) -> None:
    card = copy.registers / "task-pools/README.md"
    card.write_text("changed", encoding="utf-8")
    before = snapshot(copy.root)
    done = toolkit("pools", "build", "--check")
    assert (done.code, done.out) == (1, "")
    assert "README.md" in done.err
    assert snapshot(copy.root) == before


def test_a_damaged_file_is_damage(toolkit: Callable[..., Result], copy: Home) -> None:
    (copy.registers / "task-pools/task_pools/test-00000-of-00001.parquet").write_bytes(b"no parquet")
    assert toolkit("pools", "verify").code == 4


def test_a_study_without_pools_cannot_be_verified_as_one(toolkit: Callable[..., Result]) -> None:
    assert toolkit("pools", "verify", "--study", "published").code == 2


def test_something_else_in_the_folder_is_not_overwritten(
    toolkit: Callable[..., Result], tmp_path: Path
) -> None:
    (tmp_path / "thesis.tex").write_text("years of work", encoding="utf-8")
    assert toolkit("pools", "build", "--out", tmp_path).code == 3
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("command", [("decide", "H2a"), ("explain", "H2a")])
def test_a_repository_of_tasks_is_not_decided(
    toolkit: Callable[..., Result], command: tuple[str, ...]
) -> None:
    done = toolkit(*command, "--study", "task-pools")
    assert (done.code, done.out) == (2, "")
    assert "has no runs" in done.err


def test_the_pools_can_be_asked_with_sql(toolkit: Callable[..., Result]) -> None:
    query = "SELECT pool, count(*) AS tasks FROM task_pools GROUP BY pool ORDER BY pool"
    assert toolkit("sql", query, "--study", "task-pools", "--json").json() == [
        {"pool": "diagnostic", "tasks": 16},
        {"pool": "diagnostic_128", "tasks": 128},
        {"pool": "test", "tasks": 300},
        {"pool": "train", "tasks": 2000},
        {"pool": "validation", "tasks": 300},
    ]
