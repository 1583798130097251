"""A million episodes: what an import takes from the log to decided registers, beside copying the rows."""

import os
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from tests.benchmarks.harness import PYTHON, TOOLKIT, commands, run, verdict
from toolkit.places import HOME_VARIABLE

ARMS, SEEDS, TASKS, TRIALS, ROUNDS = 2, 5, 1000, 100, 5
GOAL_SECONDS, GOAL_MEGABYTES = 3, 400
COPY = "import polars, sys; polars.read_parquet(sys.argv[1]).write_parquet(sys.argv[2], compression='zstd')"


def make_log(path: Path) -> int:
    """Write a log with a row an episode and return how many there are."""
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
    run(*TOOLKIT, "new-study", "big", "--table", str(log), "--into", str(home))
    (home / "rehearsals/big.pilots.json").unlink()  # pilot and log are one here
    for path in [*home.glob("prereg/big/*"), *home.glob("cards/*")]:
        path.write_text(path.read_text(encoding="utf-8").replace("FILL IN", "said"), encoding="utf-8")
    run(*TOOLKIT, "freeze", "big", "--demonstration")


def compare() -> None:
    """Measure and print a line a way."""
    with tempfile.TemporaryDirectory() as folder:
        home, log = Path(folder), Path(folder, "log.parquet")
        os.environ[HOME_VARIABLE] = folder
        rows = make_log(log)
        begin(home, log)
        ways = {
            "read and write by polars": (PYTHON, "-c", COPY, str(log), f"{folder}/copy.parquet"),
            "import, Parquet": (*TOOLKIT, "registers", "import", "big", str(log)),
            "import, CSV": (*TOOLKIT, "registers", "import", "big", str(log.with_suffix(".csv"))),
        }
        found = commands(ways, ROUNDS)
    print(f"\nimport of {rows:,} episodes, medians of {ROUNDS} rounds")
    base = found["read and write by polars"].wall
    for name, (wall, cpu, memory, _) in found.items():
        is_met = wall <= GOAL_SECONDS and memory <= GOAL_MEGABYTES
        goal = verdict(is_met, f"{GOAL_SECONDS} s, {GOAL_MEGABYTES} MB") if "import" in name else ""
        print(f"{name:26} {wall:8.2f} s {cpu:8.2f} s cpu {memory:6.0f} MB  {wall / base:6.1f} times  {goal}")
