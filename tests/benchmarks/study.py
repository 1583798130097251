"""The embedded study: episodes a second of one run, and tier 1 of the matrix as a user runs it.

The run's segments are played in this process, whose processor time is counted. Tier 1 is played by the
command, in as many processes as there are processors, with its registers written; its wall time is that of
the machine at hand.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time

from toolkit import api
from toolkit.places import find_home
from toolkit.study.play.rows import specification_of
from toolkit.study.play.run import ends, play_segment

RUN = "c2-independent-s0"
TIER_1 = [sys.executable, "-m", "toolkit", "study", "run", "embedded", "--tier", "1"]
GOAL_S, GOAL_MB = 30, 1000


def main() -> None:
    """Measure and print one line a figure."""
    specification = specification_of(api.open_study("embedded", find_home()), RUN)
    play_segment(specification, 0, None)  # makes the tasks
    started, episodes, before = time.process_time(), 0, None
    for end in ends(specification):
        segment = play_segment(specification, end, before)
        (before,) = segment["checkpoints"]
        rollouts = (
            len(row["observed_rewards"]) for name in ("groups", "luck_share") for row in segment[name]
        )
        episodes += len(segment["episodes"]) + sum(rollouts)
    took = time.process_time() - started
    print(f"{RUN}: {episodes} episodes, {episodes / took:,.0f} a second of processor time")
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        where = ["--folder", f"{folder}/runs", "--into", f"{folder}/registers"]
        subprocess.run([*TIER_1, *where], check=True, stdout=subprocess.DEVNULL)
        took = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    verdict = "met" if took < GOAL_S and peak < GOAL_MB else "MISSED"
    print(f"tier 1, 14 runs, registers written: {took:.1f} s, peak {peak:.0f} MB a process")
    print(f"  {verdict}: under {GOAL_S} s and {GOAL_MB} MB")


if __name__ == "__main__":
    main()
