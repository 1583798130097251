"""`toolkit pools`: list, show, build, verify."""

import json
import shutil

import pytest

from tests.conftest import CHECKOUT, Toolkit, snapshot
from toolkit.places import Home
from toolkit.tasks.pools import load_task

PINNED = json.loads((CHECKOUT / "tests/golden/pools.json").read_text(encoding="utf-8"))


def test_the_pools_are_listed_with_their_digests(toolkit: Toolkit) -> None:
    listed = toolkit("pools", "list", "--json").json()
    assert {entry["pool"]: entry["sha256"] for entry in listed} == PINNED
    assert [entry["tasks"] for entry in listed] == [2000, 300, 300, 16, 128]


def test_a_task_is_shown(toolkit: Toolkit) -> None:
    task = load_task("validation:3")
    done = toolkit("pools", "show", "validation:3")
    assert task.prompt in done.out
    assert all(f"{call.tool}(" in done.out for call in task.plan)
    assert toolkit("pools", "show", "validation:3", "--json").json()["budget"] == task.budget


def test_a_task_that_is_none_is_wrong_usage(toolkit: Toolkit) -> None:
    assert toolkit("pools", "show", "validation:999").code == 2


def test_the_shipped_pools_verify(toolkit: Toolkit) -> None:
    assert toolkit("pools", "verify", "--json").json() == {
        "verdict": "verified",
        "study": "task-pools",
        "pools": PINNED,
    }


def test_the_shipped_pools_are_what_the_generator_gives(toolkit: Toolkit) -> None:
    done = toolkit("pools", "build", "--check", "--json")
    assert (done.code, done.json()["outcome"]) == (0, "identical")


def test_a_damaged_file_is_damage(toolkit: Toolkit, copy: Home) -> None:
    (copy.registers / "task-pools/task_pools/test-00000-of-00001.parquet").write_bytes(b"no parquet")
    assert toolkit("pools", "verify").code == 4


def test_a_study_without_pools_cannot_be_verified_as_one(toolkit: Toolkit) -> None:
    assert toolkit("pools", "verify", "--study", "published").code == 2


def test_pools_that_are_not_here_are_an_input_that_is_missing(toolkit: Toolkit, copy: Home) -> None:
    shutil.rmtree(copy.registers / "task-pools")
    done = toolkit("pools", "verify")
    assert done.code == 3
    assert "toolkit pools build" in done.err


@pytest.mark.parametrize("build", [("pools", "build"), ("registers", "build", "published")])
@pytest.mark.parametrize("there", ["another study", "another study, damaged", "a person's own work"])
def test_another_studys_folder_is_not_overwritten(
    toolkit: Toolkit, copy: Home, build: tuple[str, ...], there: str
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


@pytest.mark.parametrize("command", [("decide", "H2a"), ("explain", "H2a")])
def test_a_repository_of_tasks_is_not_decided(toolkit: Toolkit, command: tuple[str, ...]) -> None:
    done = toolkit(*command, "--study", "task-pools")
    assert (done.code, done.out) == (2, "")
    assert "has no runs" in done.err


@pytest.mark.parametrize(
    "command", [("decide", "H2a"), ("decide", "--all"), ("explain", "H2a"), ("reproduce",)]
)
def test_where_no_study_has_runs_nothing_is_decided_silently(
    toolkit: Toolkit, copy: Home, command: tuple[str, ...]
) -> None:
    for name in ("embedded", "published", "tiny-lm"):
        shutil.rmtree(copy.registers / name)
    done = toolkit(*command)
    assert (done.code, done.out) == (3, "")
    assert "no study here has runs" in done.err


@pytest.mark.parametrize(
    ("file", "code"), [("README.md", 1), pytest.param("task_pools/zzz.parquet", 4, marks=pytest.mark.slow)]
)
def test_a_check_fails_on_a_changed_file_and_on_one_too_many_and_writes_nothing(
    toolkit: Toolkit, copy: Home, file: str, code: int
) -> None:
    (copy.registers / "task-pools" / file).write_text("changed", encoding="utf-8")
    before = snapshot(copy.root)
    done = toolkit("pools", "build", "--check")
    assert (done.code, done.out) == (code, "")
    assert file.rpartition("/")[2] in done.err
    assert snapshot(copy.root) == before


@pytest.mark.parametrize("damage", ["cut off", pytest.param("damaged", marks=pytest.mark.slow)])
def test_a_build_that_was_cut_off_or_damaged_is_built_again_as_it_was(
    toolkit: Toolkit, copy: Home, damage: str
) -> None:
    folder = copy.registers / "task-pools"
    whole, manifest = snapshot(folder), folder / "MANIFEST.json"
    (folder / "README.md").unlink()
    if damage == "cut off":
        manifest.unlink()
    else:
        manifest.write_text(manifest.read_text(encoding="utf-8").replace("rows", "rowz"), encoding="utf-8")
        assert toolkit("pools", "verify").code == 4
    assert toolkit("pools", "build").code == 0
    assert snapshot(folder) == whole
