"""Building the whole site of a copy of the checkout's home, in a process of its own."""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.timing import verdict
from tests.conftest import CHECKOUT

ROUNDS = 2
GOAL_S = 30.0
BUILD = [sys.executable, "-m", "toolkit", "site", "build"]


def built(home: Path) -> float:
    """Build the site of a home and return seconds."""
    started = time.perf_counter()
    subprocess.run(
        BUILD, env={**os.environ, "TOOLKIT_HOME": str(home)}, check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - started


def compare() -> None:
    """Measure in a fresh home, and print a line."""
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch) / "home"
        for name in ("registers", "prereg", "cards"):
            shutil.copytree(CHECKOUT / name, home / name)
        seconds = [built(home) for _ in range(ROUNDS)]
        pages = len(list((home / "site").rglob("*.html")))
    median = statistics.median(seconds)
    print(f"the whole site, {pages} pages, in a process of its own; {ROUNDS} rounds")
    print(f"  {min(seconds):7.2f} s at least, {median:7.2f} s median", end="  ")
    print(f"{verdict(median < GOAL_S, f'under {GOAL_S:g} s')}")


if __name__ == "__main__":
    compare()
