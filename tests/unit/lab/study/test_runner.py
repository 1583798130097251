"""Playing runs: the same bytes whatever happens on the way, and every bad state named."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT, snapshot
from tests.unit.lab.study.fake_play import sparsely, specification
from toolkit.errors import DamagedError, IncompleteError, UsageError
from toolkit.lab.executors.executor import Executor
from toolkit.lab.play.runner import play_runs
from toolkit.lab.play.workplace import PlayedRuns, RunFolder, Workplace
from toolkit.specification import Specification

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

    def stop(done: int, *_: object) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play(tmp_path, RUNS[:1], watch=stop)
    return Workplace(tmp_path).run(RUNS[0])


def of_first(content: dict[str, bytes]) -> dict[str, bytes]:
    return {name: raw for name, raw in content.items() if name.startswith(f"{RUNS[0].run_id}/")}


def test_a_run_that_was_cut_off_goes_on_from_its_newest_checkpoint_to_the_same_bytes(
    cut_off: RunFolder, expected: dict[str, bytes]
) -> None:
    begun: list[tuple[int, object]] = []

    def watched(run: Specification, end: int, before: Any) -> Any:
        begun.append((end, before and before["step"]))
        return sparsely(run, end, before)

    play(cut_off.folder.parent, RUNS[:1], play=watched)
    assert begun == [(4, 2)]
    assert lasting(cut_off.folder.parent) == of_first(expected)
    first, second = cut_off.launches()
    assert (first.attempt, first.from_step, first.ended_at) == (1, 0, None)
    assert (second.attempt, second.from_step) == (2, 2)
    assert None not in (second.ended_at, second.peak_memory_mb)


def runner(folder: Path, runs: int, **options: Any) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.unit.lab.study.play_in_a_folder", folder, str(runs), "2"]
    return subprocess.Popen(command, cwd=CHECKOUT, stderr=subprocess.PIPE, text=True, **options)


def wait_for(process: "subprocess.Popen[str]", folder: Path, pattern: str, more_than: int = 0) -> None:
    while len(list(folder.glob(f"*/{pattern}"))) <= more_than and process.poll() is None:
        time.sleep(0.002)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_a_runner_that_is_killed_or_interrupted_leaves_no_process_and_loses_nothing(tmp_path, end) -> None:
    with runner(
        tmp_path,
        60,  # so many that a starved test still finds the runner at work
        start_new_session=True,
        # Tests that a shell runs in the background ignore interrupts, and so would what they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as ended:
        wait_for(ended, tmp_path, "segment-000")
        if end == signal.SIGINT:  # reaches its processes, too
            os.killpg(ended.pid, end)
        else:
            ended.send_signal(end)
        # Its processes share the pipe, which ends when the last of them does.
        _, told = ended.communicate(timeout=10)
    # One traceback: that of the runner, which a command turns into a word. Its processes say nothing.
    assert told.count("KeyboardInterrupt") == (end == signal.SIGINT)
    play(tmp_path)


@pytest.mark.parametrize(
    ("change", "expected"),
    [({"learning_rate": "0.1"}, "learning_rate 0.0035"), ({"pools": {"train": "b" * 64}}, "pools")],
)
def test_another_specification_is_refused(cut_off: RunFolder, change: Any, expected: str) -> None:
    before = snapshot(cut_off.folder)
    with pytest.raises(UsageError, match="another specification") as error:
        play(cut_off.folder.parent, (specification(RUNS[0].run_id, **change),))
    assert expected in str(error.value)
    assert snapshot(cut_off.folder) == before


def test_another_version_of_the_package_is_refused(cut_off, monkeypatch) -> None:
    monkeypatch.setattr("toolkit.__version__", "9.9.9")
    with pytest.raises(UsageError, match="another version"):
        play(cut_off.folder.parent, RUNS[:1])


@pytest.mark.parametrize("keep", [0, 400, -1])
def test_a_truncated_newest_segment_is_kept_aside_and_played_again(cut_off, expected, keep) -> None:
    newest = cut_off.segments[1]
    broken = newest.read_bytes()[:keep]
    newest.write_bytes(broken)
    messages: list[str] = []
    play(cut_off.folder.parent, RUNS[:1], say=messages.append)
    aside = cut_off.folder / "segment-001.damaged-1"
    assert aside.read_bytes() == broken
    aside.unlink()
    assert lasting(cut_off.folder.parent) == of_first(expected)
    assert "segment-001 was cut short or changed" in messages[0]


def test_what_follows_a_broken_or_missing_segment_is_kept_aside_too(cut_off, expected) -> None:
    first, second = cut_off.segments[:2]
    first.write_bytes(first.read_bytes().replace(b"c2-paired", b"c3-paired"))
    play(cut_off.folder.parent, RUNS[:1])
    kept = {path.name for path in cut_off.folder.glob("*.damaged-1")}
    assert kept == {f"{first.name}.damaged-1", f"{second.name}.damaged-1"}
    assert first.read_bytes() == expected[f"{RUNS[0].run_id}/{first.name}"]
    (cut_off.folder / "COMPLETE.json").unlink()
    first.unlink()
    messages: list[str] = []
    play(cut_off.folder.parent, RUNS[:1], say=messages.append)
    assert (cut_off.folder / f"{second.name}.damaged-2").is_file()
    assert "follows one that is missing" in messages[0]


@pytest.mark.parametrize(
    ("number", "foreign", "said"), [(1, RUNS[1].run_id, "another run"), (2, RUNS[0].run_id, "another place")]
)
def test_a_segment_of_another_run_or_place_is_refused(cut_off, expected, number, foreign, said) -> None:
    cut_off.segments[number].write_bytes(expected[f"{foreign}/segment-001"])
    before = snapshot(cut_off.folder)
    with pytest.raises(DamagedError, match=said) as error:
        play(cut_off.folder.parent, RUNS[:1])
    assert error.value.exit_code == 4
    assert snapshot(cut_off.folder) == before


def test_segments_without_a_specification_are_refused(cut_off: RunFolder) -> None:
    (cut_off.folder / "specification.json").unlink()
    with pytest.raises(DamagedError, match="no specification"):
        play(cut_off.folder.parent, RUNS[:1])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda rows: rows["checkpoints"][0].update(run_id="c9"), "checkpoint belongs to another run"),
        (lambda rows: rows["checkpoints"][0].update(step=9), "checkpoint belongs to another run"),
        (lambda rows: rows["checkpoints"][0]["parameters"].reverse(), "state is not the one that it names"),
        (lambda rows: rows["episodes"][0].update(calls=float("inf")), "no JSON form"),
    ],
)
def test_what_is_no_segment_of_the_run_is_not_written(tmp_path: Path, change: Any, said: str) -> None:
    def changed(run: Specification, end: int, before: Any) -> Any:
        segment = sparsely(run, end, before)
        change(segment)
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


CHANGED = [(name, None) for name in ("episodes.parquet", "segment-001", "summary.json", "specification.json")]
DAMAGED = [("COMPLETE.json", content) for content in (b"", b"{", b"[]", b"{}", b'{"files": {}}')]


@pytest.mark.parametrize(("name", "content"), [*CHANGED, *DAMAGED])
def test_a_changed_file_of_a_complete_run_is_named(tmp_path: Path, name: str, content: bytes | None) -> None:
    play(tmp_path, RUNS[:1])
    path = tmp_path / RUNS[0].run_id / name
    path.write_bytes(path.read_bytes() + b" " if content is None else content)
    with pytest.raises(DamagedError, match=name.replace(".", r"\.")):
        play(tmp_path, RUNS[:1])


def test_a_run_whose_complete_file_was_removed_is_completed_from_its_segments(tmp_path, expected) -> None:
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


def test_what_a_killed_runner_had_begun_to_write_is_cleared_away(cut_off: RunFolder) -> None:
    left = cut_off.folder / ".segment-002.99.part"
    left.write_bytes(b"begun")
    play(cut_off.folder.parent, RUNS[:1])
    assert not left.exists()


def test_progress_counts_what_was_there_and_the_run_with_most_left_is_begun_first(cut_off: RunFolder) -> None:
    ticks: list[tuple[int, int, str]] = []
    play(cut_off.folder.parent, watch=lambda *tick: ticks.append(tick))
    done = [tick[0] for tick in ticks]
    assert done == sorted(done)
    assert (set(done), {tick[1] for tick in ticks}) == (set(range(2, 10)), {9})
    assert (ticks[1][2], ticks[-1][2]) == (RUNS[1].run_id, RUNS[0].run_id)
