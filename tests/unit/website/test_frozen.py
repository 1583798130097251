"""Frozen versions: written once, listed, checked, never touched again."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import snapshot
from toolkit.errors import DamagedError, IncompleteError, UsageError, VerificationError
from toolkit.website.frozen import check_frozen, freeze, read_versions

CONTENT = {"index.html": b"<p>then</p>", "study/H1.html": b"<p>H1</p>", "style.css": b""}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    freeze(tmp_path, "v1.2.0", CONTENT, ())
    return tmp_path


def test_the_list_is_one_that_sha256sum_checks(site: Path) -> None:
    command = ["sha256sum", "--check", "--strict", "--quiet", "FROZEN.sha256"]
    assert subprocess.run(command, cwd=site / "v1.2.0", check=False).returncode == 0


def test_a_frozen_version_is_read_as_it_was_written(site: Path) -> None:
    (version,) = read_versions(site)
    assert version.name == "v1.2.0"
    assert version.pages == ("index.html", "study/H1.html")
    assert list(check_frozen(site, version)) == []


def test_freezing_the_same_again_changes_nothing(site: Path) -> None:
    before = snapshot(site)
    freeze(site, "v1.2.0", CONTENT, ())
    assert snapshot(site) == before


def test_other_bytes_are_refused_and_named_and_leave_what_was_frozen(site: Path) -> None:
    before = snapshot(site)
    with pytest.raises(VerificationError, match="is frozen with other bytes") as caught:
        freeze(site, "v1.2.0", {**CONTENT, "study/H1.html": b"other", "new.html": b""}, ())
    assert caught.value.found == "2 files differ: new.html, study/H1.html"
    assert snapshot(site) == before


@pytest.mark.parametrize(
    ("harm", "found"),
    [
        (lambda v: (v / "index.html").write_bytes(b"forged"), "v1.2.0/index.html differs"),
        (lambda v: (v / "style.css").unlink(), "v1.2.0/style.css absent"),
        (lambda v: (v / "more.html").write_bytes(b""), "v1.2.0/more.html unexpected"),
    ],
)
def test_the_same_is_not_called_frozen_where_its_files_are_others(
    site: Path, harm: Callable[[Path], object], found: str
) -> None:
    harm(site / "v1.2.0")
    before = snapshot(site)
    with pytest.raises(VerificationError, match="not as it was frozen") as caught:
        freeze(site, "v1.2.0", CONTENT, ())
    assert caught.value.found == found
    assert snapshot(site) == before


def test_something_else_in_the_place_of_a_version_is_left(tmp_path: Path) -> None:
    (tmp_path / "v1").mkdir()
    (tmp_path / "v1" / "mine.txt").write_text("mine")
    with pytest.raises(IncompleteError, match="something else"):
        freeze(tmp_path, "v1", CONTENT, ())
    assert snapshot(tmp_path) == {"v1/mine.txt": b"mine"}


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "../up", ".hidden", "-x", "v1.", "a b", "a\nb", "ü", "x" * 65, "a\\b"]
)
def test_a_name_that_is_no_folder_of_the_site_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        freeze(tmp_path, name, CONTENT, ())
    assert snapshot(tmp_path) == {}


@pytest.mark.parametrize("name", ["published", "Published", "index.html"])
def test_a_name_that_the_site_has_already_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="of this name"):
        freeze(tmp_path, name, CONTENT, ("published", "index.html"))


def test_versions_are_listed_by_number_the_newest_first(tmp_path: Path) -> None:
    for name in ("v1.2.0", "v1.10.0", "v0.9.0"):
        freeze(tmp_path, name, CONTENT, ())
    assert [version.name for version in read_versions(tmp_path)] == ["v1.10.0", "v1.2.0", "v0.9.0"]


def test_a_site_without_versions_has_none(tmp_path: Path) -> None:
    assert read_versions(tmp_path) == ()
    assert read_versions(tmp_path / "nowhere") == ()


@pytest.mark.parametrize(
    "line",
    [
        "no hash",
        f"{'0' * 64}  /etc/passwd",
        f"{'0' * 64}  ../up.html",
        f"{'0' * 63}  a.html",
        f"{'0' * 64} a",
    ],
)
def test_a_list_that_is_none_is_refused(site: Path, line: str) -> None:
    (site / "v1.2.0" / "FROZEN.sha256").write_text(f"{line}\n")
    with pytest.raises(DamagedError, match="a line that it cannot have"):
        read_versions(site)
