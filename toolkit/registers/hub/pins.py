"""What the toolkit remembers of a repository: which commit each branch and tag was when it was last asked."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from toolkit.errors import DamagedError
from toolkit.files import in_turn, read_text, write_text
from toolkit.registers.hub.client import repository_cache
from toolkit.registers.hub.reference import is_commit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAME = "toolkit-pins.json"
LOCK = "toolkit-pins.lock"


@dataclass(frozen=True)
class Pin:
    """A name's commit. A tag is not expected to move; a branch is."""

    commit: str
    is_tag: bool


def read_pins(repository: str) -> dict[str, Pin]:
    """Return what is remembered of a repository, by name of the branch or tag.

    Raises:
        IncompleteError: it cannot be read.
        DamagedError: it was not written by this toolkit.
    """
    path = _path(repository)
    if not path.exists():
        return {}
    try:
        return {name: _pin(pin) for name, pin in json.loads(read_text(path)).items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DamagedError(
            "what was remembered of the repository's tags cannot be read",
            where=path,
            remedy="remove the file, and compare the next pull's commit with one that you know",
        ) from None


def change_pin(repository: str, name: str, changed: Callable[[Pin | None], Pin]) -> None:
    """Remember a name's commit, in view of the one that is remembered.

    Commands that run at once take turns from the reading to the writing: none forgets what another
    remembered, and none overlooks it.

    Args:
        repository: `owner/name`.
        name: of the branch or tag.
        changed: gives the new pin for the old one, or raises, and then nothing is written.

    Raises:
        IncompleteError: the cache cannot be written.
        DamagedError: as `read_pins`.
    """
    path = _path(repository)
    old = read_pins(repository).get(name)
    if old is not None and changed(old) == old:
        return  # nothing to write, which a cache that cannot be written allows
    with in_turn(path.with_name(LOCK)):
        pins = read_pins(repository)
        pins[name] = changed(pins.get(name))
        document = {key: asdict(pin) for key, pin in pins.items()}
        write_text(path, json.dumps(document, indent=2, sort_keys=True) + "\n")


def _pin(pin: dict[str, object]) -> Pin:
    commit, is_tag = pin["commit"], pin["is_tag"]
    if not is_commit(commit) or not isinstance(is_tag, bool):
        raise TypeError(pin)
    return Pin(commit, is_tag)


def _path(repository: str) -> Path:
    return repository_cache(repository) / NAME
