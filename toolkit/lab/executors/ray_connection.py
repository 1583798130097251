"""Connecting with Ray: one that is started here for this once, or a cluster's."""

import contextlib
import logging
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from typing import Any, NoReturn

from toolkit.errors import IncompleteError, UsageError
from toolkit.lab.executors.places import environment, one_thread_each
from toolkit.lab.training.devices import visible_gpus

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
            _leave_when_asked()
            yield _resources(ray)
        finally:
            ray.shutdown()


def _imported() -> Any:
    try:
        import ray
    except ImportError as error:
        raise IncompleteError(
            "the executor ray needs the package ray",
            found=error,
            remedy="pip install 'paired-rollouts-toolkit[ray]', or use --executor local",
        ) from None
    return ray


def _check_answers(address: str) -> None:
    """Check that somebody takes connections at an address: Ray would wait for minutes."""
    if address == AUTO:
        return
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal():
        raise UsageError(
            "this is no address of a Ray cluster",
            expected="HOST:PORT as `ray start` prints it, or auto; on a machine of the cluster",
            found=address,
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), PATIENCE_S).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise IncompleteError(
            "no Ray cluster answers",
            found=error,
            where=address,
            remedy="give what `ray start --head` printed, or no --address: Ray is started here",
        ) from None


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
    """Keep off stdout what Ray tells of its processes, and off stderr what it merely remarks.

    A loss comes back as an exception too, and is told by whoever catches it.
    """
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
        """Write, unless this is a thread of Ray's."""
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


def _leave_when_asked() -> None:
    """Part with Ray also where a scheduler has this process end, and end with the code that it expects."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _leave)


def _leave(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)
