"""Building the site of a copy of the checkout's home, in a process of its own: from nothing, and unchanged.

Beside it stands a home of one study of a thousand runs, nearly.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.timing import verdict
from tests.conftest import CHECKOUT

FROM_NOTHING_S, UNCHANGED_S, THOUSAND_S = 25.0, 5.0, 120.0
BUILD = [sys.executable, "-m", "toolkit", "site", "build", "--json"]
LARGE = "map"


def home_of(home: Path, studies: Sequence[str]) -> Path:
    """Make a home with some of the checkout's studies, and return it."""
    for name in (*(f"registers/{study}" for study in studies), "prereg", "cards"):
        shutil.copytree(CHECKOUT / name, home / name)
    return home


def told(what: str, home: Path, goal: float) -> None:
    """Build the site of a home, and print how long it took."""
    started = time.perf_counter()
    environment = {**os.environ, "TOOLKIT_HOME": str(home)}
    done = subprocess.run(BUILD, env=environment, check=True, capture_output=True, text=True)
    seconds = time.perf_counter() - started
    document = json.loads(done.stdout)
    rendered = "rendered" if document["rendered"] else "nothing rendered"
    print(f"  {what:24} {seconds:7.2f} s, {document['pages']} files, {rendered}", end="  ")
    print(verdict(seconds < goal, f"under {goal:g} s"))


def compare() -> None:
    """Measure in fresh homes, and print a line a build."""
    print("the site, built in a process of its own")
    with tempfile.TemporaryDirectory() as scratch:
        names = sorted(path.name for path in (CHECKOUT / "registers").iterdir() if path.is_dir())
        whole = home_of(Path(scratch) / "whole", names)
        told("from nothing", whole, FROM_NOTHING_S)
        told("unchanged", whole, UNCHANGED_S)
        runs = CHECKOUT / "registers" / LARGE / "episodes"
        large = home_of(Path(scratch) / "large", [LARGE])
        told(f"{len(list(runs.iterdir()))} runs, from nothing", large, THOUSAND_S)


if __name__ == "__main__":
    compare()
