"""No half-written file is ever in place."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from tests.conftest import snapshot
from toolkit.errors import DamagedError, IncompleteError
from toolkit.files import file_sha256, hold, make_folder, read_bytes, write_text


def test_a_failed_write_leaves_the_old_file_and_no_part(tmp_path, monkeypatch) -> None:
    target = tmp_path / "register"
    write_text(target, "old")

    def full(_self: Path, _content: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(IncompleteError, match="cannot be written"):
        write_text(target, "new")
    assert snapshot(tmp_path) == {"register": b"old"}


def test_a_folder_that_is_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(IncompleteError, match="cannot be written"):
        write_text(tmp_path / "taken" / "x", "text")


@pytest.mark.parametrize("read", [read_bytes, file_sha256])
def test_what_cannot_be_read_is_incomplete(tmp_path: Path, read: object) -> None:
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(IncompleteError, match="cannot be read"):
            read(path)


def test_a_folder_without_locks_is_told_from_one_that_is_held(tmp_path, monkeypatch) -> None:
    def none(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", none)
    with pytest.raises(IncompleteError, match="cannot be locked"), hold(tmp_path, ".lock", "study"):
        pass


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(IncompleteError, match="cannot be made"):
        make_folder(tmp_path / "file" / "folder")


def test_what_is_too_long_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_bytes(b"12345")
    assert read_bytes(path, 5) == b"12345"
    with pytest.raises(DamagedError, match="too long to be read") as raised:
        read_bytes(path, 4)
    assert (raised.value.expected, raised.value.found) == ("4 bytes at most", "5 bytes")


def test_what_says_that_it_is_empty_is_cut() -> None:
    with pytest.raises(DamagedError, match="too long to be read"):
        read_bytes(Path("/proc/self/maps"), 100)
