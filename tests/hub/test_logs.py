"""A log on the Hub is fetched by its commit, and read as if it lay here."""

from pathlib import Path

import pytest

from tests.hub.conftest import NAME, meet, put
from tests.hub.faults import Kind
from tests.hub.server import FixtureHub
from tests.unit.registers.importing.logs import LOGS, study_of
from toolkit.errors import DamagedError, IncompleteError, ToolkitError, UsageError
from toolkit.registers.hub import log_files
from toolkit.registers.importing.reading import read_log

SOURCE = f"hf://datasets/{NAME}"


def test_a_dataset_on_the_hub_is_the_one_that_was_put_there(hub: FixtureHub) -> None:
    commit = put(hub, LOGS / "hub_dataset" / "repository", tag="v1.0.0")
    here = read_log([LOGS / "hub_dataset" / "repository"]).table.drop("file")
    for revision in ("", "@main", "@v1.0.0", f"@{commit}"):
        log = read_log([f"{SOURCE}{revision}"])
        assert log.table.drop("file").equals(here)
        assert set(log.table["file"]) == {NAME.partition("/")[2]}
    assert study_of(log)["episodes"].height == 72


def test_only_what_was_named_is_fetched(hub: FixtureHub) -> None:
    put(hub, LOGS / "hub_dataset" / "repository")
    log = read_log([f"{SOURCE}/data/validation-*.parquet"])
    assert log.table.height == 24
    assert not any("test-0" in request for request in hub.requests)
    (one,) = read_log([f"{SOURCE}@main/data/test-00000-of-00002.parquet"]).files
    assert one.name == "test-00000-of-00002.parquet"
    before = len(hub.requests)
    assert read_log([f"{SOURCE}/data"]).table.height == 72
    assert not any("validation-00000" in request for request in hub.requests[before:])


def test_rollouts_of_trl_in_repositories_are_runs_by_their_names(hub: FixtureHub) -> None:
    for run in ("grpo-s0", "dr_grpo-s0"):
        put(hub, LOGS / "trl" / run, f"me/{run}")
    log = read_log([f"hf://datasets/me/{run}" for run in ("grpo-s0", "dr_grpo-s0")])
    assert set(log.table["file"]) == {"grpo-s0", "dr_grpo-s0"}
    assert sorted(study_of(log)["runs"]["arm"]) == ["dr_grpo", "grpo"]


def test_what_was_fetched_is_read_again_without_the_hub(
    hub: FixtureHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(hub, LOGS / "hub_dataset" / "repository")
    read_log([SOURCE])
    hub.stop()
    said: list[str] = []
    assert read_log([SOURCE], said.append).table.height == 72
    assert len(said) == 1
    assert "as when it was last asked" in said[0]
    with FixtureHub() as another:
        meet(another, tmp_path, monkeypatch)
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        assert read_log([SOURCE]).table.height == 72
        with pytest.raises(IncompleteError, match="no such file"):
            read_log([f"{SOURCE}/absent"])


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("hf://datasets/only-owner", UsageError),
        ("hf://models/me/mine", UsageError),
        (f"{SOURCE}/data/../../x", UsageError),
        (f"{SOURCE}/absent.parquet", IncompleteError),
        (f"{SOURCE}@absent", IncompleteError),
        ("hf://datasets/me/absent", IncompleteError),
    ],
)
def test_what_is_not_there_is_one_clear_error(
    hub: FixtureHub, source: str, error: type[ToolkitError]
) -> None:
    put(hub, LOGS / "hub_dataset" / "repository")
    with pytest.raises(error):
        read_log([source])


@pytest.mark.parametrize("path", ["/outside.csv", "data\\outside.csv", "data//outside.csv"])
def test_paths_out_of_the_repository_are_refused(hub: FixtureHub, tmp_path: Path, path: str) -> None:
    hub.store.create(NAME)
    hub.store.commit(NAME, {path: b"arm,task\n", "data/a.csv": b"arm,task\n"})
    with pytest.raises(DamagedError, match="no folder can have"):
        read_log([SOURCE])
    assert not list(tmp_path.rglob("outside*"))


def test_more_than_a_log_has_is_not_fetched(hub: FixtureHub, monkeypatch: pytest.MonkeyPatch) -> None:
    put(hub, LOGS / "hub_dataset" / "repository")
    monkeypatch.setattr(log_files, "LARGEST", 9000)
    with pytest.raises(DamagedError, match="more than a log has"):
        read_log([SOURCE])
    assert not any(".parquet" in request for request in hub.requests)
    assert read_log([f"{SOURCE}/data/test-*"]).table.height == 48


@pytest.mark.parametrize(
    ("kind", "error"),
    [("wrong_bytes", DamagedError), ("cut_body", IncompleteError), ("missing_file", IncompleteError)],
)
def test_a_file_that_arrives_as_another_is_refused(
    hub: FixtureHub, kind: Kind, error: type[ToolkitError]
) -> None:
    put(hub, LOGS / "hub_dataset" / "repository")
    hub.fail(kind, "GET .*/resolve/.*test-00000")
    with pytest.raises(error, match=r"test-00000-of-00002\.parquet"):
        read_log([SOURCE])
