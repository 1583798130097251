"""A language model's run: killed and gone on with, it leaves the bytes of one that was not; its refusals."""

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import CHECKOUT, SMALL_MODEL, snapshot
from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.lab.play import language_model_run
from toolkit.lab.play.language_model_run import Pace
from toolkit.lab.play.segments import rows_of
from toolkit.lab.play.workplace import Workplace

RUN = "c2-paired-s3"
SEGMENTS = ("segment-000", "segment-001", "segment-002")
FILES = (
    *SEGMENTS,
    "episodes.parquet",
    "groups.parquet",
    "steps.parquet",
    "adapters.parquet",
    "summary.json",
    "COMPLETE.json",
)


def train(folder: Path, model: str, say: Callable[[str], None] = lambda _: None, **changed: Any) -> bool:
    from tests.unit.lab.study import train_in_a_folder

    return train_in_a_folder.train(folder, model, say, **changed)


@pytest.fixture(scope="module")
def whole(model: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run that was never cut off."""
    folder = tmp_path_factory.mktemp("whole")
    assert train(folder, model)
    return folder / RUN


class Stopped(NamedTuple):
    """A study whose run was told to stop in its third of four steps: its folder, and what was said."""

    folder: Path
    said: list[str]
    error: IncompleteError


@pytest.fixture(scope="module")
def stopped(model: str, tmp_path_factory: pytest.TempPathFactory) -> Stopped:
    folder, said = tmp_path_factory.mktemp("stopped"), []

    def stop(text: str) -> None:
        said.append(text)
        if text.startswith("step 3 of"):
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(language_model_run, "Pace", partial(Pace, pause_s=0))
        with pytest.raises(IncompleteError, match="told to stop") as raised:
            train(folder, model, stop)
    return Stopped(folder, said, raised.value)


@pytest.fixture
def cut(stopped: Stopped, tmp_path: Path) -> Path:
    """Return a copy of its folder."""
    return shutil.copytree(stopped.folder, tmp_path / "study")


def test_a_training_says_how_far_each_step_has_come_and_stops_where_it_is_told(stopped: Stopped) -> None:
    """Rollouts, micro-batches and blocks of an evaluation; the checkpoint before is what goes on."""
    assert stopped.error.where == "c2-paired-s3, after step 3 of 4"
    assert "from the checkpoint at step 2" in str(stopped.error.remedy)
    for said in (
        "step 1: 8 of 8 rollouts are over",
        "step 1: 2 of 2 micro-batches trained",
        "step 0: 0 of 3 blocks evaluated",
    ):
        assert said in stopped.said


def attempts(run: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in sorted(run.glob("attempt-*.json"))]


def test_a_run_trains_the_adapter_and_its_evidence_is_what_is_registered(whole: Path) -> None:
    steps, digests, figures = [], set(), []
    for name in SEGMENTS:
        rows = rows_of((whole / name).read_bytes(), name)
        (row,) = rows["adapters"]
        saved = whole / f"checkpoint-{row['step']}" / "adapter_model.safetensors"
        assert base64.b64decode(row["adapter"]) == saved.read_bytes()
        steps.append((row["step"], [group["step"] for group in rows["groups"]]))
        digests.add(row["sha256"])
        figures += rows["steps"]
    assert steps == [(0, []), (2, [1, 2]), (4, [3, 4])]
    assert len(digests) == 3
    summary = json.loads((whole / "summary.json").read_bytes())
    assert (summary["shortcomings"], summary["runs"][0]["status"]) == ([], "COMPLETE")
    (launch,) = attempts(whole)
    assert "chunk_gated_delta_rule reference" in launch["kernels"]
    assert f"torch {version('torch')}" in launch["stack"]
    state = json.loads((whole / "checkpoint-4/trainer_state.json").read_bytes())
    logged = [entry for entry in state["log_history"] if "loss" in entry]
    assert [(row["step"], row["loss"], row["grad_norm"]) for row in figures] == [
        (entry["step"], entry["loss"], entry["grad_norm"]) for entry in logged
    ]
    assert any(row["loss"] and row["grad_norm"] and row["entropy"] for row in figures)
    assert launch["step_seconds"] == [round(entry["step_time"], 3) for entry in logged]
    assert all(0 < g < s for s, g in zip(launch["step_seconds"], launch["generation_seconds"], strict=True))


def check_gone_on_with(folder: Path, whole: Path, model: str) -> None:
    assert sorted(path.name for path in (folder / RUN).glob("segment-*")) == list(SEGMENTS[:2])
    messages: list[str] = []
    assert train(folder, model, messages.append)
    for name in FILES:
        assert (folder / RUN / name).read_bytes() == (whole / name).read_bytes(), name
    assert next(line for line in messages if line.startswith("step")).startswith("step 3 of 4")
    first, second = attempts(folder / RUN)
    assert (first["from_step"], first["ended_at"]) == (0, None)
    assert second["from_step"] == 2
    assert [len(attempt["step_seconds"]) for attempt in (first, second)] == [2, 2]
    assert second["ended_at"]


def test_a_run_that_was_cut_off_and_gone_on_with_leaves_the_same_bytes(cut, whole, model) -> None:
    """Seconds that the trainer logged, and its card, are no part of a checkpoint's state."""
    path = cut / RUN / "checkpoint-2" / "trainer_state.json"
    state = json.loads(path.read_text())
    for entry in state["log_history"]:
        entry["step_time"] = 99.0
    path.write_text(json.dumps(state))
    (cut / RUN / "checkpoint-2" / "README.md").unlink()
    check_gone_on_with(cut, whole, model)


@pytest.mark.slow
def test_a_run_that_was_killed_and_gone_on_with_leaves_the_same_bytes(whole, model, tmp_path) -> None:
    command = [sys.executable, "-m", "tests.unit.lab.study.train_in_a_folder", tmp_path, model, "3"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (CHECKOUT, SMALL_MODEL)))}
    ended = subprocess.run(
        command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    check_gone_on_with(tmp_path, whole, model)


def test_a_complete_run_is_not_trained_again(whole: Path, model: str) -> None:
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("*")}
    assert not train(whole.parent, model)
    assert {path: path.stat().st_mtime_ns for path in whole.rglob("*")} == before


STATE = ("adapter_model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json")


def test_a_checkpoint_that_was_changed_or_is_gone_is_refused(cut: Path, model: str) -> None:
    checkpoint = cut / RUN / "checkpoint-2"
    for name in (*STATE, ""):
        kept = shutil.copytree(checkpoint, cut / f"kept-{name}")
        if name == "trainer_state.json":
            state = json.loads((checkpoint / name).read_text()) | {"global_step": 1}
            (checkpoint / name).write_text(json.dumps(state))
        elif name:
            raw = bytearray((checkpoint / name).read_bytes())
            raw[len(raw) // 3] ^= 1
            (checkpoint / name).write_bytes(bytes(raw))
        else:
            shutil.rmtree(checkpoint)
        before = snapshot(cut / RUN)
        with pytest.raises(DamagedError, match="a checkpoint is not as it was saved") as raised:
            train(cut, model)
        assert raised.value.remedy
        assert snapshot(cut / RUN) == before
        shutil.rmtree(checkpoint, ignore_errors=True)
        kept.rename(checkpoint)


def test_a_run_of_another_recipe_or_in_other_hands_is_refused(cut: Path, model: str) -> None:
    from tests.unit.lab.study.train_in_a_folder import specification as specified

    with Workplace(cut).held([specified(model)]), pytest.raises(UsageError, match=RUN):
        train(cut, model)
    with pytest.raises(UsageError, match="launched with another specification") as raised:
        train(cut, model, settings=("lora.rank=3",))
    assert "rank" in str(raised.value.expected)
