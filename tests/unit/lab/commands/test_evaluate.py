"""`toolkit evaluate` of a model behind a server."""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Toolkit
from tests.unit.lab.policies.language_model.fake_server import MODEL, FakeServer, Reply, by_reference, said
from toolkit.lab.episodes.agents import reference
from toolkit.lab.episodes.episode import play
from toolkit.lab.policies.language_model import endpoint
from toolkit.lab.tasks.pools import load_task
from toolkit.noise.regimes import REGIMES
from toolkit.seeds import evaluation_seed

FEW = ("--sets", "clean,faults_p025", "--tasks", 3, "--schedules", 2)
QUICK = ("--sets", "clean", "--tasks", 2, "--schedules", 1, "--no-luck-share")


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "PAUSE_S", 0.0)


def by_hand(regime: str, tasks: int, schedules: int) -> dict[str, float]:
    """Return what the reference agent's own episodes, as `toolkit episode play` plays them, come to."""
    played = [
        play(task, REGIMES[regime], evaluation_seed(task.task_id, schedule), reference)
        for task in (load_task(f"test:{number}") for number in range(tasks))
        for schedule in range(schedules)
    ]
    return {
        "success": sum(episode.true_success for episode in played) / len(played),
        "calls": sum(episode.calls for episode in played) / len(played),
        "exposed": sum(bool(episode.exposures) for episode in played) / len(played),
    }


def estimates(document: Mapping[str, Any], regime: str) -> dict[str, float]:
    row = next(row for row in document["sets"] if row["regime"] == regime)
    return {name: row[name]["estimate"] for name in ("success", "calls", "exposed")}


def test_a_model_behind_an_endpoint_has_the_same_figures(toolkit: Toolkit) -> None:
    with FakeServer(by_reference).running() as server:
        result = toolkit(
            "evaluate", "--model", MODEL, "--endpoint", server.url, *FEW, "--no-luck-share", "--json"
        )
    assert estimates(result.json(), "faults_p025") == pytest.approx(by_hand("faults_p025", 3, 2))


def test_a_server_that_dies_midway_leaves_what_was_recorded(toolkit: Toolkit, tmp_path: Path) -> None:
    command = ("evaluate", "--model", MODEL, "--sets", "clean,challenge", "--tasks", 2, "--schedules", 1)
    asked = itertools.count()

    def dying(question: Mapping[str, Any]) -> Reply | None:
        return by_reference(question) if next(asked) < 25 else None

    with FakeServer(dying).running() as server:
        died = toolkit(*command, "--endpoint", server.url, "--out", tmp_path, "--json")
    assert died.code == 3
    assert "challenge, test:0 to 1" in died.json()["error"]["where"]
    with FakeServer(by_reference).running() as server:
        whole = toolkit(*command, "--endpoint", server.url, "--out", tmp_path, "--json").json()
    assert whole["blocks"] == {"kept": 1, "played": 1}
    assert estimates(whole, "clean") == pytest.approx(by_hand("clean", 2, 1))


def test_the_key_is_nowhere(toolkit: Toolkit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-not-to-be-seen")
    with FakeServer(by_reference, key="sk-not-to-be-seen").running() as server:
        asked = ("--endpoint", server.url, "--api-key-env", "MY_KEY", "--out", tmp_path, "--json")
        result = toolkit("evaluate", "--model", MODEL, *QUICK, *asked)
    assert result.code == 0, result.err
    assert set(server.keys) == {"Bearer sk-not-to-be-seen"}
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"sk-not-to-be-seen" not in written + result.out.encode() + result.err.encode()


def test_a_missing_server_is_told_before_anything_is_played(toolkit: Toolkit, tmp_path: Path) -> None:
    with FakeServer(by_reference).running() as server:
        url = server.url
    toolkit("evaluate", "--model", MODEL, "--endpoint", url, *QUICK, "--out", tmp_path / "e").refused(
        3, "does not answer"
    )
    assert not (tmp_path / "e").exists()


def test_a_model_that_says_nothing_has_no_success(toolkit: Toolkit) -> None:
    with FakeServer(lambda _: said(text="no")).running() as server:
        document = toolkit("evaluate", "--model", MODEL, "--endpoint", server.url, *QUICK, "--json").json()
    (row,) = document["sets"]
    assert (row["success"]["estimate"], row["ended"]) == (0.0, {"stopped": 2})
