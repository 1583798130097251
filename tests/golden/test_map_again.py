"""Runs of the map, killed and begun again: they leave the rows that are shipped."""

import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.conftest import CHECKOUT
from tests.unit.lab.study.test_runner import wait_for

RUNS = ("faults-b1-independent-s1", "faults-resampled-paired-s3", "flips-b2-paired-s2")
KEYS = {
    "episodes": ("run_id", "step", "task", "schedule"),
    "evaluations": ("run_id", "step"),
    "runs": ("run_id",),
}
OF_THE_MACHINE = {
    "attempts",
    "launched_at",
    "code_commit",
    "wall_time_s",
    "peak_memory_gb",
    "register_commit",
}


def rows(registers: Path, table: str) -> pl.DataFrame:
    """Return the rows of the runs, without what a launch and its machine decide."""
    found = pl.scan_parquet(registers / "map" / table / "*.parquet").filter(pl.col("run_id").is_in(RUNS))
    return found.drop(OF_THE_MACHINE, strict=False).sort(KEYS[table]).collect()


@pytest.mark.slow
def test_runs_that_were_killed_twice_leave_the_shipped_rows(tmp_path: Path) -> None:
    folder, into = tmp_path / "played", tmp_path / "registers"
    named = [word for run in RUNS for word in ("--run", run)]
    places = ["--folder", folder, "--into", into, "--processes", "1", "--keep-complete"]
    command = [sys.executable, "-m", "toolkit", "study", "run", "map", *named, *places]
    for segments in (2, 9):
        with subprocess.Popen(command, cwd=CHECKOUT, stderr=subprocess.DEVNULL, text=True) as killed:
            wait_for(killed, folder, "segment-*", segments)
            killed.kill()
        assert killed.returncode == -signal.SIGKILL
        assert not into.exists()
    subprocess.run(command, cwd=CHECKOUT, check=True, stderr=subprocess.DEVNULL)
    for table in KEYS:
        shipped = rows(CHECKOUT / "registers", table)
        assert set(shipped["run_id"]) == set(RUNS)
        assert_frame_equal(rows(into, table), shipped)
    launches = pl.read_parquet(into / "map/launches/*.parquet")
    assert launches["attempt"].max() == 2
    assert launches.filter(pl.col("ended_at").is_null())["run_id"].n_unique() == 2
