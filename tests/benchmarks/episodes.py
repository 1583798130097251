"""Episodes per second, without traces, and with each call of them as a JSON text.

The ways that are compared take turns in one process and one thread, whose processor time is counted: what
else runs on the machine disturbs it less. Beside every figure stands how many rounds of a fixed yardstick
take as long, so that figures of two machines can be compared. Episodes are played task by task, each under
all its schedules.
"""

import json
import sys
import sysconfig
import time
from functools import partial
from hashlib import sha256

from tests.benchmarks.harness import medians, verdict
from toolkit.lab.episodes.agents import reference
from toolkit.lab.episodes.episode import play
from toolkit.lab.tasks.pools import tasks
from toolkit.noise.regimes import REGIMES, Regime
from toolkit.seeds import evaluation_seed

ROUNDS, SCHEDULES = 9, 4
TABLE = {f"O-{number}": number for number in range(1000)}
YARDSTICKS = 30_000
GOALS = {"reference, faults_p025": 20_000, "  traced, a JSON text a call": 10_000}
"""Way → the smallest number of episodes a second."""


def yardstick() -> None:
    """Do what depends on the interpreter and the machine alone: each round a SHA-256 and ten dict reads."""
    digest, total = b"", 0
    keys = list(TABLE)[:10]
    for _ in range(YARDSTICKS):
        digest = sha256(digest).digest()
        for key in keys:
            total += TABLE[key]


def compare() -> None:
    """Print medians of several rounds, and whether goals are met."""
    pool = list(tasks("test"))
    jobs = [(task, evaluation_seed(task.task_id, number)) for task in pool for number in range(SCHEDULES)]

    def untraced(regime: Regime) -> None:
        for task, seed in jobs:
            play(task, regime, seed, reference)

    def text_a_call() -> None:
        for task, seed in jobs:
            for call in play(task, REGIMES["faults_p025"], seed, reference, traced=True).trace or ():
                key = None if call.key is None else (call.tool, *call.key)
                json.dumps([call.tool, call.arguments, call.answer, key, call.fault])

    ways = {
        "yardstick": yardstick,
        "reference, clean": partial(untraced, REGIMES["clean"]),
        **dict(zip(GOALS, (partial(untraced, REGIMES["faults_p025"]), text_a_call), strict=True)),
    }
    taken = medians(ways, ROUNDS, time.thread_time)
    round_s = taken.pop("yardstick") / YARDSTICKS
    # An optimized build is faster by a seventh or more; Linux distributions do not say so in these arguments.
    stated = "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or "")
    build = f"Python {sys.version.split()[0]}, {'' if stated else 'not stated to be '}an optimized build"
    print(f"test pool × {SCHEDULES} schedules, medians of {ROUNDS} rounds, processor time; {build}")
    print(f"  {'':36} {'µs':>12} {'a second':>10} {'yardsticks':>11}  goal")
    for name, seconds in taken.items():
        each, rate = seconds / len(jobs), len(jobs) / seconds
        goal = verdict(rate >= GOALS[name], f"at least {GOALS[name]:,}") if name in GOALS else ""
        print(f"  {name:36} {1e6 * each:12,.2f} {rate:10,.0f} {each / round_s:11,.1f}  {goal}".rstrip())
