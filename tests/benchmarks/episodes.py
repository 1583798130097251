"""Episodes per second, and what a step, a reset, a grading and a pool take.

The ways that are compared take turns in one process and one thread, whose processor time is counted: what
else runs on the machine disturbs it less. Beside every figure stands how many rounds of a fixed yardstick
take as long, so that figures of two machines can be compared. Episodes are played task by task, each under
all its schedules.
"""

import json
import statistics
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any

from tests.benchmarks.timing import verdict
from toolkit.backoffice.records import Order
from toolkit.episodes.agents import reference
from toolkit.episodes.desk import CallRecord, Desk
from toolkit.episodes.episode import close, play
from toolkit.noise.regimes import REGIMES, Regime
from toolkit.seeds import evaluation_seed
from toolkit.tasks.generator import generate
from toolkit.tasks.pools import POOLS, tasks
from toolkit.tasks.task import Task

ROUNDS, POOL_ROUNDS, SCHEDULES, READS = 9, 3, 4, 5
CLEAN, FAULTS = REGIMES["clean"], REGIMES["faults_p025"]
TABLE = {f"O-{number}": number for number in range(1000)}
YARDSTICKS = 30_000

MEMORY = """
import tracemalloc
tracemalloc.start()
from tests.benchmarks.episodes import FAULTS, every_schedule, untraced
from toolkit.tasks.pools import tasks
untraced(FAULTS, every_schedule(list(tasks("test"))))
print(tracemalloc.get_traced_memory()[1])
"""


@dataclass
class Way:
    """Something to be measured.

    Args:
        name: what it is.
        units: how many times `work` does it.
        work: does it with what `prepare` returned, which is not part of the time.
        goal: the smallest number a second; None where there is no goal.
        taken: seconds a unit, one entry a round.
    """

    name: str
    units: int
    work: Callable[[Any], None]
    prepare: Callable[[], Any] = lambda: None
    goal: int | None = None
    taken: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Seconds a unit: the median of the rounds, without the first."""
        return statistics.median(self.taken[1:])

    def measure(self) -> None:
        """Do one round."""
        prepared = self.prepare()
        started = time.thread_time()
        self.work(prepared)
        self.taken.append((time.thread_time() - started) / self.units)


def yardstick(_: None = None) -> None:
    """Do what depends on the interpreter and the machine alone: each round a SHA-256 and ten dict reads."""
    digest, found = b"", 0
    keys = list(TABLE)[:10]
    for _ in range(YARDSTICKS):
        digest = sha256(digest).digest()
        for key in keys:
            found += TABLE[key]


def every_schedule(pool: Sequence[Task]) -> list[tuple[Task, int]]:
    """Return every task with each of its first evaluation schedules."""
    return [(task, evaluation_seed(task.task_id, number)) for task in pool for number in range(SCHEDULES)]


def untraced(regime: Regime, jobs: Sequence[tuple[Task, int]], _: None = None) -> None:
    """Play without traces."""
    for task, seed in jobs:
        play(task, regime, seed, reference)


def text_a_call(jobs: Sequence[tuple[Task, int]], _: None = None) -> None:
    """Play with traces and write each call as a JSON text."""
    for task, seed in jobs:
        for record in play(task, FAULTS, seed, reference, traced=True).trace or ():
            json.dumps(call_document(record))


def text_an_episode(jobs: Sequence[tuple[Task, int]], _: None = None) -> None:
    """Play with traces and write each trace as one JSON text."""
    for task, seed in jobs:
        trace = play(task, FAULTS, seed, reference, traced=True).trace or ()
        json.dumps([call_document(record) for record in trace])


def call_document(record: CallRecord) -> dict[str, Any]:
    """Return a call of a trace as JSON values."""
    return {
        "tool": record.tool,
        "arguments": record.arguments,
        "answer": record.answer,
        "event_key": None if record.key is None else (record.tool, *record.key),
        "fault": record.fault,
    }


def desks(regime: Regime, jobs: Sequence[tuple[Task, int]]) -> list[Desk]:
    """Make desks: resets."""
    return [Desk(task, regime, seed) for task, seed in jobs]


def desks_with_reads(regime: Regime, jobs: Sequence[tuple[Task, int]]) -> list[tuple[Desk, str]]:
    """Make desks, each with the arguments of a read of an order as a JSON text."""
    texts = [json.dumps({"order_id": first_order(task)}) for task, _ in jobs]
    return list(zip(desks(regime, jobs), texts, strict=True))


def first_order(task: Task) -> str:
    """Return the first order of a task's world."""
    return next(key for key, record in task.base.records.items() if type(record) is Order)


def reads(prepared: Sequence[tuple[Desk, str]]) -> None:
    """Read an order several times at each desk, JSON on both sides."""
    for desk, text in prepared:
        for _ in range(READS):
            json.dumps(desk.call("get_order", json.loads(text)))


def finished(regime: Regime, jobs: Sequence[tuple[Task, int]]) -> list[Desk]:
    """Play without grading."""
    played = desks(regime, jobs)
    for desk in played:
        reference(desk.task.prompt, desk.call)
    return played


def grade(played: Sequence[Desk]) -> None:
    """Grade desks and make their episodes."""
    for desk in played:
        close(desk)


def our_ways(jobs: Sequence[tuple[Task, int]]) -> list[Way]:
    """Return what is measured of this project."""
    count, steps = len(jobs), READS * len(jobs)
    return [
        Way("yardstick", YARDSTICKS, yardstick),
        Way("reference, faults_p025", count, partial(untraced, FAULTS, jobs), goal=20_000),
        Way("  traced, a JSON text a call", count, partial(text_a_call, jobs), goal=10_000),
        Way("  traced, a JSON text an episode", count, partial(text_an_episode, jobs)),
        Way("reference, clean", count, partial(untraced, CLEAN, jobs)),
        Way("read step with JSON, faults_p025", steps, reads, partial(desks_with_reads, FAULTS, jobs)),
        Way("read step with JSON, clean", steps, reads, partial(desks_with_reads, CLEAN, jobs)),
        Way("reset (a desk made)", count, lambda _: desks(FAULTS, jobs)),
        Way("grading, faults_p025", count, grade, partial(finished, FAULTS, jobs)),
    ]


def take_turns(ways: Sequence[Way], rounds: int = ROUNDS) -> None:
    """Measure several rounds and one before them that is not counted."""
    for _ in range(rounds + 1):
        for way in ways:
            way.measure()


def show(ways: Sequence[Way]) -> None:
    """Print a line a way; the first is the yardstick."""
    print(f"  {'':36} {'µs':>12} {'a second':>10} {'yardsticks':>11}  goal")
    for way in ways:
        rate = 1 / way.seconds
        goal = "" if way.goal is None else verdict(rate >= way.goal, f"at least {way.goal:,}")
        ratio = way.seconds / ways[0].seconds
        print(f"  {way.name:36} {1e6 * way.seconds:12,.2f} {rate:10,.0f} {ratio:11,.1f}  {goal}".rstrip())


def build() -> str:
    """Return which interpreter this is; an optimized build is faster by a seventh or more.

    Linux distributions optimize theirs without saying so in these arguments.
    """
    stated = "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or "")
    about = "built with" if stated else "not stated to be built with"
    return f"Python {sys.version.split()[0]}, {about} --enable-optimizations"


def compare() -> None:
    """Print medians of several rounds, and whether goals are met."""
    # A process of its own: tracing allocations slows everything, and this one holds other things as well.
    peak = subprocess.run([sys.executable, "-c", MEMORY], check=True, capture_output=True, text=True).stdout
    jobs = every_schedule(list(tasks("test")))
    print(f"test pool × {SCHEDULES} schedules, medians of {ROUNDS} rounds, processor time; {build()}")
    ours = our_ways(jobs)
    take_turns(ours)
    show(ours)
    print(f"  peak of Python's memory, the pool generated and played: {int(peak) / 2**20:.1f} MB")
    pools = [
        Way(
            f"pool {name}, {pool.size} tasks", 1, lambda _, name=name: list(tasks(name)), generate.cache_clear
        )
        for name, pool in POOLS.items()
    ]
    take_turns(pools, POOL_ROUNDS)
    print("  " + "; ".join(f"{way.name}: {way.seconds:.2f} s" for way in pools))


if __name__ == "__main__":
    compare()
