"""Ends that come from outside, and what is said meanwhile: a message on SIGTERM, a word now and then."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic

from toolkit.errors import IncompleteError

PAUSE_S = 60.0
"""Seconds between two words on how far a step has come: a step of the paper's runs took some minutes."""


class _Told(KeyboardInterrupt):
    """The process was told to end; nothing that catches errors catches it."""


@contextmanager
def stopping(where: Callable[[], str], remedy: Callable[[], str]) -> Iterator[None]:
    """Answer SIGTERM with an error that says where work was, and what goes on from there.

    Schedulers send it before they take a machine away. Outside the main thread nothing can be answered.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def told(number: int, _: object) -> None:
        raise _Told(signal.Signals(number).name)

    before = signal.signal(signal.SIGTERM, told)
    try:
        yield
    except _Told as stop:
        raise IncompleteError("told to stop", found=stop, where=where(), remedy=remedy()) from None
    finally:
        signal.signal(signal.SIGTERM, before if before is not None else signal.SIG_DFL)


@dataclass
class Pace:
    """Says how far something has come, and not oftener than now and then."""

    say: Callable[[str], None]  # told
    pause_s: float = PAUSE_S  # seconds between two words
    _last: float = field(default_factory=monotonic)

    def __call__(self, text: str) -> None:
        """Say it, or leave it out."""
        now = monotonic()
        if now - self._last >= self.pause_s:
            self._last = now
            self.say(text)
