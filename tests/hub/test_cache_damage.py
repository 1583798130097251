"""What lies in the cache and is no plain content of a commit: healed with a connection, said without."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hub.conftest import NAME, RUNS, expect, pull
from tests.hub.server import FixtureHub


def root_of(entry: Path) -> Path:
    """Return the test's folder, in which the cache is."""
    return next(folder.parent for folder in entry.parents if folder.name == "hf")


def other_content(entry: Path) -> Path:
    snapshot = next(folder for folder in entry.parents if folder.parent.name == "snapshots")
    return (snapshot / "groups" / "c2-paired-s000.parquet").resolve(strict=True)


# What stands in the place of a file's entry in the commit's folder, and what of the content that it leads to.
OF_ENTRIES: dict[str, Callable[[Path], object]] = {
    "nothing": lambda _: None,
    "a file": lambda entry: entry.write_bytes(b"something else"),
    "a link to other content": lambda entry: entry.symlink_to(other_content(entry)),
    "a link out of the cache": lambda entry: entry.symlink_to(root_of(entry) / "outside.txt"),
    "a link to the whole cache": lambda entry: entry.symlink_to(".."),
    "a link to itself": lambda entry: entry.symlink_to(entry.name),
    "a folder": lambda entry: (entry / "deep").mkdir(parents=True),
}
OF_CONTENT: dict[str, Callable[[Path], object]] = {
    "a link to nothing": Path.unlink,
    "a folder for content": lambda content: (content.unlink(), content.mkdir()),
    "an empty file for content": lambda content: content.write_bytes(b""),
}


@pytest.mark.parametrize("name", [RUNS, "MANIFEST.json"])
@pytest.mark.parametrize("defect", [*OF_ENTRIES, *OF_CONTENT])
def test_a_damaged_entry_is_said_offline_and_healed_online(
    small: Path, hub: FixtureHub, warm: Path, tmp_path: Path, name: str, defect: str
) -> None:
    (tmp_path / "outside.txt").write_text("mine")
    if defect in OF_CONTENT:
        OF_CONTENT[defect]((warm / name).resolve())
    else:
        (warm / name).unlink()
        OF_ENTRIES[defect](warm / name)
    assert pull("@v1.0.0", "--offline").code in {3, 4}
    assert pull().code == 0
    assert (warm / name).read_bytes() == (small / name).read_bytes()
    assert pull("@v1.0.0", "--offline").code == 0
    assert (tmp_path / "outside.txt").read_text() == "mine"


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
