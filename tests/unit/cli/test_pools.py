"""`toolkit pools`: list, show, build, verify."""

from __future__ import annotations

import json
import shutil
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


def test_a_file_too_many_is_damage(toolkit: Callable[..., Result], copy: Home) -> None:
    (copy.registers / "task-pools/task_pools/zzz.parquet").write_bytes(b"more")
    assert toolkit("pools", "build", "--check").code == 4


def test_pools_that_are_not_here_are_an_input_that_is_missing(
    toolkit: Callable[..., Result], copy: Home
) -> None:
    shutil.rmtree(copy.registers / "task-pools")
    done = toolkit("pools", "verify")
    assert done.code == 3
    assert "toolkit pools build" in done.err


@pytest.mark.parametrize("build", [("pools", "build"), ("registers", "build", "published")])
@pytest.mark.parametrize("there", ["another study", "another study, damaged", "a person's own work"])
def test_another_studys_folder_is_not_overwritten(
    toolkit: Callable[..., Result], copy: Home, build: tuple[str, ...], there: str
) -> None:
    folder = copy.registers / ("published" if build[0] == "pools" else "task-pools")
    if there == "another study, damaged":
        (folder / "MANIFEST.json").write_text("{", encoding="utf-8")
    if there == "a person's own work":
        folder = copy.root / "ml"
        (folder / "runs").mkdir(parents=True)
        (folder / "runs/log.txt").write_text("a year of runs", encoding="utf-8")
        (folder / "README.md").write_text("notes", encoding="utf-8")
    before = snapshot(folder)
    done = toolkit(*build, "--out", folder)
    assert (done.code, done.out) == (3, "")
    assert "something else" in done.err
    assert snapshot(folder) == before


def test_a_build_that_was_cut_off_goes_on(toolkit: Callable[..., Result], copy: Home) -> None:
    folder = copy.registers / "task-pools"
    whole = snapshot(folder)
    (folder / "MANIFEST.json").unlink()
    (folder / "README.md").unlink()
    assert toolkit("pools", "build").code == 0
    assert snapshot(folder) == whole


def test_a_build_over_a_damaged_manifest_of_its_own_is_a_remedy(
    toolkit: Callable[..., Result], copy: Home
) -> None:
    manifest = copy.registers / "task-pools/MANIFEST.json"
    manifest.write_text(manifest.read_text(encoding="utf-8").replace("rows", "rowz"), encoding="utf-8")
    assert toolkit("pools", "verify").code == 4
    assert toolkit("pools", "build").code == 0
    assert toolkit("pools", "verify").code == 0


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


@pytest.mark.parametrize(
    "command", [("decide", "H2a"), ("decide", "--all"), ("explain", "H2a"), ("reproduce",)]
)
def test_where_no_study_has_runs_nothing_is_decided_silently(
    toolkit: Callable[..., Result], copy: Home, command: tuple[str, ...]
) -> None:
    for name in ("embedded", "published", "tiny-lm"):
        shutil.rmtree(copy.registers / name)
    done = toolkit(*command)
    assert (done.code, done.out) == (3, "")
    assert "no study here has runs" in done.err


def test_the_pools_can_be_asked_with_sql(toolkit: Callable[..., Result]) -> None:
    query = "SELECT pool, count(*) AS tasks FROM task_pools GROUP BY pool ORDER BY pool"
    assert toolkit("sql", query, "--study", "task-pools", "--json").json() == [
        {"pool": "diagnostic", "tasks": 16},
        {"pool": "diagnostic_128", "tasks": 128},
        {"pool": "test", "tasks": 300},
        {"pool": "train", "tasks": 2000},
        {"pool": "validation", "tasks": 300},
    ]
