"""A time for all of something, where what does it bounds each of its steps at most."""

import queue
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_NAME = "toolkit.deadline"


def is_left_behind() -> bool:
    """Whether something that was not done in time is still at work."""
    return any(thread.name == _NAME for thread in threading.enumerate())


def within(seconds: float, work: Callable[[], T]) -> T:
    """Return what a function returns, if it does so in time.

    It has a thread of its own, which is left behind at the deadline: no library bounds the time that a server
    may take for a status line, a header, or a chunk's length.
    """
    answers: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()

    def answer() -> None:
        try:
            answers.put((work(), None))
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            answers.put((None, error))

    threading.Thread(target=answer, name=_NAME, daemon=True).start()
    try:
        result, error = answers.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"not done within {seconds:g} s") from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]  # it is an answer where there was no error
