"""A folder of work that can be stopped at any moment and gone on with: runs, trajectories, blocks."""

import contextlib
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from toolkit import errors, files
from toolkit.lab.executors.executor import Executor
from toolkit.lab.executors.places import A, J

R = TypeVar("R")


@contextlib.contextmanager
def held(folder: Path, locks: Mapping[str, str], parts: Iterable[Path]) -> Iterator[None]:
    """Hold what lies in a folder for one command alone, and clear away what a killed one was writing."""
    files.make_folder(folder)
    with contextlib.ExitStack() as holds:
        for lock, subject in locks.items():
            holds.enter_context(files.hold(folder, lock, subject))
        for left in (left for part in parts for left in part.glob(".*.part")):
            left.unlink(missing_ok=True)
        yield


def go_on(
    executor: Executor,
    jobs: Sequence[J],
    perform: Callable[[J], A],
    *,
    kept: Callable[[J], R | None],
    keep: Callable[[J, A], R],
    size: Callable[[J], int] = lambda _: 1,
) -> tuple[list[R], list[J]]:
    """Do the jobs that were not done before, and keep what comes of each as soon as it is there."""
    results = {number: result for number, job in enumerate(jobs) if (result := kept(job)) is not None}
    before = [jobs[number] for number in results]
    total = sum(map(size, jobs))

    def tell(doing: str) -> None:
        executor.watch(sum(size(jobs[number]) for number in results), total, doing)

    tell("what is there was checked")
    left = sorted((n for n in range(len(jobs)) if n not in results), key=lambda n: -size(jobs[n]))
    for number, answer in executor.each_step(deque(left), jobs.__getitem__, perform):
        results[number] = keep(jobs[number], answer)
        tell(jobs[number].subject)
    return [results[number] for number in range(len(jobs))], before


def set_aside(path: Path) -> Path:
    """Rename a file that is not whole; nothing is deleted."""
    number = 1 + len(list(path.parent.glob(f"{path.name}.damaged-*")))
    return path.replace(path.with_name(f"{path.name}.damaged-{number}"))


def write_document(path: Path, document: Mapping[str, Any]) -> None:
    """Write a JSON object."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    files.write_durably(path, f"{text}\n".encode())


def read_document(path: Path, remedy: str) -> dict[str, Any]:
    """Read a JSON object."""
    try:
        document = json.loads(files.read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise errors.DamagedError(
            f"{path.name} is not JSON", found=error, where=path, remedy=remedy
        ) from None
    if not isinstance(document, dict):
        raise errors.DamagedError(f"{path.name} holds no JSON object", where=path)
    return document
