"""A Hub that means harm: nothing is written but into the cache, and it spends neither bytes nor time."""

import time
from pathlib import Path

import pytest

from tests.conftest import run, snapshot
from tests.hub.conftest import NAME, RUNS, expect, pull, put
from tests.hub.server import FixtureHub

MANIFEST = "MANIFEST.json"


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a Hub for a moment only."""
    for name in ("HF_HUB_ETAG_TIMEOUT", "HF_HUB_DOWNLOAD_TIMEOUT"):
        monkeypatch.setenv(name, "0.2")


def outside(tmp_path: Path) -> list[str]:
    """Return what lies in the cache and is neither a commit's file nor content under its own hash."""
    root = tmp_path / "hf" / "hub" / "datasets--group--study"
    names = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*outside*")]
    blobs = [path.name for path in (root / "blobs").glob("*") if len(path.name) not in {40, 64}]
    return names + blobs


def test_what_the_hub_calls_a_file_is_no_path(small: Path, hub: FixtureHub, tmp_path: Path) -> None:
    commit = put(hub, small, tag="v1.0.0")
    hub.fail("leads_out", "resolve")
    done = pull()
    assert outside(tmp_path) == []
    expect(done, 0)
    expect(run("sql", "SELECT count(*) FROM runs", "--study", f"{NAME}@{commit}", "--remote"), 0)
    assert outside(tmp_path) == []


def test_a_file_that_the_manifest_does_not_name_is_refused_and_not_fetched(
    hub: FixtureHub, commit: str
) -> None:
    hub.store.commit(NAME, {"runs/more.parquet": bytes(5_000_000)})
    expect(pull(""), 4, "runs/more.parquet is not in the manifest", "ask its owner")
    assert hub.asked("GET .*/resolve/.*(more|runs/)") == []
    assert hub.sent < 200_000


def test_a_file_of_another_size_than_the_manifests_is_refused_and_not_fetched(
    hub: FixtureHub, commit: str
) -> None:
    hub.store.commit(NAME, {RUNS: bytes(5_000_000)})
    expect(pull(""), 4, f"{RUNS} is not the file that the manifest names", "5000000 bytes", "ask its owner")
    assert hub.asked("GET .*/resolve/.*parquet") == []


def test_a_manifest_without_end_is_refused_and_not_fetched(hub: FixtureHub, commit: str) -> None:
    hub.store.commit(NAME, {MANIFEST: bytes(70_000_000)})
    for command in (("registers", "pull", NAME), ("sql", "FROM runs", "--study", NAME, "--remote")):
        expect(run(*command), 4, "MANIFEST.json", "70000000 bytes")
    assert hub.asked("resolve.*MANIFEST") == []


@pytest.mark.parametrize("where", [RUNS, MANIFEST, "GET .*/tree/", "POST .*/paths-info/", "GET .*/revision/"])
def test_an_answer_that_goes_on_is_cut(hub: FixtureHub, commit: str, tmp_path: Path, where: str) -> None:
    hub.fail("endless_body", where)
    done = pull()
    assert done.code in {3, 4}
    assert "bytes at most" in done.err
    assert hub.sent < 40_000_000  # of 50; what the sockets hold has been sent, and was never read
    assert outside(tmp_path) == []


@pytest.mark.parametrize("kind", ["silent", "dripping"])
@pytest.mark.parametrize("where", ["GET .*/refs", MANIFEST, f"GET .*{RUNS}"])
def test_a_hub_that_keeps_one_waiting_is_given_up_once(
    hub: FixtureHub, commit: str, hurried: None, tmp_path: Path, kind: str, where: str
) -> None:
    hub.fail(kind, where)
    begin = time.monotonic()
    done = expect(pull("@v1.0.0", "--json"), 3)
    assert time.monotonic() - begin < 3
    assert "HF_HUB_DOWNLOAD_TIMEOUT" in done.json()["error"]["expected"]
    assert outside(tmp_path) == []


def test_nothing_unproven_enters_the_cache(small: Path, hub: FixtureHub, commit: str, tmp_path: Path) -> None:
    hub.fail("wrong_bytes", f"GET .*{RUNS}")
    expect(pull(), 4, "do not use it")
    blobs = snapshot(tmp_path / "hf" / "hub" / "datasets--group--study" / "blobs")
    assert set(blobs.values()) <= set(snapshot(small).values())
