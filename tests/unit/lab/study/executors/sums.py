"""Jobs that are no study's: sums, done by whoever is asked. `python -m` it to have a cluster do one.

`python -m tests.unit.lab.study.executors.sums ADDRESS MARK [VERSION]` loses a process where no MARK is yet,
and may take itself for Ray of another version.
"""

import json
import os
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from toolkit.errors import ToolkitError, VerificationError
from toolkit.lab.executors.executor import Executor


@dataclass(frozen=True)
class SumJob:
    """Add numbers up."""

    subject: str
    numbers: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.subject}, its sum"


JOBS = tuple(SumJob(f"set {n}", tuple(range(n))) for n in range(5))
TWICE = JOBS[:1] * 2
SUMS = {"set 0": 0, "set 1": 0, "set 2": 1, "set 3": 3, "set 4": 6}


def add(job: SumJob) -> int:
    return sum(job.numbers)


def see(job: SumJob) -> tuple[str | None, int]:
    """Return the GPUs that the process is told of, and its number."""
    time.sleep(0.2)  # long enough for nobody to do all of them alone
    return os.environ.get("CUDA_VISIBLE_DEVICES"), os.getpid()


def refuse(job: SumJob) -> int:
    raise VerificationError("no sum", expected=1, found=2, where="here", remedy="add again")


def fail(job: SumJob) -> int:
    raise ZeroDivisionError("nothing to divide")


def die(job: SumJob) -> int:
    os._exit(9)


def die_once(job: SumJob, mark: Path) -> int:
    """End the process the first time."""
    if not mark.exists():
        mark.touch()
        os._exit(9)
    return add(job)


def main(address: str, mark: str, version: str | None = None) -> None:
    if version:
        import ray as package

        package.__version__ = version
    perform = partial(die_once, mark=Path(mark))
    try:
        ray = Executor("ray", 1, address, say=partial(print, file=sys.stderr))
        for job, answer in ray.each_done(JOBS, perform):
            print(json.dumps([job.subject, answer]))
    except ToolkitError as error:
        print(error.exit_code, error)


if __name__ == "__main__":
    main(*sys.argv[1:])
