"""The embedded study's probe as a user runs it: every checkpoint of every run of tier 1, registers written.

It is measured from nothing in a folder of its own, in as many processes as there are processors; its wall
time is that of the machine at hand. Beside it stands computing all figures anew from the evidence alone.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time

TOOLKIT = [sys.executable, "-m", "toolkit", "probe"]
GOAL_S, GOAL_MB = 60, 1000


def timed(*arguments: str) -> float:
    """Return how long a command takes."""
    started = time.perf_counter()
    subprocess.run([*TOOLKIT, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def main() -> None:
    """Measure and print one line a figure."""
    with tempfile.TemporaryDirectory() as folder:
        took = timed("run", "embedded", "--folder", f"{folder}/kept", "--into", f"{folder}/registers")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"probe of tier 1, 71 checkpoints, registers written: {took:.1f} s, peak {peak:.0f} MB a process")
    print(f"  {'met' if took <= GOAL_S and peak < GOAL_MB else 'MISSED'}: {GOAL_S} s, {GOAL_MB} MB")
    print(f"its figures anew from the evidence: {timed('report', '--study', 'embedded', '--check'):.1f} s")


if __name__ == "__main__":
    main()
