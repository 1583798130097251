"""Which executor is meant: places of this machine, or of a Ray cluster."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.study.executors.processes import Here, Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from toolkit.study.executors.executor import A, Executor, J

LOCAL = "local"
RAY = "ray"


@dataclass(frozen=True)
class Where:
    """Where jobs are to be done. None of it changes what they leave.

    Args:
        kind: `local` or `ray`.
        places: jobs at the same time; None for as many as the machine, or the cluster, has processors.
        address: of a Ray cluster, `HOST:PORT` or `auto`; None has Ray started on this machine, for this once.
    """

    kind: str = LOCAL
    places: int | None = None
    address: str | None = None


HERE = Where(places=1)
"""This process."""


def _nothing(_: str) -> None:
    """Say nothing."""


@contextlib.contextmanager
def executor(
    where: Where,
    perform: Callable[[J], A],
    *,
    most: int | None = None,
    say: Callable[[str], None] = _nothing,
) -> Iterator[Executor[J, A]]:
    """Provide places to do jobs in, and give them back at the end, however that comes.

    Args:
        where: which.
        perform: does a job, and is what another process can import; `functools.partial` of it will do.
        most: jobs that there are: no more places are taken.
        say: told what went wrong and was mended.

    Raises:
        IncompleteError: Ray is not installed, or does not answer.
    """
    if where.kind == RAY:
        from toolkit.study.executors.ray_connection import connected
        from toolkit.study.executors.ray_tasks import RayTasks

        with connected(where.address, where.places) as processors:
            yield RayTasks(_least(where.places or processors, most), perform, say)
        return
    places = _least(where.places or os.cpu_count() or 1, most)
    if places == 1:
        yield Here(perform)
        return
    workers = Workers(places, perform)
    try:
        yield workers
    finally:
        workers.stop()


def each_done(
    jobs: Iterable[J],
    where: Where,
    perform: Callable[[J], A],
    *,
    say: Callable[[str], None] = _nothing,
) -> Iterator[tuple[J, A]]:
    """Do jobs that do not wait for each other, and yield each with its answer as it comes.

    Args:
        jobs: begun in this order; the longest first keeps all places busy to the end.
        where: where to do them.
        perform: does a job, as for `executor`.
        say: told what went wrong and was mended.

    Raises:
        ToolkitError: a job failed; answers that came before have been yielded.
    """
    left = deque(jobs)
    if not left:
        return
    with executor(where, perform, most=len(left), say=say) as places:
        free = list(range(places.places))
        busy: dict[int, J] = {}
        while left or busy:
            while free and left:
                place = free.pop(0)
                busy[place] = left.popleft()
                places.start(place, busy[place])
            for place, answer in places.wait():
                free.append(place)
                yield busy.pop(place), answer


def _least(places: int, most: int | None) -> int:
    return places if most is None else max(1, min(places, most))
