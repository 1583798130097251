"""Playing runs: the same bytes whatever happens on the way, and every bad state named."""

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT, snapshot
from tests.unit.study import fake_play
from tests.unit.study.fake_play import sparsely, specification
from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.study.executors.executor import Executor
from toolkit.study.play.runner import play_runs
from toolkit.study.play.workplace import PlayedRuns, RunFolder, Workplace
from toolkit.training.specification import Specification

RUNS = tuple(specification(f"c2-paired-s{seed}", seed=seed) for seed in range(3))


def play(
    folder: Path, runs: tuple[Specification, ...] = RUNS, play: Any = sparsely, **told: Any
) -> PlayedRuns:
    workplace = Workplace(folder)
    with workplace.held(runs):
        return play_runs(workplace, runs, Executor(**({"places": 1} | told)), play=play)


def lasting(folder: Path) -> dict[str, bytes]:
    """Return what has to be the same from launch to launch: everything but the attempts."""
    return {name: raw for name, raw in snapshot(folder).items() if "/attempt-" not in name}


@pytest.fixture(scope="session")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("undisturbed")
    play(folder)
    return lasting(folder)


@pytest.fixture
def cut_off(tmp_path: Path) -> RunFolder:
    """A run that was cut off after its second segment of three."""
    return leave_off(tmp_path, segments=2)


def leave_off(folder: Path, segments: int) -> RunFolder:
    def stop(done: int, *_: object) -> None:
        if done == segments:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play(folder, RUNS[:1], watch=stop)
    return Workplace(folder).run(RUNS[0])


def of_first(content: dict[str, bytes]) -> dict[str, bytes]:
    return {name: raw for name, raw in content.items() if name.startswith(f"{RUNS[0].run_id}/")}


def test_two_processes_leave_what_one_leaves(tmp_path: Path, expected: dict[str, bytes]) -> None:
    play(tmp_path, places=2)
    assert lasting(tmp_path) == expected


def test_a_run_that_was_cut_off_goes_on_to_the_same_bytes(
    cut_off: RunFolder, expected: dict[str, bytes]
) -> None:
    play(cut_off.folder.parent, RUNS[:1])
    assert lasting(cut_off.folder.parent) == of_first(expected)


def test_the_earlier_attempt_is_kept(cut_off: RunFolder) -> None:
    play(cut_off.folder.parent, RUNS[:1])
    first, second = cut_off.launches()
    assert (first.attempt, first.from_step, first.ended_at) == (1, 0, None)
    assert (second.attempt, second.from_step) == (2, 2)
    assert second.ended_at is not None
    assert second.peak_memory_mb is not None


def test_a_run_goes_on_from_its_newest_checkpoint_alone(cut_off: RunFolder) -> None:
    begun: list[tuple[int, object]] = []

    def watched(run: Specification, end: int, before: Any) -> Any:
        begun.append((end, before and before["step"]))
        return sparsely(run, end, before)

    play(cut_off.folder.parent, RUNS[:1], play=watched)
    assert begun == [(4, 2)]


@pytest.mark.parametrize("processes", [1, 2])
def test_kills_at_random_moments_leave_the_same_bytes(tmp_path: Path, processes: int) -> None:
    moments = random.Random(processes)  # noqa: S311 - moments, not secrets
    command = [sys.executable, "-m", "tests.unit.study.play_in_a_folder", str(tmp_path), "12", str(processes)]
    for awaited in ("attempt-*", "segment-*", "attempt-*", "segment-*", "segment-*"):
        before = files(tmp_path, awaited)
        with subprocess.Popen(command, cwd=CHECKOUT, stderr=subprocess.DEVNULL) as runner:
            while files(tmp_path, awaited) == before and runner.poll() is None:
                time.sleep(0.002)
            time.sleep(moments.random() * 0.03)
            runner.send_signal(signal.SIGKILL)
        assert runner.returncode == -signal.SIGKILL
    runs = tuple(specification(f"c2-paired-s{seed}", seed=seed) for seed in range(12))
    play(tmp_path, runs)
    play(tmp_path / "undisturbed", runs)
    undisturbed = lasting(tmp_path / "undisturbed")
    assert {name: raw for name, raw in lasting(tmp_path).items() if "undisturbed" not in name} == undisturbed


# So many runs that a starved test still finds the runner at work.
MANY = "60"


def files(folder: Path, pattern: str) -> int:
    return len(list(folder.glob(f"*/{pattern}")))


def test_a_killed_runner_leaves_no_process(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.unit.study.play_in_a_folder", str(tmp_path), MANY, "2"]
    with subprocess.Popen(command, cwd=CHECKOUT, stderr=subprocess.PIPE) as runner:
        while not files(tmp_path, "segment-000") and runner.poll() is None:
            time.sleep(0.005)
        runner.send_signal(signal.SIGKILL)
        # Its processes share the pipe, which ends when the last of them does.
        runner.communicate(timeout=10)


def test_an_interrupt_at_the_keyboard_ends_all_processes_and_loses_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.unit.study.play_in_a_folder", str(tmp_path), MANY, "2"]
    with subprocess.Popen(
        command,
        cwd=CHECKOUT,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Tests that a shell runs in the background ignore interrupts, and so would what they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - no threads here
    ) as runner:
        while not files(tmp_path, "segment-000") and runner.poll() is None:
            time.sleep(0.005)
        os.killpg(runner.pid, signal.SIGINT)
        _, said = runner.communicate(timeout=10)
    # One traceback: that of the runner, which a command turns into a word. Its processes say nothing.
    assert said.count("KeyboardInterrupt") == 1
    assert not list(tmp_path.rglob("*.part"))
    play(tmp_path)


def test_two_runners_on_one_run_are_refused(tmp_path: Path) -> None:
    with Workplace(tmp_path).held(RUNS[1:2]), pytest.raises(UsageError, match=RUNS[1].run_id):
        play(tmp_path)


def test_another_specification_is_refused(cut_off: RunFolder) -> None:
    other = (specification(RUNS[0].run_id, seed=0, learning_rate="0.1"),)
    before = snapshot(cut_off.folder)
    with pytest.raises(UsageError, match="another specification") as error:
        play(cut_off.folder.parent, other)
    assert "learning_rate 0.0035" in str(error.value)
    assert snapshot(cut_off.folder) == before


def test_another_pool_is_another_specification(cut_off: RunFolder) -> None:
    with pytest.raises(UsageError, match="another specification"):
        play(cut_off.folder.parent, (specification(RUNS[0].run_id, pools={"train": "b" * 64}),))


def test_another_version_of_the_package_is_refused(
    cut_off: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolkit.__version__", "9.9.9")
    with pytest.raises(UsageError, match="another version"):
        play(cut_off.folder.parent, RUNS[:1])


@pytest.mark.parametrize("keep", [0, 30, 400, -1])
def test_a_truncated_newest_segment_is_kept_aside_and_played_again(
    cut_off: RunFolder, expected: dict[str, bytes], keep: int
) -> None:
    newest = cut_off.segments[1]
    broken = newest.read_bytes()[:keep]
    newest.write_bytes(broken)
    said: list[str] = []
    play(cut_off.folder.parent, RUNS[:1], say=said.append)
    aside = cut_off.folder / "segment-001.damaged-1"
    assert aside.read_bytes() == broken
    aside.unlink()
    assert lasting(cut_off.folder.parent) == of_first(expected)
    assert "segment-001 was cut short or changed" in said[0]


def test_what_follows_a_broken_segment_is_kept_aside_too(
    cut_off: RunFolder, expected: dict[str, bytes]
) -> None:
    first, second = cut_off.segments[:2]
    first.write_bytes(first.read_bytes().replace(b"c2-paired", b"c3-paired"))
    play(cut_off.folder.parent, RUNS[:1])
    kept = {path.name for path in cut_off.folder.glob("*.damaged-1")}
    assert kept == {f"{first.name}.damaged-1", f"{second.name}.damaged-1"}
    assert cut_off.is_complete
    assert first.read_bytes() == expected[f"{RUNS[0].run_id}/{first.name}"]


def test_segments_after_a_missing_one_are_kept_aside(cut_off: RunFolder) -> None:
    cut_off.segments[0].unlink()
    said: list[str] = []
    play(cut_off.folder.parent, RUNS[:1], say=said.append)
    assert (cut_off.folder / "segment-001.damaged-1").is_file()
    assert "follows one that is missing" in said[0]


def test_a_segment_of_another_run_is_refused(cut_off: RunFolder, expected: dict[str, bytes]) -> None:
    foreign = expected[f"{RUNS[1].run_id}/segment-001"]
    cut_off.segments[1].write_bytes(foreign)
    with pytest.raises(DamagedError, match="another run") as error:
        play(cut_off.folder.parent, RUNS[:1])
    assert error.value.exit_code == 4
    assert cut_off.segments[1].read_bytes() == foreign


def test_a_segment_in_anothers_place_is_refused(cut_off: RunFolder) -> None:
    cut_off.segments[2].write_bytes(cut_off.segments[1].read_bytes())
    with pytest.raises(DamagedError, match="another place"):
        play(cut_off.folder.parent, RUNS[:1])


def test_segments_without_a_specification_are_refused(cut_off: RunFolder) -> None:
    (cut_off.folder / "specification.json").unlink()
    with pytest.raises(DamagedError, match="no specification"):
        play(cut_off.folder.parent, RUNS[:1])


def foreign(segment: Any, end: int) -> None:
    segment["checkpoints"] = sparsely(RUNS[1], end, None)["checkpoints"]


def exchanged(segment: Any, end: int) -> None:
    segment["checkpoints"][0]["parameters"][0] += 1e-12


def infinite(segment: Any, end: int) -> None:
    segment["episodes"][0]["calls"] = float("inf")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (foreign, "checkpoint belongs to another run"),
        (exchanged, "state is not the one that it names"),
        (infinite, "no JSON form"),
    ],
)
def test_what_is_no_segment_of_the_run_is_not_written(tmp_path: Path, change: Any, said: str) -> None:
    def changed(run: Specification, end: int, before: Any) -> Any:
        segment = sparsely(run, end, before)
        change(segment, end)
        return segment

    with pytest.raises(DamagedError, match=said) as error:
        play(tmp_path, RUNS[:1], play=changed)
    assert "c2-paired-s0, segment to step 0" in str(error.value)
    assert not list(tmp_path.glob("*/segment-*"))


def test_a_complete_run_is_kept(tmp_path: Path) -> None:
    play(tmp_path)
    before = snapshot(tmp_path)
    assert play(tmp_path, play=no_play) == PlayedRuns(tuple(run.run_id for run in RUNS), ())
    assert snapshot(tmp_path) == before


def no_play(run: Specification, end: int, before: Any) -> Any:
    raise AssertionError(run, end, before)


@pytest.mark.parametrize("name", ["episodes.parquet", "segment-001", "summary.json", "specification.json"])
def test_a_changed_file_of_a_complete_run_is_named(tmp_path: Path, name: str) -> None:
    play(tmp_path, RUNS[:1])
    path = tmp_path / RUNS[0].run_id / name
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(DamagedError, match=name):
        play(tmp_path, RUNS[:1])


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"files": {}}'])
def test_a_damaged_complete_file_is_damage(tmp_path: Path, content: bytes) -> None:
    play(tmp_path, RUNS[:1])
    (tmp_path / RUNS[0].run_id / "COMPLETE.json").write_bytes(content)
    with pytest.raises(DamagedError, match=r"COMPLETE\.json"):
        play(tmp_path, RUNS[:1])


def test_a_run_whose_complete_file_was_removed_is_completed_from_its_segments(
    tmp_path: Path, expected: dict[str, bytes]
) -> None:
    play(tmp_path)
    (tmp_path / RUNS[0].run_id / "COMPLETE.json").unlink()
    play(tmp_path, play=no_play)
    assert lasting(tmp_path) == expected


@pytest.mark.parametrize("moment", range(0, 24, 3))
def test_a_full_disk_loses_nothing_and_leaves_nothing_half_written(
    tmp_path: Path, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    calls = iter(range(1_000))
    whole = os.fsync

    def full(descriptor: int) -> None:
        if next(calls) >= moment:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        whole(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(IncompleteError, match="cannot be written") as error:
        play(tmp_path, RUNS[:1])
    assert "make room on the disk" in str(error.value)
    assert not list(tmp_path.rglob("*.part"))
    monkeypatch.undo()
    play(tmp_path, RUNS[:1])
    assert lasting(tmp_path) == of_first(expected)


def test_a_file_that_grew_too_large_for_the_system_is_told(tmp_path: Path) -> None:
    script = (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        "from tests.unit.study.play_in_a_folder import main\n"
        "from toolkit.errors import IncompleteError\n"
        f"try:\n    main({str(tmp_path)!r}, '1', '1')\n"
        "except IncompleteError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    assert "segment-000 cannot be written" in done.stdout
    assert not list(tmp_path.glob("*/*segment*"))


def test_what_a_killed_runner_had_begun_to_write_is_cleared_away(cut_off: RunFolder) -> None:
    left = cut_off.folder / ".segment-002.99.part"
    left.write_bytes(b"begun")
    play(cut_off.folder.parent, RUNS[:1])
    assert not left.exists()


@pytest.mark.parametrize("processes", [1, 2])
def test_a_defect_of_the_play_is_told_with_its_run(tmp_path: Path, processes: int) -> None:
    with pytest.raises(DamagedError, match="c2-paired-s1 could not be played") as error:
        play(tmp_path, play=fake_play.with_a_defect, places=processes)
    assert "ZeroDivisionError: no rollout" in str(error.value)
    assert "segment to step 2" in str(error.value)
    assert "fake_play.py, line" in str(error.value)


def test_a_process_that_was_killed_is_told(tmp_path: Path) -> None:
    with pytest.raises(IncompleteError, match="a process ended") as error:
        play(tmp_path, RUNS[:2], play=fake_play.dying, places=2)
    assert "exit code 9" in str(error.value)


def test_progress_counts_every_segment_once(tmp_path: Path) -> None:
    ticks: list[tuple[int, int, str]] = []
    play(tmp_path, watch=lambda *tick: ticks.append(tick))
    done = [tick[0] for tick in ticks]
    assert {tick[1] for tick in ticks} == {9}
    assert done == sorted(done)
    assert set(done) == set(range(10))


def test_progress_counts_what_was_there_and_the_run_with_most_left_is_begun_first(cut_off: RunFolder) -> None:
    ticks: list[tuple[int, int, str]] = []
    play(cut_off.folder.parent, watch=lambda *tick: ticks.append(tick))
    assert (ticks[0][0], ticks[-1][0]) == (2, 9)
    assert (ticks[1][2], ticks[-1][2]) == (RUNS[1].run_id, RUNS[0].run_id)


def test_a_run_of_a_few_evaluations_alone_says_what_it_lacks(tmp_path: Path) -> None:
    play(tmp_path, RUNS[:1])
    summary = json.loads((tmp_path / RUNS[0].run_id / "summary.json").read_text())
    assert summary["runs"][0]["status"] == "INCOMPLETE"
    assert "the periodic validation clean step 0 evaluation has 0 episodes" in summary["shortcomings"][0]


def test_an_error_of_the_toolkit_crosses_from_process_to_process() -> None:
    import pickle

    error = DamagedError("broken", expected=1, found=2, where="here", remedy="mend it")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301 - our own
