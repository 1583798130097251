"""Task pools: which tasks a study trains and tests on, each a function of its name alone."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import count

from toolkit.errors import UsageError, did_you_mean
from toolkit.lab.backoffice.parameters import LONGEST_WORD
from toolkit.lab.tasks.generator import generate
from toolkit.lab.tasks.task import Task, task_sha256


@dataclass(frozen=True)
class Pool:
    """A pool."""

    name: str  # its name
    size: int  # how many tasks it has
    about: str  # what it is for
    writes: tuple[int, int] | None = None  # smallest and largest number of planned writes; None for any


_POOLS = (
    Pool("train", 2000, "Training."),
    Pool("validation", 300, "Periodic evaluation."),
    Pool("test", 300, "Final evaluation."),
    Pool("diagnostic", 16, "The luck-share design.", writes=(2, 4)),
    Pool("diagnostic_128", 128, "The luck-share design with more tasks.", writes=(2, 4)),
)

POOLS = {pool.name: pool for pool in _POOLS}


def tasks(name: str) -> Iterator[Task]:
    """Yield a pool's tasks in order."""
    pool = _pool(name)
    if pool.writes is None:
        for index in range(pool.size):
            yield generate(name, index, index)
        return
    low, high = pool.writes
    index = 0
    for candidate in count():
        task = generate(name, candidate, index)
        if low <= task.writes <= high:
            yield task
            index += 1
        if index == pool.size:
            return


FOREIGN: Mapping[str, Mapping[str, range]] = {
    "bfcl_turns": {"train": range(370), "validation": range(182), "test": range(190)},
    "bfcl_scenarios": {"train": range(370, 471), "validation": range(182, 230), "test": range(190, 241)},
    "published": {pool.name: range(pool.size) for pool in _POOLS[:4]},
}
"""Foreign world → the positions of its tasks in each pool; the tasks themselves, `toolkit.lab.worlds` has."""


@lru_cache
def positions(name: str, sub_requests: int = 0, world: str = "") -> tuple[int, ...]:
    """Return the positions of a pool's tasks, in order."""
    if world:
        if name not in FOREIGN[world]:
            raise UsageError(f"{world} has no pool {name!r}", expected=", ".join(FOREIGN[world]))
        return tuple(FOREIGN[world][name])
    if not sub_requests:
        return tuple(range(_pool(name).size))
    return tuple(task.index for task in tasks(name) if len(task.templates) == sub_requests)


def load_task(task_id: str) -> Task:
    """Return a task by its identifier, `pool:index`."""
    name, _, number = task_id.partition(":")
    pool = _pool(name)
    canonical = number.isascii() and number.isdigit() and (number[0] != "0" or number == "0")
    if not canonical or len(number) > len(str(pool.size)):
        raise UsageError("a task is called pool:index", expected=f"{name}:0", found=task_id[:LONGEST_WORD])
    index = int(number)
    if index >= pool.size:
        raise UsageError(
            f"pool {name} has no task {index}", expected=f"{name}:0 to {name}:{pool.size - 1}", found=task_id
        )
    if pool.writes is None:
        return generate(name, index, index)
    return next(task for task in tasks(name) if task.index == index)


def pool_sha256(listed: Iterable[Task]) -> str:
    """Return the SHA-256 of a pool: of its tasks' hexadecimal digests, each on a line, in order."""
    return digests_sha256(map(task_sha256, listed))


def digests_sha256(digests: Iterable[str]) -> str:
    """Return the SHA-256 of a pool whose tasks have these digests, in order."""
    lines = "".join(f"{digest}\n" for digest in digests)
    return hashlib.sha256(lines.encode()).hexdigest()


def _pool(name: str) -> Pool:
    if name not in POOLS:
        known = ", ".join(POOLS)
        raise UsageError(
            f"there is no pool {name[:LONGEST_WORD]!r}", expected=known, remedy=did_you_mean(name, POOLS)
        )
    return POOLS[name]
