"""What lies in the cache and is no plain content of a commit: healed with a connection, said without."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hub.conftest import NAME, RUNS, expect, pull
from tests.hub.server import FixtureHub


def nothing(path: Path) -> None:
    path.unlink()


def a_file_in_a_pointers_place(path: Path) -> None:
    path.unlink()
    path.write_bytes(b"something else")


def a_link_to_other_content(path: Path) -> None:
    path.unlink()
    snapshot = next(folder for folder in path.parents if folder.parent.name == "snapshots")
    other = snapshot / "groups" / "c2-paired-s000.parquet"
    path.symlink_to(other.resolve(strict=True))


def a_link_out_of_the_cache(path: Path) -> None:
    path.unlink()
    outside = _root(path) / "outside.txt"
    outside.write_text("mine")
    path.symlink_to(outside)


def a_link_to_the_whole_cache(path: Path) -> None:
    path.unlink()
    path.symlink_to("..")


def a_link_to_nothing(path: Path) -> None:
    path.resolve().unlink()


def a_link_to_itself(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def a_folder_in_a_files_place(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "deep").write_text("x")


def a_folder_in_the_contents_place(path: Path) -> None:
    content = path.resolve()
    content.unlink()
    content.mkdir()


def an_empty_file_in_the_contents_place(path: Path) -> None:
    path.resolve().write_bytes(b"")


def _root(path: Path) -> Path:
    """Return the test's folder, in which the cache is."""
    return next(parent.parent for parent in path.parents if parent.name == "hf")


DEFECTS = [
    nothing,
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


@pytest.mark.parametrize("name", [RUNS, "MANIFEST.json"])
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


def test_what_is_in_a_folders_place_is_taken_out(
    small: Path, hub: FixtureHub, warm: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    for folder, put_there in (
        (warm / "runs", lambda path: path.write_text("x")),
        (warm / "runs", lambda path: path.symlink_to(tmp_path / "mine")),
        (warm, lambda path: path.write_text("x")),
    ):
        shutil.rmtree(folder)
        put_there(folder)
        assert pull().code == 0
        assert (warm / RUNS).read_bytes() == (small / RUNS).read_bytes()
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_a_stray_file_is_refused_with_its_place_in_the_cache(hub: FixtureHub, warm: Path) -> None:
    stray = warm / "runs" / "more rows.parquet"
    for options in ((), ("--offline",)):
        stray.write_bytes(b"x")
        assert "owner" not in expect(pull("@v1.0.0", *options), 4, f"rm '{stray}'").err
        stray.unlink()
        assert pull("@v1.0.0", *options).code == 0


def test_a_stray_file_of_the_commit_is_its_owners(hub: FixtureHub, commit: str) -> None:
    hub.store.commit(NAME, {"runs/more.parquet": b"x"})
    done = expect(pull(""), 4, "ask its owner")
    assert "rm " not in done.err


def test_what_the_hub_has_no_more_is_offered_from_the_cache(hub: FixtureHub, warm: Path, commit: str) -> None:
    offer = f"take commit {commit} from the cache: --offline"
    fault = hub.fail("forbidden", ".")
    expect(pull(), 3, "log in", offer)
    hub.faults.remove(fault)
    hub.store.repositories.pop(NAME)
    for revision in ("@v1.0.0", f"@{commit}"):
        problem = "there is no such dataset repository, or it is private"
        expect(pull(revision), 3, problem, "HF_TOKEN", offer)
        assert pull(revision, "--offline").code == 0
    hub.store.create(NAME)
    expect(pull(f"@{commit}"), 3, "the repository has no such revision", offer)
