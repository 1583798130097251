"""The embedded study: episodes a second of one run, then tier 1 and its probe as a user runs them.

The run's segments are played in this process, whose processor time is counted. Tier 1 is played and probed by
commands, in as many processes as there are processors, from nothing, with registers written; their wall time
is that of the machine at hand. Beside them stands computing the probe's figures anew from the evidence.
"""

import tempfile
import time

from tests.benchmarks.harness import TOOLKIT, run, verdict
from toolkit import cases
from toolkit.lab.play.rows import specification_of
from toolkit.lab.play.segments import play_segment
from toolkit.places import find_home

RUN = "c2-independent-s0"
# A command on tier 1, what it does, and its goal in seconds; a process of any stays under GOAL_MB.
COMMANDS = (
    ("study run embedded --tier 1", "tier 1, 14 runs", 30),
    ("probe run embedded", "probe of tier 1, 71 checkpoints", 60),
)
GOAL_MB = 1000


def compare() -> None:
    """Measure and print one line a figure."""
    specification = specification_of(cases.open_study("embedded", find_home()), RUN)
    play_segment(specification, 0, None)  # makes the tasks
    started, episodes, before = time.process_time(), 0, None
    for end in specification.ends:
        segment = play_segment(specification, end, before)
        (before,) = segment["checkpoints"]
        rollouts = (
            len(row["observed_rewards"]) for name in ("groups", "luck_share") for row in segment[name]
        )
        episodes += len(segment["episodes"]) + sum(rollouts)
    took = time.process_time() - started
    print(f"{RUN}: {episodes} episodes, {episodes / took:,.0f} a second of processor time")
    for command, what, goal in COMMANDS:
        with tempfile.TemporaryDirectory() as folder:
            into = ("--folder", f"{folder}/kept", "--into", f"{folder}/registers")
            used = run(*TOOLKIT, *command.split(), *into)
        print(f"{what}, registers written: {used.wall:.1f} s, peak {used.memory:.0f} MB a process")
        is_met = used.wall < goal and used.memory < GOAL_MB
        print(f"  {verdict(is_met, f'under {goal} s and {GOAL_MB} MB')}")
    anew = run(*TOOLKIT, "probe", "report", "--study", "embedded", "--check").wall
    print(f"its figures anew from the evidence: {anew:.1f} s")
