"""Checking, hashing, storing and reading the rows of a study: as many as a study of 45 runs has."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from tests import row_study
from tests.benchmarks.timing import medians, verdict
from toolkit.registers.arrow import parquet_bytes, row_sha256
from toolkit.registers.schema import TABLES
from toolkit.registers.study import open_study, verify_study
from toolkit.registers.validation import check_parents, check_table

RUNS = 45
ROUNDS = 5


def measure(what: str, work: Callable[[], object], goal: float | None = None) -> None:
    """Print the median wall time of some rounds, after one that is not counted."""
    wall = medians({what: work}, ROUNDS)[what]
    print(f"{what:44} {wall:8.3f} s  {'' if goal is None else verdict(wall < goal, f'under {goal} s')}")


def main() -> None:
    """Measure and print one line a task."""
    ids = row_study.run_ids(RUNS)
    runs = row_study.runs(ids)
    parts = {
        "runs": [runs],
        "episodes": [row_study.episodes(run_id, seed) for seed, run_id in enumerate(ids)],
        "groups": [row_study.groups(run_id, seed) for seed, run_id in enumerate(ids)],
    }
    goals = {"episodes": 1.0, "groups": 0.5}
    for name, goal in goals.items():
        whole = pa.concat_tables(parts[name])
        table = TABLES[name].narrowed(whole.column_names)

        def check(table: object = table, whole: pa.Table = whole) -> None:
            check_table(table, whole)
            check_parents(table, whole, {"runs": runs})

        measure(f"check {whole.num_rows} rows of {name}", check, goal)
        measure("hash them", lambda whole=whole: row_sha256(whole))
        content = parquet_bytes(name, parts[name][0])
        size = len(content) / parts[name][0].num_rows
        print(f"{f'a row of {name} in a file of one run':44} {size:8.2f} B")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        files = row_study.lay(folder, parts)
        measure(f"seal a study of {RUNS} runs", lambda: row_study.seal(folder, files))
        measure("verify it", lambda: verify_study(open_study(folder)))
        names = ("run_id", "step", "true_success")
        measure("read three columns of its episodes", lambda: open_study(folder).columns("episodes", names))


if __name__ == "__main__":
    main()
