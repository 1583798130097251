"""`toolkit pools`: list, show, build, verify."""

import json
import shutil

import pytest

from tests.conftest import CHECKOUT, Toolkit, snapshot
from toolkit.lab.tasks.pools import POOLS, load_task
from toolkit.places import Home

PINNED = json.loads((CHECKOUT / "tests/golden/pools.json").read_text(encoding="utf-8"))


@pytest.fixture
def few(toolkit: Toolkit, alone: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Return a home whose only pool is a small one, built there."""
    for name in set(POOLS) - {"diagnostic"}:
        monkeypatch.delitem(POOLS, name)
    assert toolkit("pools", "build").code == 0
    return alone


def test_a_pool_is_listed_and_verified_with_its_digest(toolkit: Toolkit, few: Home) -> None:
    (listed,) = toolkit("pools", "list", "--json").json()
    assert (listed["pool"], listed["tasks"], listed["sha256"]) == ("diagnostic", 16, PINNED["diagnostic"])
    assert listed["sha256"] in toolkit("pools", "list").out
    assert toolkit("pools", "verify", "--json").json() == {
        "verdict": "verified",
        "study": "task-pools",
        "pools": {"diagnostic": PINNED["diagnostic"]},
    }


def test_a_task_is_shown(toolkit: Toolkit) -> None:
    task = load_task("validation:3")
    shown = toolkit("pools", "show", "validation:3")
    assert task.prompt in shown.out
    assert all(f"{call.tool}(" in shown.out for call in task.plan)
    assert toolkit("pools", "show", "validation:3", "--json").json()["budget"] == task.budget


@pytest.mark.slow
def test_the_shipped_pools_are_what_the_generator_gives(toolkit: Toolkit) -> None:
    done = toolkit("pools", "build", "--check", "--json")
    assert (done.code, done.json()["outcome"]) == (0, "identical")


def test_a_damaged_file_is_damage(toolkit: Toolkit, few: Home) -> None:
    (few.registers / "task-pools/task_pools/diagnostic-00000-of-00001.parquet").write_bytes(b"no parquet")
    assert toolkit("pools", "verify").code == 4


def test_pools_that_are_not_here_are_an_input_that_is_missing(toolkit: Toolkit, alone: Home) -> None:
    toolkit("pools", "verify").refused(3, "toolkit pools build")


@pytest.mark.parametrize("build", [("pools", "build"), ("registers", "build", "published")])
@pytest.mark.parametrize("there", ["another study", "another study, damaged", "a person's own work"])
def test_another_studys_folder_is_not_overwritten(toolkit, alone, build, there) -> None:
    folder = alone.registers / "another"
    other = CHECKOUT / "registers" / ("published" if build[0] == "pools" else "task-pools")
    shutil.copytree(other, folder)
    if there == "another study, damaged":
        (folder / "MANIFEST.json").write_text("{", encoding="utf-8")
    if there == "a person's own work":
        (folder / "MANIFEST.json").unlink()
        (folder / "log.txt").write_text("a year of runs", encoding="utf-8")
    before = snapshot(folder)
    toolkit(*build, "--out", folder).refused(3, "something else")
    assert snapshot(folder) == before


@pytest.mark.parametrize("command", ["decide H2a", "decide --all", "explain H2a", "reproduce"])
def test_where_no_study_has_runs_nothing_is_decided_silently(toolkit, few, command) -> None:
    shutil.rmtree(few.registers / "published")
    toolkit(*command.split()).refused(3, "no study here has runs")


@pytest.mark.parametrize(
    ("file", "code", "named"),
    [
        ("README.md", 1, "README.md"),
        ("task_pools/zzz.parquet", 4, "zzz.parquet"),
        ("croissant.json", 1, "MANIFEST.json"),  # builds no longer write it
    ],
)
def test_a_check_fails_on_a_changed_file_and_on_one_too_many_and_writes_nothing(
    toolkit: Toolkit, few: Home, file: str, code: int, named: str
) -> None:
    (few.registers / "task-pools" / file).write_text("changed", encoding="utf-8")
    before = snapshot(few.root)
    toolkit("pools", "build", "--check").refused(code, named)
    assert snapshot(few.root) == before


@pytest.mark.parametrize("damage", ["cut off", "damaged"])
def test_a_build_that_was_cut_off_or_damaged_is_built_again_as_it_was(toolkit, few, damage) -> None:
    assert toolkit("pools", "build").code == 0
    folder = few.registers / "task-pools"
    whole, manifest = snapshot(folder), folder / "MANIFEST.json"
    (folder / "README.md").unlink()
    if damage == "cut off":
        manifest.unlink()
    else:
        manifest.write_text(manifest.read_text(encoding="utf-8").replace("rows", "rowz"), encoding="utf-8")
        assert toolkit("pools", "verify").code == 4
    assert toolkit("pools", "build").code == 0
    assert snapshot(folder) == whole
