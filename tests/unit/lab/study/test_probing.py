"""Trajectories probed side by side, stopped, killed, damaged, and probed again."""

import shutil
from pathlib import Path

import pytest

from tests.conftest import snapshot
from tests.unit.lab.probe.small import DESIGN
from tests.unit.lab.study import fake_play
from toolkit.errors import DamagedError, IncompleteError, UsageError, VerificationError
from toolkit.lab.executors.executor import Executor
from toolkit.lab.play.assemble import Assembly
from toolkit.lab.policies.loglinear import untrained
from toolkit.lab.probing.run import ProbeJob, probe_all, probe_jobs
from toolkit.lab.task_pools import summarize
from toolkit.lab.training.checkpoint import Weights, checkpoint_row
from toolkit.registers.arrow import Row, to_arrow
from toolkit.registers.row_tables import TABLES_OF_PROBE
from toolkit.registers.schema import TABLES
from toolkit.registers.validation import check_table
from toolkit.specification import Specification
from toolkit.structs import replace

STEPS = (0, 20, 40)
RUNS = ("x-paired-s0", "x-paired-s1")


def specification(run_id: str) -> Specification:
    pools = {name: summarize(name).sha256 for name in ("diagnostic", "validation")}
    return fake_play.specification(run_id, steps=40, checkpoint_every=20, pools=pools)


def checkpoints(run_id: str) -> list[Row]:
    """Return checkpoints that differ a little from step to step, and run to run."""
    start = untrained(16)
    zeros = (0.0,) * len(start)
    drift = (1 + RUNS.index(run_id)) * 1e-3
    return [
        checkpoint_row(run_id, Weights(step, tuple(x + drift * step for x in start), zeros, zeros))
        for step in STEPS
    ]


def jobs_of(rows: dict[str, list[Row]], steps: tuple[int, ...] = ()) -> tuple[ProbeJob, ...]:
    return probe_jobs(DESIGN, [specification(run) for run in RUNS], rows, steps)


@pytest.fixture(scope="module")
def rows() -> dict[str, list[Row]]:
    return {run: checkpoints(run) for run in RUNS}


@pytest.fixture(scope="module")
def jobs(rows: dict[str, list[Row]]) -> tuple[ProbeJob, ...]:
    return jobs_of(rows)


@pytest.fixture(scope="module")
def folder(jobs: tuple[ProbeJob, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which all were probed, in one process and in one go."""
    place = tmp_path_factory.mktemp("probe")
    probe_all(place, jobs)
    return place


def test_the_untrained_policy_is_probed_once_and_each_run_at_the_steps_that_are_asked_for(jobs, rows) -> None:
    assert [(job.trajectory, [row["step"] for row in job.checkpoints]) for job in jobs] == [
        ("base", [0]),
        *((run, [20, 40]) for run in RUNS),
    ]
    assert [[row["step"] for row in job.checkpoints] for job in jobs_of(rows, (40,))] == [[0], [40], [40]]


def test_what_was_probed_is_kept(jobs: tuple[ProbeJob, ...], folder: Path) -> None:
    told: list[int] = []
    again = probe_all(folder, jobs, Executor(places=1, watch=lambda done, *_: told.append(done)))
    assert again.kept == tuple(job.trajectory for job in jobs)
    assert told == [1 + 2 + 2]


@pytest.mark.parametrize(
    ("suffix", "damage"),
    [
        ("parquet", lambda path: path.write_bytes(path.read_bytes()[:-10])),
        ("parquet", Path.unlink),
        ("json", lambda path: path.write_bytes(path.read_bytes().replace(b"0.", b"1.", 1))),
        ("json", lambda path: path.write_bytes(b"nothing")),
    ],
)
def test_a_damaged_trajectory_is_probed_again(suffix, damage, jobs, folder, tmp_path) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    damage(tmp_path / f"{RUNS[0]}.{suffix}")
    assert RUNS[0] not in probe_all(tmp_path, jobs).kept
    assert snapshot(tmp_path) == snapshot(folder)


def test_another_design_measures_again(jobs: tuple[ProbeJob, ...], folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    others = [replace(job, design=replace(DESIGN, root="another")) for job in jobs[:1]]
    assert not probe_all(tmp_path, others).kept
    assert (tmp_path / "base.parquet").read_bytes() != (folder / "base.parquet").read_bytes()


def test_its_tables_obey_the_schema(jobs: tuple[ProbeJob, ...], folder: Path) -> None:
    probe = probe_all(folder, jobs)
    assembly = probe.added_to(Assembly({}, {}))
    assert set(assembly.files) == set(TABLES_OF_PROBE)
    for name, rows in probe.rows.items():
        check_table(TABLES[name], to_arrow(TABLES[name], rows))
    places = len(jobs) * 2 - 1
    rows = {name: table.num_rows for name, table in probe.tables().items()}
    assert rows["probe_checkpoints"] == places * 2
    assert rows["probe_gram"] == places * 2 * (DESIGN.outcome.tasks + DESIGN.transition.tasks)
    assert probe.largest_residual < 1e-12


def test_a_run_without_a_checkpoint_is_incomplete(rows: dict[str, list[Row]]) -> None:
    with pytest.raises(IncompleteError, match="registered checkpoints") as error:
        jobs_of(rows | {RUNS[0]: rows[RUNS[0]][:-1]})
    assert error.value.found == "0, 20"


def test_runs_that_began_from_different_policies_are_refused(rows: dict[str, list[Row]]) -> None:
    first, *others = rows[RUNS[1]]
    with pytest.raises(DamagedError, match="began from another policy"):
        jobs_of(rows | {RUNS[1]: [{**first, "sha256": "0" * 64}, *others]})


ZEROS = (0.0,) * len(untrained(16))
DIVERGED = checkpoint_row("x", Weights(0, (float("nan"), *untrained(16)[1:]), ZEROS, ZEROS))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"pools": (("diagnostic", "0" * 64),)}, "pool diagnostic is not the one"),
        ({"checkpoints": ({**DIVERGED, "parameters": list(untrained(16))},)}, "not those that were written"),
        ({"checkpoints": (DIVERGED,)}, r"could not be played[^$]*nan"),
    ],
    ids=["tasks that the runs did not meet", "a changed checkpoint", "parameters that diverged"],
)
def test_what_was_not_played_like_this_is_refused(jobs, tmp_path, change, said) -> None:
    with pytest.raises((DamagedError, VerificationError), match=said):
        probe_all(tmp_path, [replace(jobs[0], **change)])
    assert not list(tmp_path.glob("*.json"))


def test_one_command_at_a_time_works_in_a_folder(jobs: tuple[ProbeJob, ...], tmp_path: Path) -> None:
    def second(*_: object) -> None:
        with pytest.raises(UsageError, match="another command is at work"):
            probe_all(tmp_path, jobs)

    probe_all(tmp_path, jobs[:1], Executor(places=1, watch=second))
