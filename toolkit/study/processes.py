"""Where jobs are done: in this process, or in others that live as long as it.

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
from typing import TYPE_CHECKING, Protocol

from toolkit.errors import IncompleteError, ToolkitError
from toolkit.study.jobs import perform

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from toolkit.study.jobs import Answer, Job, Play

GRACE_S = 2.0
THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


class Executor(Protocol):
    """Does jobs, as many at once as it has places."""

    places: int

    def start(self, place: int, job: Job) -> None:
        """Begin a job in a place that is free."""

    def wait(self) -> list[tuple[int, Answer]]:
        """Wait for answers; return each with its place, which is free again.

        Raises:
            ToolkitError: a job failed.
        """


class Here:
    """Does one job at a time, in this process."""

    places = 1

    def __init__(self, play: Play) -> None:
        self._play = play
        self._job: Job | None = None

    def start(self, place: int, job: Job) -> None:  # noqa: ARG002 - there is one place
        """Keep the job until it is waited for."""
        self._job = job

    def wait(self) -> list[tuple[int, Answer]]:
        """Do the job."""
        job, self._job = self._job, None
        return [] if job is None else [(0, perform(job, self._play))]


class Workers:
    """Does jobs in processes of their own."""

    def __init__(self, places: int, play: Play) -> None:
        self.places = places
        self._jobs: dict[int, Job] = {}
        self._ends: list[Connection] = []
        self._processes: list[BaseProcess] = []
        context = multiprocessing.get_context("spawn")
        with _undisturbed(), _one_thread_each():
            for _ in range(places):
                ours, theirs = context.Pipe()
                process = context.Process(target=_work, args=(theirs, play), daemon=True)
                process.start()
                # Only the process may hold its end: a process that dies is noticed by its end being closed.
                theirs.close()
                self._ends.append(ours)
                self._processes.append(process)

    def start(self, place: int, job: Job) -> None:
        """Send a job to a process."""
        self._jobs[place] = job
        try:
            self._ends[place].send(job)
        except OSError:
            raise self._gone(place) from None

    def wait(self) -> list[tuple[int, Answer]]:
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
        for process in self._processes:
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


@contextlib.contextmanager
def executor(processes: int, play: Play) -> Iterator[Executor]:
    """Provide a place to do jobs in: this process, or as many others as are wanted."""
    if processes == 1:
        yield Here(play)
        return
    workers = Workers(processes, play)
    try:
        yield workers
    finally:
        workers.stop()


def _work(end: Connection, play: Play) -> None:
    """Do jobs until nobody is left to send any."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            job = end.recv()
            try:
                answer: Answer | ToolkitError = perform(job, play)
            except ToolkitError as error:
                answer = error
            end.send(answer)


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
def _one_thread_each() -> Iterator[None]:
    """Start processes whose matrix products take one thread: there are as many processes as processors."""
    given = {name: "1" for name in THREADS if name not in os.environ}
    os.environ.update(given)
    try:
        yield
    finally:
        for name in given:
            del os.environ[name]
