"""What does jobs: as many at once as it has places. A job is data, and what performs it is one function."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, process, wait
from multiprocessing import resource_tracker
from multiprocessing.process import BaseProcess
from typing import Generic, Protocol, Self, TypeVar

from toolkit.errors import DamagedError, IncompleteError, ToolkitError
from toolkit.lab.training.devices import VISIBLE

THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


class Job(Protocol):
    """What is to be done: a frozen dataclass that carries all that it needs, and can be pickled."""

    @property
    def subject(self) -> str:
        """What the job is about: a run, a trajectory, a set."""


J = TypeVar("J", bound=Job)
A = TypeVar("A")


class Places(ABC, Generic[J, A]):
    """Does jobs, as many at once as it has places."""

    number: int  # how many; a job is started in one of `range(number)`

    @abstractmethod
    def start(self, place: int, job: J) -> None:
        """Begin a job in a place that is free."""

    @abstractmethod
    def wait(self) -> list[tuple[int, A]]:
        """Wait for answers; return each with its place, which is free again."""


def attempt(perform: Callable[[J], A], job: J) -> A:
    """Do a job, wherever this is."""
    try:
        return perform(job)
    except ToolkitError as error:
        error.where = f"{job}: {error.where}" if error.where else str(job)
        raise
    except MemoryError:
        raise IncompleteError(
            "there is not enough memory for a run", where=str(job), remedy="use fewer --processes"
        ) from None
    except Exception as error:
        # A defect of what performs is told like any other failure: every job but this one may still be sound.
        line = traceback.extract_tb(error.__traceback__)[-1]
        problem = f"{job.subject} could not be played"
        where = f"{job}: {line.filename}, line {line.lineno}"
        raise DamagedError(problem, found=f"{type(error).__name__}: {error}", where=where) from error


class Here(Places[J, A]):
    """Does one job at a time, in this process."""

    number = 1

    def __init__(self, perform: Callable[[J], A]) -> None:
        self._perform = perform
        self._job: J | None = None

    def start(self, place: int, job: J) -> None:  # noqa: ARG002 - there is one place
        """Keep the job until it is waited for."""
        self._job = job

    def wait(self) -> list[tuple[int, A]]:
        """Do the job."""
        job, self._job = self._job, None
        return [] if job is None else [(0, attempt(self._perform, job))]


class Workers(Places[J, A]):
    """Does jobs in processes, one a place, each with its own of `gpus`; `anew` begins one a job."""

    def __init__(
        self, number: int, perform: Callable[[J], A], gpus: Sequence[str] = (), *, anew: bool = False
    ) -> None:
        self.number = number
        self._perform = perform
        self._gpus = gpus
        self._anew = anew
        self._pools: dict[int, ProcessPoolExecutor] = {}
        self._at_work: dict[Future[A], tuple[int, J]] = {}
        self._processes: set[BaseProcess] = set()

    @contextlib.contextmanager
    def opened(self) -> Iterator[Self]:
        """Provide processes, and end them at the end: what they are at then is played again another time."""
        try:
            yield self
        finally:
            if self._at_work:
                self._terminate()
            # Without work they end by themselves, and take what their libraries had opened with them.
            for pool in self._pools.values():
                pool.shutdown()

    def start(self, place: int, job: J) -> None:
        """Send a job to a process."""
        if place not in self._pools:
            gpu = (self._gpus[place],) if self._gpus else ()
            context = multiprocessing.get_context("spawn")
            self._pools[place] = ProcessPoolExecutor(1, context, _begin, gpu)
        pool = self._pools[place]
        # A process is started with its first job: as it then finds the environment and the signals.
        try:
            with _undisturbed(), one_thread_each():
                self._at_work[pool.submit(attempt, self._perform, job)] = (place, job)
                self._processes |= set((pool._processes or {}).values())  # noqa: SLF001 - it keeps the dead
        except process.BrokenProcessPool:
            raise self._gone() from None

    def wait(self) -> list[tuple[int, A]]:
        """Wait until at least one process has answered."""
        done, _ = wait(self._at_work, return_when=FIRST_COMPLETED)
        try:
            answers = [(self._at_work[future][0], future.result()) for future in done]
        except process.BrokenProcessPool:
            raise self._gone() from None
        for future in done:
            place, _ = self._at_work.pop(future)
            if self._anew:
                self._pools.pop(place).shutdown()
        return sorted(answers, key=lambda answer: answer[0])

    def _terminate(self) -> None:
        for each in self._processes:
            each.terminate()

    def _gone(self) -> IncompleteError:
        self._terminate()
        # Of a process that two threads wait for, one learns how it ended: that is the pool's own.
        for pool in self._pools.values():
            pool.shutdown()
        # The process that ended first has another code than those that were terminated.
        codes = {each.exitcode for each in self._processes} - {0, -signal.SIGTERM}
        return IncompleteError(
            "a process ended in the middle of its work",
            found=f"exit code {', '.join(map(str, sorted(filter(None, codes))))}: killed, or out of memory",
            where=", ".join(sorted({job.subject for _, job in self._at_work.values()})),
            remedy="give the same command again: it goes on from the newest checkpoints; or use fewer "
            "--processes",
        )


def _begin(gpu: str | None = None) -> None:
    """Have this process see one GPU, and end as soon as the one that started it is gone."""
    if gpu is not None:
        os.environ[VISIBLE] = gpu  # nothing here has asked for a GPU yet
    threading.Thread(target=_outlive_nobody, daemon=True).start()


def _outlive_nobody() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Start processes that an interrupt at the keyboard does not reach: their parent ends them."""
    resource_tracker.ensure_running()  # it lets through what is held back here
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def environment(settings: dict[str, str]) -> Iterator[None]:
    """Start processes with settings, unless the user has given others."""
    given = {name: value for name, value in settings.items() if name not in os.environ}
    os.environ.update(given)
    try:
        yield
    finally:
        for name in given:
            del os.environ[name]


def one_thread_each() -> contextlib.AbstractContextManager[None]:
    """Start processes whose matrix products take one thread: there are as many processes as processors."""
    return environment(dict.fromkeys(THREADS, "1"))
