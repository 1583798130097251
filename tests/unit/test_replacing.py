"""Replacing a folder as a whole."""

import errno
from pathlib import Path

import pytest

from tests.conftest import snapshot
from toolkit.errors import DamagedError, IncompleteError
from toolkit.files import replacing


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A folder with something in it."""
    folder = tmp_path / "study"
    folder.mkdir()
    (folder / "old").write_text("old")
    return folder


def write_half(folder: Path, failure: Exception) -> None:
    """Replace a folder, and fail in the middle of it."""
    with replacing(folder) as new:
        (new / "half").write_text("half")
        raise failure


def test_the_new_folder_takes_the_place_of_the_old_one(old: Path) -> None:
    with replacing(old) as new:
        (new / "new").write_text("new")
    assert snapshot(old.parent) == {"study/new": b"new"}


def test_a_folder_that_was_not_there_is_made(tmp_path: Path) -> None:
    with replacing(tmp_path / "a" / "study") as new:
        (new / "new").write_text("new")
    assert snapshot(tmp_path) == {"a/study/new": b"new"}


def test_a_failure_leaves_what_was_there(old: Path) -> None:
    with pytest.raises(DamagedError):
        write_half(old, DamagedError("a row contradicts the schema"))
    assert snapshot(old.parent) == {"study/old": b"old"}


def test_a_full_disk_leaves_what_was_there(old: Path) -> None:
    with pytest.raises(IncompleteError, match="cannot be written") as error:
        write_half(old, OSError(errno.ENOSPC, "No space left on device"))
    assert error.value.found == "No space left on device"
    assert snapshot(old.parent) == {"study/old": b"old"}


def test_a_new_folder_that_cannot_take_its_place_leaves_the_old_one(old, monkeypatch) -> None:
    rename = Path.rename

    def refuse(self: Path, target: Path) -> Path:
        if self.name.endswith(".new"):
            raise OSError(errno.EIO, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(IncompleteError), replacing(old) as new:
        (new / "new").write_text("new")
    assert snapshot(old.parent) == {"study/old": b"old"}


def test_what_a_killed_command_left_is_cleared_away(old: Path) -> None:
    (old.parent / ".study.new").mkdir()
    (old.parent / ".study.old").mkdir()
    with replacing(old) as new:
        (new / "new").write_text("new")
    assert snapshot(old.parent) == {"study/new": b"new"}


def test_the_old_folder_is_kept_until_the_new_one_is_in_its_place(old: Path) -> None:
    old.rename(old.with_name(".study.old"))
    with replacing(old) as new:
        assert snapshot(old) == {"old": b"old"}
        (new / "new").write_text("new")
    assert snapshot(old.parent) == {"study/new": b"new"}
