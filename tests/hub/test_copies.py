"""A copy replaces nothing but what can be pulled again."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Result, run, snapshot
from tests.hub.conftest import NAME, damage, expect, make_rows, put
from tests.hub.server import FixtureHub
from toolkit.files import write_bytes


def pull_into(folder: Path) -> Result:
    return run("registers", "pull", NAME, "--into", folder)


@pytest.fixture
def copy(hub: FixtureHub, warm: Path, tmp_path: Path) -> Path:
    """Return a copy of the small study that was pulled."""
    assert pull_into(tmp_path / "copy").code == 0
    return tmp_path / "copy"


CHANGES: dict[str, Callable[[Path], object]] = {
    "rows of one's own": lambda copy: damage(next((copy / "episodes").iterdir())),
    "notes": lambda copy: (copy / "notes.txt").write_text("mine"),
    "a hidden note": lambda copy: (copy / ".note").write_text("mine"),
    "a history": lambda copy: write_bytes(copy / ".git" / "HEAD", b"ref: refs/heads/main"),
    "a link": lambda copy: (copy / "link").symlink_to(copy.parent),
    "a study that agrees with itself": lambda copy: make_rows(copy, runs=2),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_copy_with_something_of_ones_own_is_refused_and_not_touched(
    copy: Path, change: Callable[[Path], None]
) -> None:
    change(copy)
    before = snapshot(copy)
    expect(pull_into(copy), 3, "holds something that would be lost")
    assert snapshot(copy) == before


def test_a_copy_without_a_file_is_made_whole(copy: Path) -> None:
    before = snapshot(copy)
    next((copy / "episodes").iterdir()).unlink()
    assert pull_into(copy).code == 0
    assert snapshot(copy) == before


def test_a_copy_of_an_earlier_commit_is_replaced(hub: FixtureHub, copy: Path, tmp_path: Path) -> None:
    later = make_rows(tmp_path / "later", schedules_too=True)
    put(hub, later)
    assert pull_into(copy).code == 0
    assert snapshot(copy) == snapshot(later)


def test_a_file_in_the_place_of_the_folder_or_a_name_too_long_for_one_is_refused(
    hub: FixtureHub, commit: str, tmp_path: Path
) -> None:
    (tmp_path / "copy").write_text("mine")
    assert pull_into(tmp_path / "copy").code == 3
    assert (tmp_path / "copy").read_text() == "mine"
    assert pull_into(tmp_path / ("x" * 300)).code == 3
