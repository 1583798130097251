"""What lies in the cache and is no plain content of a commit: healed with a connection, said without."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hub.conftest import NAME, RUNS, TOKEN, expect, meet, pull, put
from tests.hub.server import FixtureHub


def a_file_in_a_pointers_place(place: Path) -> None:
    place.unlink()
    place.write_bytes(b"something else")


def a_link_to_other_content(place: Path) -> None:
    place.unlink()
    snapshot = next(folder for folder in place.parents if folder.parent.name == "snapshots")
    other = snapshot / "groups" / "c2-paired-s000.parquet"
    place.symlink_to(other.resolve(strict=True))


def a_link_out_of_the_cache(place: Path) -> None:
    place.unlink()
    outside = _root(place) / "outside.txt"
    outside.write_text("mine")
    place.symlink_to(outside)


def a_link_to_the_whole_cache(place: Path) -> None:
    place.unlink()
    place.symlink_to("..")


def a_link_to_nothing(place: Path) -> None:
    place.resolve().unlink()


def a_link_to_itself(place: Path) -> None:
    place.unlink()
    place.symlink_to(place.name)


def a_folder_in_a_files_place(place: Path) -> None:
    place.unlink()
    place.mkdir()
    (place / "deep").write_text("x")


def a_folder_in_the_contents_place(place: Path) -> None:
    content = place.resolve()
    content.unlink()
    content.mkdir()


def an_empty_file_in_the_contents_place(place: Path) -> None:
    place.resolve().write_bytes(b"")


def _root(place: Path) -> Path:
    """Return the test's folder, in which the cache is."""
    return next(parent.parent for parent in place.parents if parent.name == "hf")


DEFECTS = [
    a_file_in_a_pointers_place,
    a_link_to_other_content,
    a_link_out_of_the_cache,
    a_link_to_the_whole_cache,
    a_link_to_nothing,
    a_link_to_itself,
    a_folder_in_a_files_place,
    a_folder_in_the_contents_place,
    an_empty_file_in_the_contents_place,
]


@pytest.mark.parametrize("name", [RUNS, "README.md", "MANIFEST.json"])
@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.__name__)
def test_a_damaged_entry_is_said_offline_and_healed_online(
    small: Path, hub: FixtureHub, warm: Path, tmp_path: Path, name: str, defect: Callable[[Path], None]
) -> None:
    defect(warm / name)
    assert pull("@v1.0.0", "--offline").code in {3, 4}
    assert pull().code == 0
    assert (warm / name).read_bytes() == (small / name).read_bytes()
    assert pull("@v1.0.0", "--offline").code == 0
    outside = tmp_path / "outside.txt"
    assert not outside.exists() or outside.read_text() == "mine"


@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_is_in_a_folders_place_is_taken_out(
    small: Path, hub: FixtureHub, warm: Path, tmp_path: Path, kind: str
) -> None:
    shutil.rmtree(warm / "runs")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    if kind == "file":
        (warm / "runs").write_text("x")
    else:
        (warm / "runs").symlink_to(tmp_path / "mine")
    assert pull().code == 0
    assert (warm / RUNS).read_bytes() == (small / RUNS).read_bytes()
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_a_file_in_the_place_of_the_commits_folder_is_taken_out(
    small: Path, hub: FixtureHub, warm: Path
) -> None:
    shutil.rmtree(warm)
    warm.write_text("x")
    assert pull().code == 0
    assert (warm / RUNS).read_bytes() == (small / RUNS).read_bytes()


@pytest.mark.parametrize("arguments", [(), ("--offline",)])
def test_a_stray_file_is_refused_with_its_place_in_the_cache(
    hub: FixtureHub, warm: Path, arguments: tuple[str, ...]
) -> None:
    stray = warm / "runs" / "more rows.parquet"
    stray.write_bytes(b"x")
    done = expect(pull("@v1.0.0", *arguments), 4, f"rm '{stray}'")
    assert "owner" not in done.err
    stray.unlink()
    assert pull("@v1.0.0", *arguments).code == 0


def test_a_stray_file_of_the_commit_is_its_owners(hub: FixtureHub, commit: str) -> None:
    hub.store.commit(NAME, {"runs/more.parquet": b"x"})
    done = expect(pull(""), 4, "ask its owner")
    assert "rm " not in done.err


def test_what_arrives_wrong_on_a_first_pull_was_never_in_the_cache(hub: FixtureHub, commit: str) -> None:
    hub.fail("wrong_bytes", f"GET .*/resolve/.*{RUNS}", 1)
    done = expect(pull(), 0, f"{RUNS}, as it arrived, is not what the manifest names")
    assert "in the cache" not in done.err


@pytest.mark.parametrize("revision", ["@v1.0.0", "@SHA"])
def test_a_repository_that_is_gone_is_offered_from_the_cache(
    hub: FixtureHub, warm: Path, commit: str, revision: str
) -> None:
    hub.store.repositories.pop(NAME)
    expect(
        pull(revision.replace("SHA", commit)),
        3,
        "there is no such dataset repository, or it is private",
        "HF_TOKEN",
        f"take commit {commit} from the cache: --offline",
    )
    assert pull(revision.replace("SHA", commit), "--offline").code == 0


def test_a_commit_that_is_gone_is_offered_from_the_cache(hub: FixtureHub, warm: Path, commit: str) -> None:
    hub.store.repositories.pop(NAME)
    hub.store.create(NAME)
    expect(
        pull(f"@{commit}"),
        3,
        "the repository has no such revision",
        f"take commit {commit} from the cache: --offline",
    )


def test_what_is_not_in_the_cache_is_not_offered(hub: FixtureHub) -> None:
    assert "--offline" not in pull("").err


def test_a_repository_that_became_private_is_offered_from_the_cache(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FixtureHub(token=TOKEN) as hub:
        meet(hub, tmp_path, monkeypatch)
        commit = put(hub, small, tag="v1.0.0")
        assert pull().code == 0
        hub.store.repository(NAME).private = True
        monkeypatch.setenv("HF_TOKEN", "")
        for revision in ("@v1.0.0", f"@{commit}"):
            expect(pull(revision), 3, "log in", "--offline")


def test_what_is_forbidden_is_offered_from_the_cache(hub: FixtureHub, warm: Path) -> None:
    hub.fail("forbidden", ".")
    expect(pull(), 3, "log in", "--offline")
