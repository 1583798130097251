"""Jobs done on this machine: in this process, or in others that live as long as it.

Other processes are spawned, each once: generating the tasks takes a process seconds, and is done once each.
They hold nothing that is lost with them.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import wait
from typing import TYPE_CHECKING

from toolkit.errors import IncompleteError, ToolkitError
from toolkit.study.executors.executor import A, Executor, J, answer_or_error, attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

GRACE_S = 2.0
THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


class Here(Executor[J, A]):
    """Does one job at a time, in this process."""

    places = 1

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


class Workers(Executor[J, A]):
    """Does jobs in processes of their own."""

    def __init__(self, places: int, perform: Callable[[J], A]) -> None:
        self.places = places
        self._jobs: dict[int, J] = {}
        self._ends: list[Connection] = []
        self._processes: list[BaseProcess] = []
        context = multiprocessing.get_context("spawn")
        with _undisturbed(), one_thread_each():
            for _ in range(places):
                ours, theirs = context.Pipe()
                process = context.Process(target=_work, args=(theirs, perform), daemon=True)
                process.start()
                # Only the process may hold its end: a process that dies is noticed by its end being closed.
                theirs.close()
                self._ends.append(ours)
                self._processes.append(process)

    def start(self, place: int, job: J) -> None:
        """Send a job to a process."""
        self._jobs[place] = job
        try:
            self._ends[place].send(job)
        except OSError:
            raise self._gone(place) from None

    def wait(self) -> list[tuple[int, A]]:
        """Wait until at least one process has answered."""
        ready = wait([self._ends[place] for place in self._jobs])
        answers = []
        for place in [place for place in sorted(self._jobs) if self._ends[place] in ready]:
            try:
                answer = self._ends[place].recv()
            except (EOFError, OSError):
                raise self._gone(place) from None
            if isinstance(answer, ToolkitError):
                raise answer
            del self._jobs[place]
            answers.append((place, answer))
        return answers

    def stop(self) -> None:
        """End the processes; what they were at is played again another time."""
        for end in self._ends:
            end.close()
        for place, process in enumerate(self._processes):
            if place not in self._jobs:
                # Without work it ends by itself, and takes what its libraries had opened with it.
                process.join(GRACE_S)
            process.terminate()
        for process in self._processes:
            process.join(GRACE_S)
            if process.is_alive():
                process.kill()

    def _gone(self, place: int) -> IncompleteError:
        process = self._processes[place]
        process.join(GRACE_S)
        return IncompleteError(
            "a process ended in the middle of its work",
            found=f"exit code {process.exitcode}: killed, or out of memory",
            where=self._jobs[place].subject,
            remedy="give the same command again: it goes on from the newest checkpoints; or use fewer "
            "--processes",
        )


def _work(end: Connection, perform: Callable[[J], A]) -> None:
    """Do jobs until nobody is left to send any."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            end.send(answer_or_error(perform, end.recv()))


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Start processes that an interrupt at the keyboard does not reach: their parent ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def one_thread_each() -> Iterator[None]:
    """Start processes whose matrix products take one thread: there are as many processes as processors."""
    given = {name: "1" for name in THREADS if name not in os.environ}
    os.environ.update(given)
    try:
        yield
    finally:
        for name in given:
            del os.environ[name]
