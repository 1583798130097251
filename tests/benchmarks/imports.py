"""A million episodes: what an import takes from the log to decided registers, beside copying the rows.

Every figure is of a process of its own; they take turns.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.timing import verdict
from toolkit.places import HOME_VARIABLE

ARMS, SEEDS, TASKS, TRIALS, ROUNDS = 2, 5, 1000, 100, 5
GOAL_SECONDS, GOAL_MEGABYTES = 3, 400
COPY = "import polars, sys; polars.read_parquet(sys.argv[1]).write_parquet(sys.argv[2], compression='zstd')"
TOOLKIT = [sys.executable, "-m", "toolkit"]


def make_log(path: Path) -> int:
    """Write a log with a row an episode and return how many there are."""
    import numpy as np
    import polars as pl

    rng, each = np.random.default_rng(0), SEEDS * TASKS * TRIALS
    rows = ARMS * each
    table = pl.DataFrame(
        {
            "strategy": np.repeat(np.array(["thinking", "direct"]), each),
            "seed": np.tile(np.repeat(np.arange(SEEDS), TASKS * TRIALS), ARMS),
            "task": np.tile(np.repeat(np.arange(TASKS), TRIALS), ARMS * SEEDS),
            "trial": np.tile(np.arange(TRIALS), rows // TRIALS),
            "success": rng.random(rows) < 0.6,
            "started_at": ["2999-01-01T00:00:00Z"] * rows,
        }
    )
    table.write_parquet(path)
    table.write_csv(path.with_suffix(".csv"))
    return rows


def begin(home: Path, log: Path) -> None:
    """Begin a study of a log, and freeze it."""
    subprocess.run([*TOOLKIT, "new-study", "big", "--table", log, "--into", home], check=True, stdout=-3)
    for path in [*home.glob("prereg/big/*"), *home.glob("cards/*")]:
        path.write_text(path.read_text(encoding="utf-8").replace("FILL IN", "said"), encoding="utf-8")
    subprocess.run([*TOOLKIT, "freeze", "big", "--demonstration"], check=True, stdout=-3, stderr=-3)


def measured(command: list[str]) -> tuple[float, float, float]:
    """Run a command and return its seconds, its processor's, and its peak memory in MB."""
    started = time.perf_counter()
    silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    process = os.posix_spawn(command[0], command, os.environ, file_actions=silent)
    _, status, used = os.wait4(process, 0)
    if os.waitstatus_to_exitcode(status):
        sys.exit(f"{command} failed")
    return time.perf_counter() - started, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    """Measure and print a line a way."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        os.environ[HOME_VARIABLE] = folder
        log = home / "log.parquet"
        rows = make_log(log)
        begin(home, log)
        ways = {
            "read and write by polars": [sys.executable, "-c", COPY, str(log), f"{folder}/copy.parquet"],
            "import, Parquet": [*TOOLKIT, "registers", "import", "big", str(log)],
            "import, CSV": [*TOOLKIT, "registers", "import", "big", str(log.with_suffix(".csv"))],
        }
        found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ways}
        for number in range(ROUNDS + 1):
            for name, command in ways.items():
                taken = measured(command)
                if number:
                    found[name].append(taken)
    print(f"\nimport of {rows:,} episodes, medians of {ROUNDS} rounds")
    base = statistics.median(wall for wall, _, _ in found["read and write by polars"])
    for name, rounds in found.items():
        wall, cpu, memory = (statistics.median(values) for values in zip(*rounds, strict=True))
        is_met = wall <= GOAL_SECONDS and memory <= GOAL_MEGABYTES
        goal = verdict(is_met, f"{GOAL_SECONDS} s, {GOAL_MEGABYTES} MB") if "import" in name else ""
        print(f"{name:26} {wall:8.2f} s {cpu:8.2f} s cpu {memory:6.0f} MB  {wall / base:6.1f} times  {goal}")


if __name__ == "__main__":
    main()
