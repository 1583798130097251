"""Building the whole site: with nothing drawn before, again, and after one figure of a register has changed.

In a copy of the checkout's home, with a cache of its own, so that nothing drawn elsewhere helps.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.conftest import CHECKOUT
from toolkit.registers.study import open_study
from toolkit.registers.writer import write_study

ROUNDS = 2
COLD_GOAL_S, CHANGE_GOAL_S = 30.0, 5.0
BUILD = [sys.executable, "-m", "toolkit", "site", "build"]


def built(home: Path, cache: Path) -> float:
    """Build the site of a home and return seconds."""
    environment = {**os.environ, "TOOLKIT_HOME": str(home), "XDG_CACHE_HOME": str(cache)}
    started = time.perf_counter()
    subprocess.run(BUILD, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def change(home: Path, number: int) -> None:
    """Have one evaluation of the published study end otherwise, and seal the study anew."""
    study = open_study(home / "registers" / "published")
    rows = {table.name: study.rows(table.name) for table in study.tables}
    listed = [row for row in rows["evaluations"] if row["condition"] == "C2" and row["phase"] == "periodic"]
    for column in ("successes", "observed_successes"):
        listed[number][column] += 1
    sealed = study.manifest
    shutil.rmtree(study.folder)
    write_study(
        study.folder,
        study=sealed.study,
        evidence=sealed.evidence,
        registration=sealed.registration,
        rows=rows,
        documents={},
    )


def compare() -> None:
    """Measure in a fresh home, and print a line a way."""
    took: dict[str, list[float]] = {"cold": [], "again": [], "after one change": []}
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch) / "home"
        for name in ("registers", "prereg", "cards"):
            shutil.copytree(CHECKOUT / name, home / name)
        for number in range(ROUNDS):
            cache = Path(scratch) / f"cache-{number}"
            took["cold"].append(built(home, cache))
            took["again"].append(built(home, cache))
            change(home, number)
            took["after one change"].append(built(home, cache))
        pages = len(list((home / "site").rglob("*.html")))
    print(f"the whole site, {pages} pages, in a process of its own; {ROUNDS} rounds")
    goals = {"cold": COLD_GOAL_S, "after one change": CHANGE_GOAL_S}
    for what, seconds in took.items():
        median, goal = statistics.median(seconds), goals.get(what)
        said = "" if goal is None else f"{'met' if median < goal else 'MISSED'}: under {goal:g} s"
        print(f"  {what:20} {min(seconds):7.2f} s at least, {median:7.2f} s median  {said}".rstrip())


if __name__ == "__main__":
    compare()
