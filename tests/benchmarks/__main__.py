"""Measure what has a performance goal: `make bench`.

Every figure is of a whole process: wall time, processor time and peak memory as the operating system counted
them. Commands take turns in one run, so that their ratios hold when the machine's speed drifts; absolute
times are those of the machine at hand. Medians of several rounds, after one that is not counted.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

from tests.benchmarks.timing import verdict

ROUNDS = 7
TOOLKIT = [sys.executable, "-m", "toolkit"]
STUDIES = ("published", "embedded", "tiny-lm")
H2A = [*TOOLKIT, "decide", "H2a", "--study"]
VERIFY = [*TOOLKIT, "registers", "verify", "--study"]
BASE = "interpreter + pyarrow"
CLICK = "interpreter + click"
VERSION = "toolkit --version"
TIMES_CLICK = 2


@dataclass
class Case:
    """A command, its goal in seconds where it has one, and what was measured."""

    name: str
    command: list[str]
    goal: float | None = None
    rounds: int = ROUNDS
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)


def run(case: Case) -> None:
    """Run a command once and record what it used."""
    started = time.perf_counter()
    silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    process = os.posix_spawn(case.command[0], case.command, os.environ, file_actions=silent)
    _, status, used = os.wait4(process, 0)
    case.wall.append(time.perf_counter() - started)
    case.cpu.append(used.ru_utime + used.ru_stime)
    case.memory.append(used.ru_maxrss / 1024)
    if os.waitstatus_to_exitcode(status):
        sys.exit(f"{case.name} failed")


def main() -> None:
    """Measure and print one line a command."""
    with tempfile.TemporaryDirectory() as folder:
        cases = [
            Case(BASE, [sys.executable, "-c", "import pyarrow"]),
            Case(CLICK, [sys.executable, "-c", "import click"]),
            Case(VERSION, [*TOOLKIT, "--version"]),
            Case("toolkit --help", [*TOOLKIT, "--help"]),
            *(Case(f"decide H2a, {study}", [*H2A, study, "--json"], goal=0.5) for study in STUDIES),
            Case("toolkit decide --all", [*TOOLKIT, "decide", "--all", "--json"], goal=2.5),
            Case("registers verify, embedded", [*VERIFY, "embedded"], goal=10, rounds=3),
            Case("toolkit sql", [*TOOLKIT, "sql", "FROM runs", "--json"]),
            Case("toolkit reproduce", [*TOOLKIT, "reproduce", "--site", f"{folder}/site"], goal=30, rounds=3),
        ]
        for number in range(ROUNDS + 1):
            for case in cases:
                if number <= case.rounds:
                    run(case)
    base = statistics.median(cases[0].wall[1:])
    print(f"{'command':26} {'wall s':>8} {'cpu s':>8} {'peak MB':>8} {'ratio':>7}  goal")
    for case in cases:
        wall, cpu = statistics.median(case.wall[1:]), statistics.median(case.cpu[1:])
        goal = "" if case.goal is None else verdict(wall < case.goal, f"under {case.goal} s")
        print(f"{case.name:26} {wall:8.3f} {cpu:8.3f} {max(case.memory):8.0f} {wall / base:7.2f}  {goal}")
    print(f"ratio: wall time over that of '{BASE}', medians of {ROUNDS} rounds (reproduce: 3) in one run")
    median = {case.name: statistics.median(case.wall[1:]) for case in cases}
    for name in (VERSION, "toolkit --help"):
        times = median[name] / median[CLICK]
        goal = verdict(times <= TIMES_CLICK, f"at most {TIMES_CLICK} times")
        print(f"{name} over {CLICK}: {times:.2f}  {goal}")
    # Imported only now: a child process is charged with the memory that its parent held.
    from tests.benchmarks import intervals

    intervals.compare()
    # In a process of its own: what the others loaded would slow its many small objects down.
    sys.stdout.flush()
    for name in (
        "episodes",
        "tokens",
        "rows",
        "queries",
        "imports",
        "site",
        "pages",
        "study",
        "gram",
        "scores",
        "proxy",
    ):
        subprocess.run([sys.executable, "-m", f"tests.benchmarks.{name}"], check=True)


if __name__ == "__main__":
    main()
