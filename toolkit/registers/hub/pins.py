"""What the toolkit remembers of a repository: which commit each branch and tag was when it was last asked."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from toolkit.errors import DamagedError
from toolkit.files import read_text, write_text
from toolkit.registers.hub.client import repository_cache

if TYPE_CHECKING:
    from pathlib import Path

NAME = "toolkit-pins.json"


@dataclass(frozen=True)
class Pin:
    """A name's commit. A tag is not expected to move; a branch is."""

    commit: str
    is_tag: bool


def read_pins(repository: str) -> dict[str, Pin]:
    """Return what is remembered of a repository, by name of the branch or tag.

    Raises:
        DamagedError: it was not written by this toolkit.
    """
    path = _path(repository)
    if not path.exists():
        return {}
    try:
        return {str(name): Pin(str(p["commit"]), bool(p["is_tag"])) for name, p in _document(path).items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DamagedError(
            "what was remembered of the repository's tags cannot be read",
            where=path,
            remedy="remove the file, and compare the next pull's commit with one that you know",
        ) from None


def write_pin(repository: str, name: str, pin: Pin) -> None:
    """Remember a name's commit.

    Raises:
        IncompleteError: the cache cannot be written.
        DamagedError: as `read_pins`.
    """
    pins = read_pins(repository)
    if pins.get(name) == pin:
        return
    document = {key: asdict(value) for key, value in {**pins, name: pin}.items()}
    path = _path(repository)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(document, indent=2, sort_keys=True) + "\n")


def _document(path: Path) -> dict[str, dict[str, object]]:
    document: dict[str, dict[str, object]] = json.loads(read_text(path))
    return document


def _path(repository: str) -> Path:
    return repository_cache(repository) / NAME
