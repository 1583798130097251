"""A study goes to the Hub and comes back: the same bytes, by branch, by tag and by SHA."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import toolkit
from tests.conftest import CHECKOUT, run, snapshot
from tests.hub.conftest import NAME, PUBLISHED, cached, meet, put
from tests.hub.server import FixtureHub
from toolkit.registers.manifest import read_manifest
from toolkit.registers.opening import open_registers
from toolkit.registers.origin import Origin


@pytest.fixture(scope="module")
def offered() -> Iterator[FixtureHub]:
    """Return a Hub with the published study, tagged v1.0.0, only to be read."""
    with FixtureHub() as hub:
        put(hub, PUBLISHED, tag="v1.0.0")
        yield hub


@pytest.fixture
def commit(
    offered: FixtureHub, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> str:
    """Return the commit of the published study on the Hub; all tests share a cache."""
    meet(offered, tmp_path_factory.getbasetemp() / "offered", monkeypatch)
    return offered.store.repository(NAME).head.sha


def shown(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder that are not hidden."""
    return {name: content for name, content in snapshot(folder).items() if not name.startswith(".")}


def test_what_is_pulled_by_branch_tag_and_sha_is_what_was_pushed(hub: FixtureHub, tmp_path: Path) -> None:
    hub.page = 3  # a tree of many pages is read to its end
    done = run("registers", "push", "published", NAME, "--tag", "v1.0.0")
    repository = hub.store.repository(NAME)
    commit, files = repository.head.sha, len(repository.head.files) - 1
    assert f"commit {commit}, tag v1.0.0; the Hub states {files} files as here" in done.out
    assert f"cite it as {NAME}@{commit}" in done.out
    assert repository.tags["v1.0.0"][0] == commit
    assert read_manifest(PUBLISHED).logical_sha256 in str(repository.tags["v1.0.0"][1])
    for revision in ("", "@main", "@v1.0.0", f"@{commit}"):
        pulled = run("registers", "pull", f"{NAME}{revision}", "--json").json()
        assert pulled["origin"]["commit"] == commit
        assert pulled["folder"] == str(cached(tmp_path, commit))
    assert shown(cached(tmp_path, commit)) == shown(PUBLISHED)


def test_a_push_of_the_same_study_makes_no_commit(hub: FixtureHub, small: Path) -> None:
    push = ("registers", "push", small, NAME)
    planned = run(*push, "--dry-run", "--json").json()
    assert planned["outcome"] == "planned"
    assert "MANIFEST.json" in planned["added"]
    assert hub.store.repositories == {}
    run(*push, "--private")
    assert hub.store.repository(NAME).private
    head = hub.store.repository(NAME).head.sha
    again = run(*push, "--tag", "v1.0.0", "--json").json()
    assert (again["outcome"], again["commit"]) == ("unchanged", head)
    assert len(hub.asked("POST .*/commit/")) == 1
    assert run(*push, "--tag", "v1.0.0").code == 0


def test_a_copy_is_a_plain_folder_that_stands_alone(commit: str, tmp_path: Path) -> None:
    copy = tmp_path / "copies" / "mine"
    pulled = run("registers", "pull", f"{NAME}@v1.0.0", "--into", copy, "--json").json()
    assert pulled["folder"] == str(copy)
    assert snapshot(copy) == shown(PUBLISHED)
    assert not any(path.is_symlink() for path in copy.rglob("*"))
    assert run("registers", "pull", NAME, "--into", copy).code == 0  # over itself


def test_a_folder_with_something_else_is_not_written(commit: str, tmp_path: Path) -> None:
    for name, content in {"thesis.tex": "mine", "MANIFEST.json": "{}"}.items():
        folder = tmp_path / f"with-{name}"
        folder.mkdir()
        (folder / name).write_text(content)
        done = run("registers", "pull", NAME, "--into", folder)
        assert (done.code, snapshot(folder)) == (3, {name: content.encode()})


def test_a_copy_with_a_file_of_ones_own_is_not_replaced(hub: FixtureHub, commit: str, tmp_path: Path) -> None:
    run("registers", "pull", NAME, "--into", tmp_path / "mine")
    (tmp_path / "mine" / "remarks.txt").write_text("mine")
    assert run("registers", "pull", NAME, "--into", tmp_path / "mine").code == 3
    assert (tmp_path / "mine" / "remarks.txt").read_text() == "mine"


def test_a_pulled_study_knows_where_it_came_from(commit: str) -> None:
    study = toolkit.open_study(f"{NAME}@v1.0.0")
    assert study.origin == Origin(NAME, "v1.0.0", commit, f"{NAME}@v1.0.0")
    assert len(study.rows("runs")) == study.manifest.tables["runs"].rows


@pytest.mark.slow
def test_datasets_loads_and_streams_the_commit(offered: FixtureHub, commit: str, tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from datasets import load_dataset\n"
        "asked = dict(name='runs', split='train', revision=sys.argv[2])\n"
        "whole = load_dataset(sys.argv[1], **asked)\n"
        "streamed = list(load_dataset(sys.argv[1], streaming=True, **asked))\n"
        "assert [r['run_id'] for r in streamed] == whole['run_id'][:]\n"
        "print(whole.num_rows)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, NAME, commit],
        capture_output=True,
        text=True,
        env={**os.environ, **offered.environment(tmp_path)},
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == read_manifest(PUBLISHED).tables["runs"].rows


def test_a_study_on_the_hub_is_decided_as_the_one_here_is(
    offered: FixtureHub, commit: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "toolkit", "decide", "H2a", "--study", f"{NAME}@v1.0.0", "--json"]
    environment = {**os.environ, **offered.environment(tmp_path)}  # as a user does: in a process of its own
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=CHECKOUT, check=False)
    assert done.returncode == 0, done.stderr
    (decision,) = json.loads(done.stdout)
    (here,) = run("decide", "H2a", "--study", "published", "--json").json()
    assert decision.pop("origin") == {"repository": NAME, "revision": "v1.0.0", "commit": commit}
    assert here.pop("origin") is None
    assert decision == here
    assert [register["config"] for register in decision["registers"]] == ["evaluations", "intervals", "runs"]
    for register in decision["registers"]:
        assert register["files"]
        for path, sha256 in register["files"].items():
            assert hashlib.sha256((PUBLISHED / path).read_bytes()).hexdigest() == sha256


def test_one_study_here_and_on_the_hub_are_two_tables(commit: str) -> None:
    out = run("decide", "H2a", "--study", "published", "--study", NAME).out
    assert out.count("H2a  Learning under tool faults  (study published)") == 2
    assert out.count(f"{NAME}@{commit}") == 1


def test_the_commit_is_shown_beside_what_was_decided(commit: str) -> None:
    for command in ("decide", "explain"):
        shown = f"{NAME}@{commit}, asked for as v1.0.0"
        assert shown in run(command, "H2a", "--study", f"{NAME}@v1.0.0").out
        assert NAME not in run(command, "H2a", "--study", "published").out


def test_commands_take_a_study_on_the_hub(commit: str) -> None:
    study = ("--study", f"hf://datasets/{NAME}@{commit}", "--json")
    assert run("sql", "SELECT count(*) AS n FROM runs", *study).json() == [{"n": 15}]
    assert run("registers", "list", *study).json()
    (verified,) = run("registers", "verify", *study).json()
    assert verified["origin"] == {"repository": NAME, "revision": commit, "commit": commit}


def test_a_folder_wins_over_a_repository_of_its_name(
    hub: FixtureHub, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = rows.parent / f"{NAME}@v1.0.0"
    folder.parent.mkdir()
    rows.rename(folder)
    monkeypatch.chdir(rows.parent)
    assert open_registers(f"{NAME}@v1.0.0").folder == folder
    assert hub.requests == []


def test_a_wrong_path_into_a_folder_that_is_here_is_not_sought_on_the_hub(hub: FixtureHub) -> None:
    done = run("registers", "verify", "--study", "tests/nothing")
    assert (done.code, hub.requests) == (2, [])


def test_what_the_real_xet_client_sent_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hf_xet
    from huggingface_hub import hf_hub_download

    (tmp_path / "cas").mkdir()
    with FixtureHub(cas=tmp_path / "cas") as hub:
        meet(hub, tmp_path, monkeypatch)
        # The Hub learns a file's Xet hash from the store; this one is told.
        parquet = sorted(PUBLISHED.rglob("*.parquet"))
        for path, known in zip(parquet, hf_xet.hash_files([str(p) for p in parquet]), strict=True):
            content = path.read_bytes()
            hub.store.keep_elsewhere(hashlib.sha256(content).hexdigest(), len(content), known.hash)
        pushed = run("registers", "push", "published", NAME, "--json").json()
        assert hub.asked("PUT|lfs") == []
        for path in parquet:
            name, asked = (
                path.relative_to(PUBLISHED).as_posix(),
                {"repo_type": "dataset", "endpoint": hub.url},
            )
            back = hf_hub_download(
                NAME, name, revision=pushed["commit"], local_dir=tmp_path / "back", **asked
            )
            # The Hub offers what lies in its store to whoever asks without Xet, too.
            hub.store.keep(Path(back).read_bytes())
        assert hub.asked("GET .*resolve.*parquet") == []
        assert len(hub.asked("xet-write-token")) == 1
        pulled = run("registers", "pull", NAME, "--json").json()
        assert pulled["origin"]["commit"] == pushed["commit"]
        assert shown(cached(tmp_path, pushed["commit"])) == shown(PUBLISHED)
