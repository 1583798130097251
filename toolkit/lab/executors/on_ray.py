"""Jobs done by Ray: on this machine's processors, or on all of a cluster's."""

import contextlib
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import toolkit
from toolkit.errors import IncompleteError, ToolkitError, UsageError
from toolkit.lab.executors.places import A, J, Places, attempt, environment, one_thread_each
from toolkit.lab.training.devices import KEPT, visible_gpus

STORE_BYTES = 100_000_000
"""What a Ray started here holds of answers in memory; the rest goes through the disk. Ray takes 75 MiB at
least, and the largest answer, a trajectory's evidence, is 2 MB."""
PATIENCE_S = 5.0
"""How long a cluster's address may take to answer. Ray itself would ask for minutes."""
AUTO = "auto"
SETTINGS = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
"""Ray reports its use to nobody, and hides no accelerator from a task that asks for none."""


@contextlib.contextmanager
def connected(address: str | None, processors: int | None) -> Iterator[tuple[int, int]]:
    """Connect with Ray, and part with it at the end; a Ray that was started here ends with it."""
    ray = _imported()
    if address is None and ray.is_initialized():
        yield _resources(ray)
        return
    if address is not None:
        _check_answers(address)
    with _unsaid(), _own_terminate():
        try:
            _connect(ray, address, processors)
            if threading.current_thread() is threading.main_thread():
                # Part with Ray also where a scheduler has this process end, with the code that it expects.
                signal.signal(signal.SIGTERM, _leave)
            yield _resources(ray)
        finally:
            ray.shutdown()


def _imported() -> Any:
    try:
        import ray
    except ImportError as error:
        remedy = "pip install 'paired-rollouts-toolkit[ray]', or use --executor local"
        raise IncompleteError("the executor ray needs the package ray", found=error, remedy=remedy) from None
    return ray


def _check_answers(address: str) -> None:
    """Check that somebody takes connections at an address: Ray would wait for minutes."""
    if address == AUTO:
        return
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal():
        expected = "HOST:PORT as `ray start` prints it, or auto; on a machine of the cluster"
        raise UsageError("this is no address of a Ray cluster", expected=expected, found=address)
    try:
        socket.create_connection((host.strip("[]"), int(port)), PATIENCE_S).close()
    except (OSError, OverflowError, UnicodeError) as error:
        remedy = "give what `ray start --head` printed, or no --address: Ray is started here"
        raise IncompleteError("no Ray cluster answers", found=error, where=address, remedy=remedy) from None


def _connect(ray: Any, address: str | None, processors: int | None) -> None:
    options: dict[str, Any] = {"address": address}
    if address is None:
        # "local" rather than None: a cluster that the environment names was not asked for.
        options = {"address": "local", "num_cpus": processors, "include_dashboard": False}
        options["object_store_memory"] = STORE_BYTES
    try:
        with one_thread_each(), environment(SETTINGS):
            ray.init(log_to_driver=False, configure_logging=False, **options)
    except Exception as error:  # noqa: BLE001 - Ray says which of many things is wrong by its text alone
        text = " ".join(str(error).split())
        what = "is of another version" if text.startswith("Version mismatch") else "cannot be reached"
        raise IncompleteError(
            "Ray cannot be started" if address is None else f"the Ray cluster {what}",
            found=text or type(error).__name__,
            where=address,
            remedy="every machine needs the same versions of Python, Ray and this package; "
            "the command has to be given on a machine of the cluster"
            if address
            else "--executor local needs no Ray",
        ) from None


def _resources(ray: Any) -> tuple[int, int]:
    """Return the processors and GPUs of all machines; one processor where a cluster has no machine yet."""
    there = ray.cluster_resources()
    return max(1, int(there.get("CPU", 1))), int(there.get("GPU", 0))


def count_gpus(address: str | None) -> int:
    """Return the GPUs of a cluster, or of this machine where Ray is started on it; errors as `connected`."""
    if address is None and not _imported().is_initialized():
        return len(visible_gpus())
    with connected(address, None) as (_, gpus):
        return gpus


@contextlib.contextmanager
def _unsaid() -> Iterator[None]:
    """Keep off stdout what Ray tells of its processes, and off stderr what it merely remarks."""
    logger = logging.getLogger("ray")
    before = logger.level
    logger.setLevel(logging.ERROR)
    without: Any = _WithoutRay(sys.stdout)
    with contextlib.redirect_stdout(without):
        try:
            yield
        finally:
            logger.setLevel(before)


class _WithoutRay:
    """A stream as it is, but for what Ray's own threads print."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        if threading.current_thread().name.startswith("ray_"):
            return len(text)
        return int(self._stream.write(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def _own_terminate() -> Iterator[None]:
    """Keep how this process answers SIGTERM: Ray would answer it from now on, with a code of its own."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


def _leave(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)


MOST_LOSSES = 3
"""How often a job may lose its process: one that takes more memory than there is would be sent for ever."""


class RayTasks(Places[J, A]):
    """Does jobs as tasks of Ray, which is connected; `say` is told of what was lost."""

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
        from ray import exceptions as known

        # What Ray raises where a job is sound and whoever did it, or held its answer, is gone.
        died = (
            known.WorkerCrashedError,
            known.RayActorError,
            known.NodeDiedError,
            known.LocalRayletDiedError,
        )
        lost = (*died, known.OutOfMemoryError, known.ObjectLostError)
        while self._sent:
            ready, _ = ray.wait(list(self._sent), num_returns=1)
            place = self._sent.pop(ready[0])
            try:
                answer = ray.get(ready[0])
            except known.RayError as error:
                if not isinstance(error, lost):
                    raise IncompleteError(
                        "Ray could not do a job",
                        found=str(error).strip().splitlines()[-1],
                        where=str(self._jobs[place]),
                        remedy=f"install this package in version {toolkit.__version__} on every machine "
                        "of the cluster",
                    ) from None
                self._send_again(place, error)
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


def _do(perform: Callable[[J], A], job: J, version: str) -> A | ToolkitError:
    if toolkit.__version__ != version:
        problem = "a machine of the Ray cluster has another version of this package"
        found = toolkit.__version__
        remedy = "install the same version on every machine: another one may leave other bytes"
        return UsageError(problem, expected=version, found=found, where=socket.gethostname(), remedy=remedy)
    try:
        return attempt(perform, job)
    except ToolkitError as error:
        return error


class _Worker:
    def do(self, *job: Any) -> Any:
        return _do(*job)


def _sentence(error: Exception) -> str:
    return " ".join(str(error).split()).partition(". ")[0].rstrip(".")
