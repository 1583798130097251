"""Measure what has a performance goal: `make bench`, or `python -m tests.benchmarks NAME` for a part.

Figures of commands are of whole processes: wall time, processor time and peak memory as the operating system
counted them. Whatever is compared takes turns in one run, so that ratios hold when the machine's speed
drifts; absolute times are those of the machine at hand. Medians of several rounds, after one that is not
counted.
"""

import os
import subprocess
import sys
import tempfile
from importlib import import_module

from tests.benchmarks.harness import PYTHON, TOOLKIT, commands, verdict

ROUNDS, FEW = 7, 3
BASE, CLICK = "interpreter + pyarrow", "interpreter + click"
TIMES_CLICK = 2
# Command → its goal in seconds.
GOALS = {
    **{f"decide H2a, {study}": 0.5 for study in ("published", "embedded", "tiny-lm")},
    "toolkit decide --all": 5,
    "registers verify, embedded": 10,
    "toolkit reproduce": 30,
}
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), "1")
# Part → what its environment has: each in a process of its own, whose memory and whose threads are its own.
PARTS: dict[str, dict[str, str]] = {
    **{part: {} for part in ("intervals", "episodes", "tokens", "registers", "imports", "site", "study")},
    **dict.fromkeys(("gram", "scores"), ONE_THREAD),
    "proxy": {},
}


def compare() -> None:
    """Measure commands, and print one line each."""
    h2a = {f"decide H2a, {name.split()[-1]}": name.split()[-1] for name in GOALS if "H2a" in name}
    with tempfile.TemporaryDirectory() as folder:
        quick = {
            BASE: (PYTHON, "-c", "import pyarrow"),
            CLICK: (PYTHON, "-c", "import click"),
            "toolkit --version": (*TOOLKIT, "--version"),
            "toolkit --help": (*TOOLKIT, "--help"),
            **{n: (*TOOLKIT, "decide", "H2a", "--study", study, "--json") for n, study in h2a.items()},
            "toolkit decide --all": (*TOOLKIT, "decide", "--all", "--json"),
            "toolkit sql": (*TOOLKIT, "sql", "FROM runs", "--json"),
        }
        slow = {
            "registers verify, embedded": (*TOOLKIT, "registers", "verify", "--study", "embedded"),
            "toolkit reproduce": (*TOOLKIT, "reproduce", "--site", f"{folder}/site"),
        }
        found = commands(quick, ROUNDS) | commands(slow, FEW)
    print(f"{'command':26} {'wall s':>8} {'cpu s':>8} {'peak MB':>8} {'ratio':>7}  goal")
    for name, (wall, cpu, memory, _) in found.items():
        goal = verdict(wall < GOALS[name], f"under {GOALS[name]} s") if name in GOALS else ""
        print(f"{name:26} {wall:8.3f} {cpu:8.3f} {memory:8.0f} {wall / found[BASE].wall:7.2f}  {goal}")
    print(f"ratio: wall time over that of '{BASE}', medians of {ROUNDS} rounds (the last two: {FEW})")
    for name in ("toolkit --version", "toolkit --help"):
        times = found[name].wall / found[CLICK].wall
        print(f"{name} over {CLICK}: {times:.2f}  {verdict(times <= TIMES_CLICK, f'at most {TIMES_CLICK}')}")


def main() -> None:
    """Measure the parts that are named; without a name commands, and then all parts."""
    for name in sys.argv[1:]:
        import_module(f"tests.benchmarks.{name}").compare()
    if not sys.argv[1:]:
        compare()
        sys.stdout.flush()
        for name, environment in PARTS.items():
            command = [PYTHON, "-m", "tests.benchmarks", name]
            subprocess.run(command, check=True, env=os.environ | environment)


if __name__ == "__main__":
    main()
