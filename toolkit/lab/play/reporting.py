"""What is told of a training: its figures to trackers, how far it is, and where it was when it is stopped."""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any

from toolkit.errors import IncompleteError, UsageError

TRACKERS = ("tensorboard", "wandb", "trackio")
"""What can be told; each is the name of its package, too."""
FOLDER = "reports"


def check_trackers(names: Sequence[str]) -> None:
    """Check that trackers can be told anything."""
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise UsageError(
            "a tracker's package is not installed",
            expected=", ".join(names),
            found=f"without {', '.join(missing)}",
            remedy=f"pip install {' '.join(missing)}; or leave --report-to out: the run keeps its own rows",
        )


def report(trainer: Any, names: Sequence[str], folder: Path) -> None:
    """Have trackers told what a trainer logs of each step."""
    if not names:
        return
    check_trackers(names)
    from transformers.integrations import get_reporting_integration_callbacks

    places = {name: str(folder / FOLDER / name) for name in TRACKERS}
    os.environ |= {"TENSORBOARD_LOGGING_DIR": places["tensorboard"], "WANDB_DIR": places["wandb"]}
    os.environ |= {"TRACKIO_DIR": places["trackio"]}
    os.environ.setdefault("WANDB_MODE", "offline")
    for name in names:
        Path(places[name]).mkdir(parents=True, exist_ok=True)
    trainer.args.run_name = trainer.args.run_name or folder.name
    for callback in get_reporting_integration_callbacks(list(names)):
        trainer.add_callback(callback)


PAUSE_S = 60.0
"""Seconds between two words on how far a step has come: a step of the paper's runs took some minutes."""


class _Told(KeyboardInterrupt):
    """The process was told to end; nothing that catches errors catches it."""


@contextmanager
def stopping(where: Callable[[], str], remedy: Callable[[], str]) -> Iterator[None]:
    """Answer SIGTERM, as schedulers send it, with an error that says where work was and what goes on."""
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
