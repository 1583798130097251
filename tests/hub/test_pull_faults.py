"""Everything that can be wrong with a pull: found, said, and never taken for right."""

import errno
import shutil
from pathlib import Path

import pytest

from tests.conftest import run, snapshot
from tests.hub.conftest import NAME, RUNS, TOKEN, damage, expect, meet, name_anew, pull, put
from tests.hub.server import FixtureHub
from toolkit.files import write_bytes
from toolkit.registers.study import open_study
from toolkit.registers.verified import verify_study


def test_what_is_in_the_cache_is_not_downloaded_again_and_nothing_odd_to_the_hubs_own_tools(
    hub: FixtureHub, warm: Path, tmp_path: Path
) -> None:
    from huggingface_hub import scan_cache_dir

    assert pull().code == 0
    assert hub.asked("resolve") == []
    scanned = scan_cache_dir(tmp_path / "hf" / "hub")
    assert scanned.warnings == []
    assert [repo.repo_id for repo in scanned.repos] == [NAME]


@pytest.mark.parametrize("name", [RUNS, "README.md", "MANIFEST.json"])
def test_a_damaged_cache_is_found_and_downloaded_anew(
    small: Path, hub: FixtureHub, warm: Path, name: str
) -> None:
    damage(warm / name)
    expect(pull(), 0, f"{name} in the cache is not what the manifest names")
    assert (warm / name).read_bytes() == (small / name).read_bytes()
    assert len(hub.asked("GET .*/resolve/")) == 1


def test_a_damaged_cache_is_never_decided_on_offline(
    hub: FixtureHub, warm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(warm / RUNS)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    done = run("decide", "--all", "--study", f"{NAME}@v1.0.0", "--json")
    assert done.code == 4
    assert list(done.json()) == ["error"]
    assert hub.requests == []


@pytest.mark.parametrize("times", [1, 2])
def test_wrong_bytes_are_downloaded_anew_once_and_then_refused(
    hub: FixtureHub, commit: str, times: int
) -> None:
    hub.fail("wrong_bytes", f"GET .*/resolve/.*{RUNS}", times)
    done = pull()
    assert done.code == (0 if times == 1 else 4)
    assert f"{RUNS}, as it arrived, is not what the manifest names: it is downloaded anew" in done.err
    assert "in the cache" not in done.err
    if times > 1:
        assert f"{RUNS} is not the file that the manifest names" in done.err
        assert "do not use it" in done.err
        assert done.out == ""


@pytest.mark.parametrize(
    ("name", "old", "new", "problem"),
    [
        ("README.md", b"---", b"--", "README.md is not the file that the manifest names"),
        (
            "MANIFEST.json",
            b'"evidence": "rows"',
            b'"evidence": "summary"',
            "was changed after it was written",
        ),
    ],
)
def test_a_repository_that_is_damaged_itself_is_refused(
    small: Path, hub: FixtureHub, name: str, old: bytes, new: bytes, problem: str
) -> None:
    put(hub, small)
    hub.store.commit(NAME, {name: (small / name).read_bytes().replace(old, new, 1)})
    expect(pull(""), 4, problem)


def test_a_file_that_the_manifest_names_and_the_commit_lacks_is_said(hub: FixtureHub, commit: str) -> None:
    hub.store.commit(NAME, {}, (RUNS,))
    expect(pull(""), 3, f"{RUNS}", "the Hub does not have a file")


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((kind, RUNS) for kind in ("missing_file", "server_error", "truncated_body", "cut_body", "hung_up")),
        *((kind, "MANIFEST.json") for kind in ("missing_file", "truncated_body", "hung_up")),
    ],
)
def test_a_file_that_does_not_arrive_stops_the_pull(
    small: Path, hub: FixtureHub, commit: str, kind: str, name: str, tmp_path: Path
) -> None:
    hub.fail(kind, f"GET .*/resolve/.*{name}")
    done = pull("@v1.0.0", "--json", "--into", tmp_path / "copy")
    assert done.code == 3
    assert list(done.json()) == ["error"]
    assert not (tmp_path / "copy").exists()
    hub.mend()
    again = pull("@v1.0.0", "--into", tmp_path / "copy")
    assert again.code == 0
    assert snapshot(tmp_path / "copy") == snapshot(small)


def test_a_server_error_costs_one_more_call_and_nothing_that_arrived(
    small: Path, hub: FixtureHub, commit: str
) -> None:
    hub.fail("server_error", f"GET .*/resolve/.*{RUNS}", 1)
    assert pull().code == 3
    hub.requests.clear()
    assert pull().code == 0
    assert len(hub.asked(f"GET .*/resolve/.*{RUNS}")) == 1
    assert len(hub.asked("GET .*/resolve/")) < len(snapshot(small))


def test_what_is_not_there_is_said(hub: FixtureHub, commit: str) -> None:
    for reference, problem in {
        "group/nothing": "there is no such dataset repository, or it is private",
        f"{NAME}@v9": "the repository has no such revision",
        f"{NAME}@{'0' * 40}": "the repository has no such revision",
    }.items():
        done = expect(run("registers", "pull", reference), 3, problem, "what to do")
        assert "--offline" not in done.err


def test_a_repository_without_a_manifest_is_no_register(hub: FixtureHub) -> None:
    hub.store.create("group/words")
    hub.store.commit("group/words", {"README.md": b"words", "big.parquet": b"x" * 1000})
    problem = "group/words is no register of this toolkit"
    expect(run("registers", "pull", "group/words"), 3, problem)
    expect(run("sql", "FROM runs", "--study", "group/words", "--remote"), 3, problem)
    assert hub.asked("big.parquet") == []  # a stranger's data is not downloaded to find that out


def test_a_private_study_needs_a_token(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with FixtureHub(token=TOKEN) as hub:
        meet(hub, tmp_path, monkeypatch)
        commit = put(hub, small, tag="v1.0.0")
        hub.store.repository(NAME).private = True
        assert pull().code == 0
        monkeypatch.setenv("HF_TOKEN", "")
        for revision in ("@v1.0.0", f"@{commit}"):
            expect(pull(revision), 3, "log in", "--offline")
        shutil.rmtree(tmp_path / "hf")
        for token in ("", "hf_another"):
            monkeypatch.setenv("HF_TOKEN", token)
            expect(pull(), 3, "or it is private", "HF_TOKEN")


def test_a_full_disk_is_said(
    hub: FixtureHub, commit: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from toolkit.registers.hub import cached

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(cached, "stream", full)
    expect(pull(), 3, "the disk is full", "HF_HUB_CACHE")


@pytest.fixture
def moved(hub: FixtureHub, warm: Path) -> str:
    """Return another commit, to which the tag was moved after it was pulled."""
    other = hub.store.commit(NAME, {".note": b"hidden, so that the study is the same"}).sha
    hub.store.move_tag(NAME, "v1.0.0", other)
    return other


def test_a_moved_tag_is_refused_until_it_is_accepted(hub: FixtureHub, commit: str, moved: str) -> None:
    expect(pull(), 1, "the tag v1.0.0 was moved", commit, moved)
    assert run("decide", "H2a", "--study", f"{NAME}@v1.0.0").code == 1
    assert pull(f"@{commit}").code == 0
    assert pull("@v1.0.0", "--accept-moved").code == 0
    assert pull("@v1.0.0", "--json").json()["origin"]["commit"] == moved


def test_a_tag_that_is_gone_is_said_with_its_commit(hub: FixtureHub, warm: Path, commit: str) -> None:
    hub.store.untag(NAME, "v1.0.0")
    expect(pull(), 3, "the repository has no such revision", f"name {NAME}@{commit}")
    assert pull(f"@{commit}").code == 0


def test_a_moved_branch_is_followed(hub: FixtureHub, warm: Path, moved: str) -> None:
    assert pull("", "--json").json()["origin"]["commit"] == moved
    newest = hub.store.commit(NAME, {".note": b"again"}).sha
    assert pull("", "--json").json()["origin"]["commit"] == newest


@pytest.mark.parametrize("how", ["variable", "no connection", "server error", "option"])
def test_without_the_hub_the_cache_is_used_and_checked_and_this_is_said(
    hub: FixtureHub, warm: Path, commit: str, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    if how == "variable":
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    elif how == "no connection":
        hub.stop()
    elif how == "server error":
        hub.fail("server_error", ".")
    options = ["--offline"] if how == "option" else []
    done = pull("@v1.0.0", "--json", *options)
    assert done.code == 0
    assert done.json()["origin"]["commit"] == commit
    assert "the Hub " in done.err
    assert f"{NAME}@v1.0.0 is taken as commit {commit}, as when it was last asked" in done.err
    assert pull(f"@{commit}", *options).code == 0
    for never_pulled in ("@v2", "", f"@{'0' * 40}"):
        expect(pull(never_pulled, *options), 3, "what to do")
    damage(warm / RUNS)
    assert expect(pull("@v1.0.0", *options), 4).out == ""


def test_python_is_told_that_the_hub_was_not_asked(
    hub: FixtureHub, warm: Path, commit: str, caplog: pytest.LogCaptureFixture
) -> None:
    import toolkit

    study = toolkit.open_study(f"{NAME}@v1.0.0", offline=True)
    assert study.origin is not None
    assert commit in caplog.text
    assert hub.requests == []


def test_a_cache_that_was_forged_to_fit_itself_is_found(small: Path, hub: FixtureHub, warm: Path) -> None:
    write_bytes(warm / "README.md", (warm / "README.md").read_bytes() + b"\nEverything passed.\n")
    name_anew(warm, "README.md")
    assert verify_study(open_study(warm))
    expect(
        pull(),
        0,
        "MANIFEST.json in the cache is not what the manifest names",
        "README.md in the cache is not what the manifest names",
    )
    assert (warm / "README.md").read_bytes() == (small / "README.md").read_bytes()
