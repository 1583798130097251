"""Ways that take turns, commands in processes of their own, and whether a goal is met."""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

T = TypeVar("T")
PYTHON = sys.executable
TOOLKIT = (PYTHON, "-m", "toolkit")


class Used(NamedTuple):
    """What a process took, as the operating system counted it, and what it printed."""

    wall: float  # wall, cpu: seconds
    cpu: float
    memory: float  # megabytes at its peak
    printed: bytes = b""


def run(*command: str, codes: tuple[int, ...] = (0,), **environment: str) -> Used:
    """Run a command, whose exit code has to be one of some."""
    started = time.perf_counter()
    with tempfile.TemporaryFile() as out:
        silent = (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)
        to_file = [(os.POSIX_SPAWN_DUP2, out.fileno(), 1), silent]
        process = os.posix_spawnp(command[0], command, os.environ | environment, file_actions=to_file)
        _, status, used = os.wait4(process, 0)
        wall = time.perf_counter() - started
        if os.waitstatus_to_exitcode(status) not in codes:
            sys.exit(f"{command} failed")
        out.seek(0)
        return Used(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, out.read())


def in_turns(ways: Mapping[str, Callable[[], T]], rounds: int) -> dict[str, list[T]]:
    """Return what each way gives in every round, after one that is not counted."""
    given: dict[str, list[T]] = {name: [] for name in ways}
    for _ in range(rounds + 1):
        for name, way in ways.items():
            given[name].append(way())
    return {name: each[1:] for name, each in given.items()}


def commands(listed: Mapping[str, Sequence[str]], rounds: int) -> dict[str, Used]:
    """Return the medians of what each command takes."""
    given = in_turns({name: lambda words=words: run(*words) for name, words in listed.items()}, rounds)
    return {
        name: Used(*map(statistics.median, list(zip(*each, strict=True))[:3])) for name, each in given.items()
    }


def medians(
    ways: Mapping[str, Callable[[], object]],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
    times: int = 1,
) -> dict[str, float]:
    """Return the median seconds that each way takes once."""

    def timed(way: Callable[[], object]) -> float:
        started = clock()
        for _ in range(times):
            way()
        return (clock() - started) / times

    taken = in_turns({name: lambda way=way: timed(way) for name, way in ways.items()}, rounds)
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def verdict(is_met: bool, goal: str) -> str:
    """Return whether a goal is met, and the goal."""
    return f"{'met' if is_met else 'MISSED'}: {goal}"
