"""Rows of registers: checked, hashed, stored and read; and queries over fifty million made-up episodes.

The first are as many as a study of 45 runs has. Queries stand beside polars on the same files, which are
written as registers are: a file a run. Every figure of a query is of a process of its own that opens the
study, hashes all files, and asks several times.
"""

import hashlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from tests import row_study
from tests.benchmarks.harness import PYTHON, medians, run, verdict
from toolkit.registers.arrow import parquet_bytes, row_sha256
from toolkit.registers.manifest import FileEntry, Manifest, TableEntry, write_manifest
from toolkit.registers.query import asking
from toolkit.registers.schema import SCHEMA_VERSION, TABLES
from toolkit.registers.study import open_study, verify_study
from toolkit.registers.validation import check_parents, check_table

RUNS, ROUNDS = 45, 5
GOALS = {"episodes": 1.0, "groups": 0.5}  # table → seconds in which its rows are checked
LARGE, STEPS, TASKS = 100, range(0, 500, 20), 4000
GOAL_SECONDS, GOAL_MEGABYTES = 0.5, 2048
BY_STEP = "SELECT run_id, step, phase, avg(true_success::TINYINT) AS rate FROM episodes GROUP BY ALL"
ONE = (
    "SELECT step, avg(true_success::TINYINT) AS rate FROM episodes "
    "WHERE run_id = 'c2-paired-s042' AND phase = 'periodic' GROUP BY ALL"
)


def measure(what: str, work: Callable[[], object], goal: float | None = None) -> None:
    """Print the median wall time."""
    wall = medians({what: work}, ROUNDS)[what]
    print(f"{what:44} {wall:8.3f} s  {'' if goal is None else verdict(wall < goal, f'under {goal} s')}")


def check(name: str, rows: pa.Table, runs: pa.Table) -> None:
    """Check the rows of a table, with those that they belong to."""
    table = TABLES[name].narrowed(rows.column_names)
    check_table(table, rows)
    check_parents(table, rows, {"runs": runs})


def compare_rows() -> None:
    """Measure what is done with rows."""
    ids = row_study.run_ids(RUNS)
    runs = row_study.runs(ids)
    parts = {
        "runs": [runs],
        "episodes": [row_study.episodes(run_id, seed) for seed, run_id in enumerate(ids)],
        "groups": [row_study.groups(run_id, seed) for seed, run_id in enumerate(ids)],
    }
    for name, goal in GOALS.items():
        whole, one = pa.concat_tables(parts[name]), parts[name][0]
        measure(f"check {whole.num_rows} rows of {name}", lambda n=name, w=whole: check(n, w, runs), goal)
        measure("hash them", lambda whole=whole: row_sha256(whole))
        size = len(parquet_bytes(name, one)) / one.num_rows
        print(f"{f'a row of {name} in a file of one run':44} {size:8.2f} B")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        files = row_study.lay(folder, parts)
        measure(f"seal a study of {RUNS} runs", lambda: row_study.seal(folder, files))
        measure("verify it", lambda: verify_study(open_study(folder)))
        names = ("run_id", "step", "true_success")
        measure("read three columns of its episodes", lambda: open_study(folder).columns("episodes", names))


def make_study(folder: Path) -> None:
    """Write a study of many rows. Their hashes are not computed: no query looks at them."""
    ids = row_study.run_ids(LARGE)
    rows = {row_study.lay(folder, {"runs": [row_study.runs(ids)]})["runs"][0]: LARGE}
    for seed, run_id in enumerate(ids):
        table = row_study.episodes(run_id, seed, STEPS, TASKS)
        rows[row_study.lay(folder, {"episodes": [table]})["episodes"][0]] = table.num_rows
    files = {}
    for name, count in rows.items():
        content = (folder / name).read_bytes()
        files[name] = FileEntry(hashlib.sha256(content).hexdigest(), len(content), count)
    tables = {}
    for name in ("runs", "episodes"):
        mine = tuple(sorted(file for file in rows if file.startswith(name)))
        count = sum(rows[file] for file in mine)
        tables[name] = TableEntry(count, "0" * 64, TABLES[name].column_names, mine)
    write_manifest(folder, Manifest("rows", "rows", SCHEMA_VERSION, "0", row_study.REF, {}, tables, files))


def query(folder: Path, what: str) -> None:
    """Open the study, hash it, ask, and print seconds."""
    import polars as pl

    started = time.perf_counter()
    study = open_study(folder)
    rate = pl.col("true_success").mean()
    with asking(study) as ask:
        opened = time.perf_counter() - started
        episodes = study.polars("episodes")
        of_one = episodes.filter(run_id="c2-paired-s042", phase="periodic")
        work = {
            "by step": lambda: ask(BY_STEP).total,
            "by step, polars": lambda: (
                episodes.group_by("run_id", "step", "phase").agg(rate).collect(engine="streaming").height
            ),
            "one run and phase": lambda: ask(ONE).total,
            "one run and phase, polars": lambda: of_one.group_by("step").agg(rate).collect().height,
        }[what]
        took = []
        for _ in range(ROUNDS + 1):
            started = time.perf_counter()
            groups = work()
            took.append(time.perf_counter() - started)
    print(json.dumps({"opened": opened, "first": took[0], "took": took[1:], "groups": groups}))


def compare_queries() -> None:
    """Make the rows, ask in both ways, and print a line a way."""
    with tempfile.TemporaryDirectory() as scratch:
        # In processes of their own: a child process is charged with the memory that its parent held.
        steps = (PYTHON, "-m", "tests.benchmarks.registers", scratch)
        made = run(*steps, "make")
        study = open_study(Path(scratch))
        rows = study.manifest.tables["episodes"].rows
        size = sum(entry.bytes for entry in study.manifest.files.values())
        print(f"{rows:,} made-up episodes, {size / 2**20:,.0f} MB, made in {made.wall:.0f} s")
        print(f"  {'':28} {'groups':>7} {'min s':>7} {'median s':>9} {'first s':>8} {'peak MB':>8}  goal")
        opened, median = [], {}
        for what in ("by step", "by step, polars", "one run and phase", "one run and phase, polars"):
            used = run(*steps, what)
            found = json.loads(used.printed)
            opened.append(found["opened"])
            median[what] = statistics.median(found["took"])
            is_met = median[what] < GOAL_SECONDS and used.memory < GOAL_MEGABYTES
            goal = verdict(is_met, f"{GOAL_SECONDS} s, {GOAL_MEGABYTES} MB") if what == "by step" else ""
            print(
                f"  {what:28} {found['groups']:7} {min(found['took']):7.3f} {median[what]:9.3f} "
                f"{found['first']:8.3f} {used.memory:8.0f}  {goal}".rstrip()
            )
        for what in ("by step", "one run and phase"):
            print(f"  {what}: {median[what] / median[f'{what}, polars']:.2f} of polars' time")
        print(f"  opened, every file hashed, cache warm: {min(opened):.2f} to {max(opened):.2f} s")


def compare() -> None:
    """Measure rows, then queries."""
    compare_rows()
    sys.stdout.flush()
    compare_queries()


if __name__ == "__main__":
    place, asked = sys.argv[1:]
    if asked == "make":
        make_study(Path(place))
    else:
        query(Path(place), asked)
