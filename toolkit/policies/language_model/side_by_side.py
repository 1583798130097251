"""Waiting for many answers at once, in threads that nobody has to wait for afterwards."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")
R = TypeVar("R")


def side_by_side(work: Callable[[T], R], items: Sequence[T], most: int) -> list[R]:
    """Return what a function returns for each item, a number of them at work at once.

    After the first failure, or an interrupt, no further item is begun; those at work are left to themselves:
    an answer that nobody wants any more may take minutes.

    Args:
        work: the function.
        items: the items.
        most: how many at once, >= 1.

    Raises:
        BaseException: whatever the function raised first.
    """
    waiting: queue.SimpleQueue[tuple[int, T]] = queue.SimpleQueue()
    for numbered in enumerate(items):
        waiting.put(numbered)
    answers: queue.SimpleQueue[tuple[int, R | None, BaseException | None]] = queue.SimpleQueue()
    stopped = threading.Event()

    def take() -> None:
        while not stopped.is_set():
            try:
                number, item = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                answers.put((number, work(item), None))
            except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
                answers.put((number, None, error))

    for _ in range(min(most, len(items))):
        threading.Thread(target=take, daemon=True).start()
    found: dict[int, R] = {}
    try:
        while len(found) < len(items):
            number, answer, error = answers.get()
            if error is not None:
                raise error
            found[number] = answer  # type: ignore[assignment]  # it is an answer where there was no error
    finally:
        stopped.set()
    return [found[number] for number in range(len(items))]
