"""Jobs done by Ray: on this machine's processors, or on all of a cluster's.

1. Each job is a task of one processor. Ray keeps its processes from task to task, so that each generates the
   study's tasks once.
2. A job whose process is lost, with its machine or without, is sent again, a bounded number of times.
3. Its answer comes back as data; who asked for it writes it down.

Every machine needs this package in the version of whoever sends the jobs: another may leave other bytes.
"""

import socket
from collections.abc import Callable
from typing import Any

import toolkit
from toolkit.errors import IncompleteError, ToolkitError, UsageError
from toolkit.lab.executors.places import A, J, Places, answer_or_error
from toolkit.lab.training.devices import KEPT

MOST_LOSSES = 3
"""How often a job may lose its process: one that takes more memory than there is would be sent for ever."""


class RayTasks(Places[J, A]):
    """Does jobs as tasks of Ray, which is connected.

    Args:
        number: of places.
        perform: does a job.
        say: told of what was lost.
        gpu: as `Executor` has it.
    """

    def __init__(
        self, number: int, perform: Callable[[J], A], say: Callable[[str], None], gpu: str | None = None
    ) -> None:
        import ray

        self.number = number
        self._perform = perform
        self._say = say
        # Ray would send a lost job again by itself, and tell nobody. What was given a GPU ends with its job:
        # in a process that had another before, CUDA would stay with that one.
        alone = {"num_gpus": 1, "max_calls": 1} if gpu else {}
        self._task: Any = ray.remote(num_cpus=1, max_retries=0, **alone)(_do)
        self._worker: Any = (
            ray.remote(num_cpus=1, num_gpus=1, max_restarts=0)(_Worker) if gpu == KEPT else None
        )
        self._workers: dict[int, Any] = {}
        self._sent: dict[Any, int] = {}
        self._jobs: dict[int, J] = {}
        self._losses: dict[int, int] = {}

    def start(self, place: int, job: J) -> None:
        """Send a job."""
        self._jobs[place] = job
        self._losses[place] = 0
        self._send(place)

    def wait(self) -> list[tuple[int, A]]:
        """Wait for an answer; send again what was lost meanwhile."""
        import ray

        while self._sent:
            ready, _ = ray.wait(list(self._sent), num_returns=1)
            place = self._sent.pop(ready[0])
            try:
                answer = ray.get(ready[0])
            except ray.exceptions.RayError as error:
                if not isinstance(error, _losses()):
                    raise self._impossible(place, error) from None
                self._send_again(place, error)  # 2
                continue
            if isinstance(answer, ToolkitError):
                raise answer
            del self._jobs[place]
            return [(place, answer)]
        return []

    def close(self) -> None:
        """End processes that kept their GPUs: Ray would wait until nobody here knows them any more."""
        import ray

        for worker in self._workers.values():
            ray.kill(worker)
        self._workers.clear()

    def _send(self, place: int) -> None:
        job = (self._perform, self._jobs[place], toolkit.__version__)
        if self._worker is None:
            sent = self._task.remote(*job)
        else:
            if place not in self._workers:
                self._workers[place] = self._worker.remote()
            sent = self._workers[place].do.remote(*job)
        self._sent[sent] = place

    def _send_again(self, place: int, error: Exception) -> None:
        self._workers.pop(place, None)
        self._losses[place] += 1
        if self._losses[place] > MOST_LOSSES:
            raise IncompleteError(
                "a job lost its process again and again",
                expected=f"at most {MOST_LOSSES} losses",
                found=_sentence(error),
                where=str(self._jobs[place]),
                remedy="what is finished is kept, and the same command goes on from there; "
                "where memory is short, use fewer --processes",
            )
        often = f"loss {self._losses[place]} of at most {MOST_LOSSES}"
        self._say(
            f"{self._jobs[place]}: its process was lost, and it is sent again ({often}: {_sentence(error)})"
        )
        self._send(place)

    def _impossible(self, place: int, error: Exception) -> IncompleteError:
        return IncompleteError(
            "Ray could not do a job",
            found=str(error).strip().splitlines()[-1],
            where=str(self._jobs[place]),
            remedy=f"install this package in version {toolkit.__version__} on every machine of the cluster",
        )


def _do(perform: Callable[[J], A], job: J, version: str) -> A | ToolkitError:
    """Do a job, in a process of Ray's."""
    if toolkit.__version__ != version:
        return UsageError(
            "a machine of the Ray cluster has another version of this package",
            expected=version,
            found=toolkit.__version__,
            where=socket.gethostname(),
            remedy="install the same version on every machine: another one may leave other bytes",
        )
    return answer_or_error(perform, job)


class _Worker:
    """Does jobs one after the other, in a process of Ray's that keeps its GPU."""

    def do(self, *job: Any) -> Any:
        """Do a job."""
        return _do(*job)


def _losses() -> tuple[type[Exception], ...]:
    """Return what Ray raises where a job is sound and whoever did it, or held its answer, is gone."""
    from ray import exceptions as known

    return (
        known.WorkerCrashedError,
        known.RayActorError,
        known.NodeDiedError,
        known.LocalRayletDiedError,
        known.OutOfMemoryError,
        known.ObjectLostError,
    )


def _sentence(error: Exception) -> str:
    """Return the first sentence of what Ray says."""
    return " ".join(str(error).split()).partition(". ")[0].rstrip(".")
