"""Who does jobs: this process, others of this machine, or Ray on many machines."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from toolkit.lab.executors.places import A, Here, J, Places, Workers
from toolkit.lab.training.devices import ANEW, visible_gpus
from toolkit.structs import replace

LOCAL, RAY = "local", "ray"

Watch = Callable[[int, int, str], None]
Say = Callable[[str], None]
T = TypeVar("T")


@dataclass(frozen=True)
class Executor:
    """Who does jobs, and who is told how far they are. None of it changes what they leave."""

    kind: str = LOCAL  # `local` or `ray`
    # Jobs at the same time; None for as many as the machine, or the cluster, has processors, or GPUs
    # where jobs take one
    places: int | None = None
    # Of a Ray cluster, `HOST:PORT` or `auto`; None has Ray started on this machine, for this once
    address: str | None = None
    watch: Watch = lambda *_: None  # told how much is done, of how much, and what was done last
    say: Say = lambda _: None  # told what went wrong and was mended
    # Of jobs that take a GPU each, and see no other, whether a process is begun `anew` for each, as for
    # training, or `kept` for the next, with its model; None for jobs that take none
    gpu: str | None = None

    def telling(self, watch: Watch, say: Say) -> Executor:
        """Return the same executor with others to be told."""
        return replace(self, watch=watch, say=say)

    def gpus(self) -> int:
        """Return how many GPUs there are for jobs: those that this process sees, or those of a cluster."""
        if self.kind != RAY:
            return len(visible_gpus())
        from toolkit.lab.executors import on_ray

        return on_ray.count_gpus(self.address)

    def on_gpus(self, gpu: str) -> Executor:
        """Return the same executor for jobs that take a GPU where there is one: `anew` or `kept`."""
        return replace(self, gpu=gpu) if self.gpus() else self

    def is_this_process(self, jobs: int) -> bool:
        """Whether so many jobs are done in this process, one after the other."""
        if self.kind != LOCAL or self._local(jobs) > 1:
            return False
        return self.gpu != ANEW or (jobs == 1 and len(visible_gpus()) == 1)

    def _local(self, jobs: int) -> int:
        """Return how many jobs are done on this machine at the same time; one a GPU at most."""
        most = len(visible_gpus()) if self.gpu else os.cpu_count() or 1
        return _least(min(self.places or most, most) if self.gpu else self.places or most, jobs)

    def each_done(self, jobs: Iterable[J], perform: Callable[[J], A]) -> Iterator[tuple[J, A]]:
        """Do jobs that do not wait for each other, and yield each with its answer as it comes."""
        return self.each_step(deque(jobs), lambda job: job, perform)

    def each_step(
        self, work: deque[T], next_job: Callable[[T], J], perform: Callable[[J], A]
    ) -> Iterator[tuple[T, A]]:
        """Do work of several jobs each, and yield what a job belonged to with its answer as it comes."""
        if not work:
            return
        with self._opened(perform, len(work)) as places:
            free = list(range(places.number))
            busy: dict[int, T] = {}
            while work or busy:
                while free and work:
                    place = free.pop(0)
                    busy[place] = work.popleft()
                    places.start(place, next_job(busy[place]))
                for place, answer in places.wait():
                    free.insert(0, place)
                    yield busy.pop(place), answer

    @contextlib.contextmanager
    def _opened(self, perform: Callable[[J], A], most: int) -> Iterator[Places[J, A]]:
        if self.kind == RAY:
            from toolkit.lab.executors import on_ray

            with on_ray.connected(self.address, self.places) as (processors, gpus):
                number = _least(self.places or (gpus if self.gpu else processors), most)
                with contextlib.closing(on_ray.RayTasks(number, perform, self.say, self.gpu)) as tasks:
                    yield tasks
        elif self.is_this_process(most):
            yield Here(perform)
        else:
            seen = visible_gpus() if self.gpu else ()
            with Workers(self._local(most), perform, seen, anew=self.gpu == ANEW).opened() as workers:
                yield workers


HERE = Executor(places=1)
"""This process."""


def _least(places: int, most: int) -> int:
    return max(1, min(places, most))
