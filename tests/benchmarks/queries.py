"""Fifty million episodes: what a query takes on an opened study, beside polars on the same files.

The rows are made up, in the schema's shape: a file a run, written as registers are written. Every figure is
of a process of its own that opens the study, hashes all files, and asks several times.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from tests.benchmarks.timing import verdict

RUNS, STEPS, TASKS, SCHEDULES, ROUNDS = 100, 25, 500, 8, 7
PERIODIC = ("clean", "faults_p010", "faults_p025", "held_out_types", "challenge")
PROCESSES = 2
GOAL_SECONDS, GOAL_MEGABYTES = 0.5, 2048

BY_STEP = "SELECT run_id, step, regime, avg(true_success::TINYINT) AS rate FROM episodes GROUP BY ALL"
ONE = (
    "SELECT step, avg(true_success::TINYINT) AS rate FROM episodes "
    "WHERE run_id = 'c2-paired-s042' AND regime = 'challenge' GROUP BY ALL"
)


def make_run(folder: Path, run_id: str, seed: int) -> tuple[str, int, int]:
    """Write the file of a run and return its name, its size and its rows."""
    import numpy as np

    from tests.row_study import CAUSES, SHARES, _table
    from toolkit.registers.arrow import parquet_bytes

    rng, each = np.random.default_rng(seed), TASKS * SCHEDULES
    n = len(PERIODIC) * STEPS * each
    step = np.tile(np.repeat(np.arange(STEPS) * 20, each), len(PERIODIC))
    success, calls = rng.random(n) < 0.4 + step / 1000, 3 + rng.binomial(10, 0.6, n)
    faults = {name: rng.binomial(calls, share).astype(np.int16) for name, share in SHARES.items()}
    table = _table(
        "episodes",
        run_id=np.full(n, run_id),
        phase=np.full(n, "periodic"),
        pool=np.full(n, "validation"),
        regime=np.repeat(sorted(PERIODIC), STEPS * each),
        step=step.astype(np.int16),
        task=np.tile(np.repeat(np.arange(TASKS, dtype=np.int16), SCHEDULES), len(PERIODIC) * STEPS),
        schedule=np.tile(np.arange(SCHEDULES, dtype=np.int16), n // SCHEDULES),
        schedule_seed=np.tile(np.random.default_rng(0).integers(0, 2**64, each, np.uint64), n // each),
        true_success=success,
        observed_reward=success,
        calls=calls.astype(np.int16),
        ended=np.where(rng.random(n) < 0.95, "finished", "budget_exceeded"),
        world_changed=success | (rng.random(n) < 0.5),
        **faults,
        **{f"{code}_due": faults[cause] for code, cause in CAUSES.items()},
        **{
            f"{code}_made": rng.binomial(faults[cause], 0.6).astype(np.int16)
            for code, cause in CAUSES.items()
        },
    )
    name, content = f"episodes/{run_id}.parquet", parquet_bytes("episodes", table)
    (folder / name).write_bytes(content)
    return name, len(content), n


def make_study(folder: Path) -> int:
    """Write a study and return its bytes. Its row hashes are not computed: no query looks at them."""
    import hashlib

    from tests import row_study
    from toolkit.registers.manifest import FileEntry, Manifest, TableEntry, write_manifest
    from toolkit.registers.schema import SCHEMA_VERSION, TABLES

    ids = row_study.run_ids(RUNS)
    row_study.lay(folder, {"runs": [row_study.runs(ids)]})
    (folder / "episodes").mkdir()
    with ProcessPoolExecutor(PROCESSES) as pool:
        made = list(pool.map(make_run, [folder] * RUNS, ids, range(RUNS)))
    rows = {name: n for name, _, n in made} | {f"runs/{ids[0]}.parquet": RUNS}
    files = {}
    for name, n in rows.items():
        content = (folder / name).read_bytes()
        files[name] = FileEntry(hashlib.sha256(content).hexdigest(), len(content), n)
    tables = {
        table: TableEntry(
            sum(n for name, n in rows.items() if name.startswith(table)),
            "0" * 64,
            TABLES[table].column_names,
            tuple(sorted(name for name in rows if name.startswith(table))),
        )
        for table in ("runs", "episodes")
    }
    write_manifest(folder, Manifest("rows", "rows", SCHEMA_VERSION, "0", row_study.REF, {}, tables, files))
    return sum(size for _, size, _ in made)


def measured(folder: Path, what: str) -> dict[str, Any]:
    """Open the study, hash it, ask, and return seconds."""
    from toolkit.registers.query import asking
    from toolkit.registers.study import open_study

    started = time.perf_counter()
    study = open_study(folder)
    with asking(study) as ask:
        opened = time.perf_counter() - started

        def polars_by_step() -> int:
            import polars as pl

            rates = (
                study.polars("episodes")
                .group_by("run_id", "step", "regime")
                .agg(pl.col("true_success").mean())
            )
            return rates.collect(engine="streaming").height

        def polars_one() -> int:
            import polars as pl

            rows = study.polars("episodes").filter(run_id="c2-paired-s042", regime="challenge")
            return rows.group_by("step").agg(pl.col("true_success").mean()).collect().height

        work = {
            "by step": lambda: ask(BY_STEP).total,
            "by step, polars": polars_by_step,
            "one run and regime": lambda: ask(ONE).total,
            "one run and regime, polars": polars_one,
        }[what]
        took = []
        for _ in range(ROUNDS + 1):
            started = time.perf_counter()
            groups = work()
            took.append(time.perf_counter() - started)
    return {"opened": opened, "first": took[0], "took": took[1:], "groups": groups}


def in_process(folder: Path, what: str) -> tuple[dict[str, Any], float]:
    """Measure in a fresh process; return what it found and its peak memory in MB."""
    command = [sys.executable, "-m", "tests.benchmarks.queries", str(folder), what]
    with tempfile.TemporaryFile() as out:
        process = os.posix_spawn(
            command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, out.fileno(), 1)]
        )
        _, status, used = os.wait4(process, 0)
        if os.waitstatus_to_exitcode(status):
            sys.exit(f"{what} failed")
        out.seek(0)
        return json.loads(out.read()), used.ru_maxrss / 1024


def compare() -> None:
    """Make the rows, ask in both ways, and print a line a way."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        started = time.perf_counter()
        # In a process of its own: a child process is charged with the memory that its parent held.
        made = subprocess.run(
            [sys.executable, "-m", "tests.benchmarks.queries", scratch, "make"],
            check=True,
            capture_output=True,
        )
        size, rows = int(made.stdout), RUNS * len(PERIODIC) * STEPS * TASKS * SCHEDULES
        print(
            f"{rows:,} made-up episodes of {RUNS} runs, a file a run, {size / 2**20:,.0f} MB "
            f"({size / rows:.2f} B a row), made in {time.perf_counter() - started:.0f} s"
        )
        print(f"  {'':28} {'groups':>7} {'min s':>7} {'median s':>9} {'first s':>8} {'peak MB':>8}  goal")
        opened: list[float] = []
        medians: dict[str, float] = {}
        for what in ("by step", "by step, polars", "one run and regime", "one run and regime, polars"):
            found, peak = in_process(folder, what)
            opened.append(found["opened"])
            median = statistics.median(found["took"])
            medians[what] = median
            is_met = median < GOAL_SECONDS and peak < GOAL_MEGABYTES
            goal = verdict(is_met, f"{GOAL_SECONDS} s, {GOAL_MEGABYTES} MB") if what == "by step" else ""
            print(
                f"  {what:28} {found['groups']:7} {min(found['took']):7.3f} {median:9.3f} "
                f"{found['first']:8.3f} {peak:8.0f}  {goal}".rstrip()
            )
        for what in ("by step", "one run and regime"):
            print(f"  {what}: {medians[what] / medians[f'{what}, polars']:.2f} of polars' time")
        print(f"  opened, every file hashed, cache warm: {min(opened):.2f} to {max(opened):.2f} s")


if __name__ == "__main__":
    match sys.argv[1:]:
        case [place, "make"]:
            print(make_study(Path(place)))
        case [place, asked]:
            print(json.dumps(measured(Path(place), asked)))
        case _:
            compare()
