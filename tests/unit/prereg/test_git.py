"""A freeze in a repository: what is frozen is what is committed, byte for byte."""

import subprocess

import pytest

from tests.unit.prereg.drafts import demonstrate, opened, write_draft
from toolkit.errors import ToolkitError, UsageError
from toolkit.prereg.chain import begin
from toolkit.prereg.registration import load_registration


def git(folder, *words: str) -> str:
    identity = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org")
    done = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, check=True, text=True)
    return done.stdout.strip()


def commit(folder) -> None:
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "All of it")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    git(tmp_path, "init", "--quiet")
    return tmp_path


@pytest.fixture
def committed(repository):
    folder = write_draft(repository)
    commit(repository)
    return folder


def freeze_it(folder) -> str:
    demonstrate(folder)
    return load_registration(folder).record.freeze_commit


def refused(folder) -> str:
    with pytest.raises(UsageError, match="not committed") as caught:
        opened(folder)
    return caught.value.found or ""


def test_the_commit_is_recorded(committed) -> None:
    assert freeze_it(committed) == git(committed, "rev-parse", "HEAD")


def test_outside_a_repository_there_is_no_commit(tmp_path) -> None:
    assert freeze_it(write_draft(tmp_path)) == ""


@pytest.mark.parametrize("name", ["protocol.md", "data.csv"])
@pytest.mark.parametrize("is_staged", [False, True])
def test_what_is_not_committed_as_it_is_is_refused(committed, name, is_staged) -> None:
    (committed / name).write_bytes(b"Changed.\n")
    if is_staged:
        git(committed, "add", ".")
    assert name in refused(committed)


def test_an_untracked_draft_is_refused(repository) -> None:
    assert refused(write_draft(repository)) == "protocol.md, rules.toml"


def test_a_change_elsewhere_does_not_matter(committed) -> None:
    (committed.parent / "notes.txt").write_bytes(b"")
    assert freeze_it(committed) != ""


def test_an_ignored_file_is_refused(committed) -> None:
    """It would be frozen, and nobody who clones the repository would have it."""
    (committed.parent / ".gitignore").write_text("*.csv\n")
    commit(committed.parent)
    (committed / "data.csv").write_bytes(b"")
    assert "data.csv" in refused(committed)


def test_line_endings_that_a_clone_would_not_have_are_refused(committed) -> None:
    """Git calls a file clean whose bytes are not the committed ones, where it converts line endings."""
    (committed.parent / ".gitattributes").write_text("*.md text eol=crlf\n")
    commit(committed.parent)
    path = committed / "protocol.md"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    git(committed.parent, "add", ".")
    assert git(committed, "status", "--porcelain") == ""
    with pytest.raises(ToolkitError, match=r"protocol\.md|not committed"):
        opened(committed)


def test_a_repository_that_git_cannot_read_is_not_called_clean(committed) -> None:
    (committed / "data.csv").write_bytes(b"")
    (committed.parent / ".git" / "index").write_bytes(b"damaged")
    with pytest.raises(ToolkitError):
        opened(committed)


def test_a_freeze_cut_short_keeps_its_commit_and_lets_no_changed_file_in(committed) -> None:
    frozen_at = freeze_it(committed)
    (committed / "LATER.chain").unlink()
    (committed / "record.toml").unlink()
    begin(committed, (committed / "FROZEN.sha256").read_bytes())
    protocol = committed / "protocol.md"
    protocol.rename(committed / "kept")
    protocol.write_bytes(b"Changed.\n")
    assert "protocol.md" in refused(committed)
    (committed / "kept").rename(protocol)
    assert freeze_it(committed) == frozen_at


def test_what_a_freeze_left_beside_its_files_is_no_change(committed) -> None:
    """A killed one leaves files half written and its lock, a failed one what waits."""
    (committed / "evidence").mkdir()
    (committed / ".pending" / "evidence").mkdir(parents=True)
    left = (".FROZEN.sha256.123.part", ".lock", "evidence/.freeze.demonstration-a.tsr.123.part")
    for name in (*left, ".pending/document"):
        (committed / name).write_bytes(b"")
    assert freeze_it(committed) == git(committed, "rev-parse", "HEAD")
