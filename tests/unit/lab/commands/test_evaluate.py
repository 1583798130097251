"""`toolkit evaluate`: from a model's name to figures and registers; and everything a user can get wrong."""

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
from toolkit.registers.study import open_study, verify_study
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


def test_the_reference_agent_leaves_a_study_with_the_figures_of_its_own_episodes(toolkit, tmp_path) -> None:
    done = toolkit("evaluate", "--model", "reference", *FEW, "--out", tmp_path, "--json").json()
    expected = {regime: by_hand(regime, 3, 2) for regime in ("clean", "faults_p025")}
    for regime, figures in expected.items():
        assert estimates(done, regime) == pytest.approx(figures)
    # What samples nothing owes all its luck to its schedules.
    assert {row["luck_share"] for row in done["luck_share"] if row["tasks_defined"]} == {1.0}
    folder = done["registers"]["folder"]
    assert verify_study(open_study(tmp_path / "registers"))["episodes"] == 12
    (verified,) = toolkit("registers", "verify", "--study", folder, "--json").json()
    assert verified["logical_sha256"] == done["registers"]["logical_sha256"]
    asked = toolkit("sql", "SELECT sum(successes) AS n FROM evaluations", "--study", folder, "--json").json()
    assert asked == [{"n": round(6 * sum(figures["success"] for figures in expected.values()))}]
    toolkit("decide", "--all", "--study", folder).refused(3, "unregistered")


def test_a_model_behind_an_endpoint_has_the_same_figures(toolkit: Toolkit) -> None:
    with FakeServer(by_reference).running() as server:
        result = toolkit(
            "evaluate", "--model", MODEL, "--endpoint", server.url, *FEW, "--no-luck-share", "--json"
        )
    assert estimates(result.json(), "faults_p025") == pytest.approx(by_hand("faults_p025", 3, 2))


def test_shared_samples_are_recorded_with_the_study(toolkit: Toolkit, tmp_path: Path) -> None:
    asked = ("evaluate", "--model", "reference", *QUICK, "--out", tmp_path)
    done = toolkit(*asked, "--couple", "--json").json()
    assert done["sampling"] == done["identity"]["sampling"] == "shared"
    query = "SELECT specification::JSON->>'sampling' AS kind FROM runs"
    assert toolkit("sql", query, "--study", done["registers"]["folder"], "--json").json() == [
        {"kind": "shared"}
    ]
    toolkit(*asked).refused(2, "own and shared ones are not mixed")
    document = toolkit("evaluate", "--model", "reference", *QUICK, "--json").json()
    assert document["sampling"] == "own"


@pytest.mark.parametrize("engine", ["vllm", "endpoint"])
def test_engines_that_cannot_share_samples_are_refused_before_anything_is_loaded(toolkit, engine) -> None:
    options = ("--endpoint", "http://localhost:1/v1") if engine == "endpoint" else ()
    asked = ("evaluate", "--model", "no/such/model", "--engine", engine, *options, "--couple")
    toolkit(*asked).refused(2, "cannot share its samples")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--engine-option", "sleep=true"), "no engine option 'sleep'"),
        (("--engine-option", "gpu_memory=2"), "gpu_memory is out of its range"),
        (("--engine-option", "tensor_parallel=2", "--processes", 2), "see one GPU each"),
        (("--engine-option", "tensor_parallel=2", "--executor", "ray"), "see one GPU each"),
    ],
)
def test_engine_options_that_cannot_be_are_refused_before_anything_is_loaded(toolkit, options, said) -> None:
    toolkit("evaluate", "--model", "no/such/model", "--engine", "vllm", *options).refused(2, said)


def test_the_tables_are_printed_for_people(toolkit: Toolkit) -> None:
    result = toolkit("evaluate", "--model", "reference", *FEW)
    assert result.code == 0, result.err
    for text in ("faults_p025", "1.000 [1.000, 1.000]", "Luck share λ", "3 of 3", "nothing was kept"):
        assert text in result.out


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


def test_a_model_that_is_nowhere_is_told_of(toolkit: Toolkit) -> None:
    toolkit("evaluate", "--model", "no/such/model", *QUICK).refused(2, "there is no such model")
