"""Trajectories probed side by side, stopped, killed, damaged, and probed again."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, snapshot
from tests.unit.probe.small import DESIGN
from toolkit.errors import DamagedError, IncompleteError, UsageError, VerificationError
from toolkit.policies.loglinear import untrained
from toolkit.registers.arrow import Row, to_arrow
from toolkit.registers.schema import TABLES
from toolkit.registers.validation import check_table
from toolkit.study.executors.executor import Executor
from toolkit.study.new.task_pools import summarize
from toolkit.study.play.assemble import Assembly
from toolkit.study.probing.probed import ProbeJob
from toolkit.study.probing.run import TABLES_OF_PROBE, probe_all, probe_jobs
from toolkit.training.adam import Weights
from toolkit.training.checkpoint import checkpoint_row
from toolkit.training.specification import Specification

STEPS = (0, 20, 40)
RUNS = ("x-paired-s0", "x-paired-s1")


def specification(run_id: str) -> Specification:
    return Specification(
        study="small",
        root="small",
        run_id=run_id,
        condition="X",
        arm="paired",
        seed=0,
        tier=1,
        role="primary",
        regime="faults_p025",
        at_noise="faults_p025",
        scale_rewards="group",
        steps=STEPS[-1],
        pools={name: summarize(name).sha256 for name in ("diagnostic", "validation")},
    )


def checkpoints(run_id: str) -> list[Row]:
    """Return checkpoints that differ a little from step to step, and run to run."""
    start = untrained(16)
    zeros = (0.0,) * len(start)
    drift = (1 + RUNS.index(run_id)) * 1e-3
    return [
        checkpoint_row(run_id, Weights(step, tuple(x + drift * step for x in start), zeros, zeros))
        for step in STEPS
    ]


@pytest.fixture(scope="module")
def jobs() -> tuple[ProbeJob, ...]:
    return probe_jobs(DESIGN, [specification(run) for run in RUNS], {run: checkpoints(run) for run in RUNS})


@pytest.fixture(scope="module")
def folder(jobs: tuple[ProbeJob, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which all were probed, in one process and in one go."""
    place = tmp_path_factory.mktemp("probe")
    probe_all(place, jobs)
    return place


def test_the_untrained_policy_is_probed_once(jobs: tuple[ProbeJob, ...]) -> None:
    assert [(job.trajectory, [row["step"] for row in job.checkpoints]) for job in jobs] == [
        ("base", [0]),
        *((run, [20, 40]) for run in RUNS),
    ]


def test_processes_change_no_byte(jobs: tuple[ProbeJob, ...], folder: Path, tmp_path: Path) -> None:
    probe_all(tmp_path, jobs, Executor(places=2))
    assert snapshot(tmp_path) == snapshot(folder)


def test_what_was_probed_is_kept(jobs: tuple[ProbeJob, ...], folder: Path) -> None:
    told: list[int] = []
    found = probe_all(folder, jobs, Executor(places=1, watch=lambda done, *_: told.append(done)))
    assert found.kept == tuple(job.trajectory for job in jobs)
    assert told == [1 + 2 + 2]


def test_a_stop_leaves_what_was_finished(jobs: tuple[ProbeJob, ...], folder: Path, tmp_path: Path) -> None:
    def stop(done: int, *_: object) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        probe_all(tmp_path, jobs, Executor(places=1, watch=stop))
    assert len(list(tmp_path.glob("*.json"))) == 1
    assert len(probe_all(tmp_path, jobs).kept) == 1
    assert snapshot(tmp_path) == snapshot(folder)


def test_a_kill_leaves_what_was_finished(jobs: tuple[ProbeJob, ...], folder: Path, tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from tests.unit.study import test_probing as t;"
        "t.probe_all(Path(sys.argv[1]), t.probe_jobs(t.DESIGN, [t.specification(r) for r in t.RUNS],"
        " {r: t.checkpoints(r) for r in t.RUNS}))"
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], cwd=CHECKOUT)
    while not list(tmp_path.glob("*.json")):
        assert process.poll() is None
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    finished = len(list(tmp_path.glob("*.json")))
    assert len(probe_all(tmp_path, jobs).kept) >= finished - 1
    assert {name: raw for name, raw in snapshot(tmp_path).items() if not name.startswith(".")} == snapshot(
        folder
    )


@pytest.mark.parametrize("damage", ["cut-evidence", "changed-figures", "missing-evidence", "no-json"])
def test_a_damaged_trajectory_is_probed_again(
    damage: str, jobs: tuple[ProbeJob, ...], folder: Path, tmp_path: Path
) -> None:
    for name, raw in snapshot(folder).items():
        (tmp_path / name).write_bytes(raw)
    evidence, figures = tmp_path / f"{RUNS[0]}.parquet", tmp_path / f"{RUNS[0]}.json"
    match damage:
        case "cut-evidence":
            evidence.write_bytes(evidence.read_bytes()[:-10])
        case "changed-figures":
            figures.write_bytes(figures.read_bytes().replace(b"0.", b"1.", 1))
        case "missing-evidence":
            evidence.unlink()
        case _:
            figures.write_bytes(b"nothing")
    assert RUNS[0] not in probe_all(tmp_path, jobs).kept
    assert snapshot(tmp_path) == snapshot(folder)


def test_another_design_measures_again(jobs: tuple[ProbeJob, ...], folder: Path, tmp_path: Path) -> None:
    for name, raw in snapshot(folder).items():
        (tmp_path / name).write_bytes(raw)
    others = [replace(job, design=replace(DESIGN, root="another")) for job in jobs[:1]]
    assert not probe_all(tmp_path, others).kept
    assert (tmp_path / "base.parquet").read_bytes() != (folder / "base.parquet").read_bytes()


def test_its_tables_obey_the_schema(jobs: tuple[ProbeJob, ...], folder: Path) -> None:
    found = probe_all(folder, jobs)
    assembly = found.added_to(Assembly({}, {}, {}, {}))
    assert set(assembly.tables) == set(TABLES_OF_PROBE)
    for name, rows in found.rows.items():
        check_table(TABLES[name], to_arrow(TABLES[name], rows))
    places = len(jobs) * 2 - 1
    assert assembly.rows["probe_checkpoints"] == places * 2
    assert assembly.rows["probe_gram"] == places * 2 * (DESIGN.outcome.tasks + DESIGN.transition.tasks)
    assert found.largest_residual < 1e-12


def test_a_run_without_a_checkpoint_is_incomplete() -> None:
    rows = checkpoints(RUNS[0])[:-1]
    with pytest.raises(IncompleteError, match="registered checkpoints") as error:
        probe_jobs(DESIGN, [specification(RUNS[0])], {RUNS[0]: rows})
    assert error.value.found == "0, 20"


def test_runs_that_began_from_different_policies_are_refused() -> None:
    rows = {run: checkpoints(run) for run in RUNS}
    rows[RUNS[1]][0] = {**rows[RUNS[1]][0], "sha256": "0" * 64}
    with pytest.raises(DamagedError, match="began from another policy"):
        probe_jobs(DESIGN, [specification(run) for run in RUNS], rows)


def test_tasks_that_the_runs_did_not_meet_are_refused(jobs: tuple[ProbeJob, ...], tmp_path: Path) -> None:
    job = replace(jobs[0], pools=(("diagnostic", "0" * 64),))
    with pytest.raises(VerificationError):
        probe_all(tmp_path, [job])


def test_a_changed_checkpoint_is_refused(jobs: tuple[ProbeJob, ...], tmp_path: Path) -> None:
    row = jobs[0].checkpoints[0]
    changed = {**row, "parameters": [row["parameters"][0] + 1e-12, *row["parameters"][1:]]}
    with pytest.raises(DamagedError, match="not those that were written"):
        probe_all(tmp_path, [replace(jobs[0], checkpoints=(changed,))])
    assert not list(tmp_path.glob("*.json"))


def test_a_policy_whose_parameters_diverged_is_refused(jobs: tuple[ProbeJob, ...], tmp_path: Path) -> None:
    start = untrained(16)
    diverged = Weights(0, (float("nan"), *start[1:]), (0.0,) * len(start), (0.0,) * len(start))
    with pytest.raises(DamagedError, match="could not be played") as error:
        probe_all(tmp_path, [replace(jobs[0], checkpoints=(checkpoint_row("x", diverged),))])
    assert "nan" in str(error.value.found)


def test_one_command_at_a_time_works_in_a_folder(jobs: tuple[ProbeJob, ...], tmp_path: Path) -> None:
    def second(*_: object) -> None:
        with pytest.raises(UsageError, match="another command is at work"):
            probe_all(tmp_path, jobs)

    probe_all(tmp_path, jobs[:1], Executor(places=1, watch=second))


def test_a_trajectory_s_file_says_what_it_was_made_from(jobs: tuple[ProbeJob, ...], folder: Path) -> None:
    document = json.loads((folder / "base.json").read_bytes().split(b"\n", 1)[1])
    assert document["design_sha256"] == DESIGN.sha256()
    assert document["checkpoints"] == [[0, jobs[0].checkpoints[0]["sha256"]]]
