"""A freeze in a repository: what is frozen is what is committed, byte for byte."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.unit.prereg.drafts import check_rules, demonstrators, freeze_with, write_draft
from toolkit.errors import ToolkitError, UsageError
from toolkit.prereg.freeze import open_draft
from toolkit.prereg.pending import begin
from toolkit.prereg.registration import load_registration

if TYPE_CHECKING:
    from pathlib import Path


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org")
    done = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, check=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    git(tmp_path, "init", "--quiet")
    return tmp_path


@pytest.fixture
def committed(repository: Path) -> Path:
    folder = write_draft(repository)
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "A draft")
    return folder


def freeze_it(folder: Path) -> str:
    freeze_with(folder, *demonstrators(), standing="demonstration")
    return load_registration(folder).record.freeze_commit


def refused(folder: Path) -> str:
    with pytest.raises(UsageError, match="not committed") as caught:
        open_draft(folder, check_rules)
    return caught.value.found or ""


def test_the_commit_is_recorded(committed: Path) -> None:
    assert freeze_it(committed) == git(committed, "rev-parse", "HEAD")


def test_outside_a_repository_there_is_no_commit(tmp_path: Path) -> None:
    assert freeze_it(write_draft(tmp_path)) == ""


def test_a_changed_file_is_refused(committed: Path) -> None:
    (committed / "protocol.md").write_bytes(b"Changed.\n")
    assert "protocol.md" in refused(committed)


def test_a_staged_file_is_refused(committed: Path) -> None:
    (committed / "protocol.md").write_bytes(b"Changed.\n")
    git(committed, "add", ".")
    assert "protocol.md" in refused(committed)


def test_an_untracked_file_is_refused(committed: Path) -> None:
    (committed / "data.csv").write_bytes(b"")
    assert "data.csv" in refused(committed)


def test_an_untracked_draft_is_refused(repository: Path) -> None:
    assert refused(write_draft(repository)) == "protocol.md, rules.toml"


def test_a_change_elsewhere_does_not_matter(committed: Path) -> None:
    (committed.parent / "notes.txt").write_bytes(b"")
    assert freeze_it(committed) != ""


def test_an_ignored_file_is_refused(committed: Path) -> None:
    """It would be frozen, and nobody who clones the repository would have it."""
    (committed.parent / ".gitignore").write_text("*.csv\n")
    git(committed.parent, "add", ".gitignore")
    git(committed.parent, "commit", "--quiet", "-m", "Ignore data")
    (committed / "data.csv").write_bytes(b"")
    assert "data.csv" in refused(committed)


def test_line_endings_that_a_clone_would_not_have_are_refused(committed: Path) -> None:
    """Git calls a file clean whose bytes are not the committed ones, where it converts line endings."""
    (committed.parent / ".gitattributes").write_text("*.md text eol=crlf\n")
    git(committed.parent, "add", ".")
    git(committed.parent, "commit", "--quiet", "-m", "Line endings")
    path = committed / "protocol.md"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    git(committed.parent, "add", ".")
    assert git(committed, "status", "--porcelain") == ""
    with pytest.raises(ToolkitError, match=r"protocol\.md|not committed"):
        open_draft(committed, check_rules)


def test_a_repository_that_git_cannot_read_is_not_called_clean(committed: Path) -> None:
    (committed / "data.csv").write_bytes(b"")
    (committed.parent / ".git" / "index").write_bytes(b"damaged")
    with pytest.raises(ToolkitError):
        open_draft(committed, check_rules)


def test_a_freeze_cut_short_keeps_its_commit(committed: Path) -> None:
    commit = freeze_it(committed)
    (committed / "LATER.chain").unlink()
    (committed / "record.toml").unlink()
    begin(committed, (committed / "FROZEN.sha256").read_bytes())
    assert freeze_it(committed) == commit


def test_a_freeze_cut_short_does_not_let_a_changed_file_in(committed: Path) -> None:
    freeze_it(committed)
    (committed / "LATER.chain").unlink()
    (committed / "record.toml").unlink()
    begin(committed, (committed / "FROZEN.sha256").read_bytes())
    (committed / "protocol.md").write_bytes(b"Changed.\n")
    assert "protocol.md" in refused(committed)


def test_what_a_killed_freeze_left_beside_its_files_is_no_change(committed: Path) -> None:
    (committed / "evidence").mkdir()
    for name in (".FROZEN.sha256.123.part", ".lock", "evidence/.freeze.demonstration-a.tsr.123.part"):
        (committed / name).write_bytes(b"")
    assert freeze_it(committed) == git(committed, "rev-parse", "HEAD")


def test_what_a_failed_freeze_keeps_waiting_is_no_change(committed: Path) -> None:
    (committed / ".pending" / "evidence").mkdir(parents=True)
    (committed / ".pending" / "document").write_bytes(b"")
    assert freeze_it(committed) == git(committed, "rev-parse", "HEAD")
