"""What does jobs: as many at once as it has places. A job is data, and what performs it is one function.

Whoever starts the jobs writes their answers down. Who does them writes nothing, and nothing is lost with it:
a job is begun anew from what it carries.
"""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from toolkit.errors import DamagedError, IncompleteError, ToolkitError


class Job(Protocol):
    """What is to be done: a frozen dataclass that carries all that it needs, and can be pickled.

    Its text (`str`) says in a few words what is done, for the `where` of an error.
    """

    @property
    def subject(self) -> str:
        """What the job is about: a run, a trajectory, a set."""


J = TypeVar("J", bound=Job)
A = TypeVar("A")


class Places(ABC, Generic[J, A]):
    """Does jobs, as many at once as it has places.

    Args:
        number: how many; a job is started in one of `range(number)`.
    """

    number: int

    @abstractmethod
    def start(self, place: int, job: J) -> None:
        """Begin a job in a place that is free.

        Raises:
            IncompleteError: whoever works there is gone.
        """

    @abstractmethod
    def wait(self) -> list[tuple[int, A]]:
        """Wait for answers; return each with its place, which is free again.

        Raises:
            ToolkitError: a job failed.
        """


def attempt(perform: Callable[[J], A], job: J) -> A:
    """Do a job, wherever this is.

    Raises:
        ToolkitError: it failed; the error says which job.
    """
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
        raise DamagedError(
            f"{job.subject} could not be played",
            found=f"{type(error).__name__}: {error}",
            where=f"{job}: {line.filename}, line {line.lineno}",
        ) from error


def answer_or_error(perform: Callable[[J], A], job: J) -> A | ToolkitError:
    """Do a job for somebody in another process: what it failed with is an answer too."""
    try:
        return attempt(perform, job)
    except ToolkitError as error:
        return error
