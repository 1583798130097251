"""What a freeze or an addition has obtained and not put in its place yet: a hidden folder.

A command that failed, or was killed, goes on from here; a registration is never half frozen.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from toolkit.errors import ToolkitError
from toolkit.files import hold, read_bytes, write_bytes
from toolkit.prereg.chain import parse_chain
from toolkit.prereg.hashlist import LARGEST_LIST
from toolkit.prereg.record import EVIDENCE

PENDING = ".pending"
LOCK = ".lock"
DOCUMENT = "document"


def pending_document(folder: Path) -> bytes | None:
    """Return what is about to be timestamped, or None."""
    path = folder / PENDING / DOCUMENT
    return read_bytes(path, LARGEST_LIST) if path.is_file() else None


def begin(folder: Path, document: bytes) -> Path:
    """Return the folder that waits for a document's evidence; one for another document is emptied."""
    pending = folder / PENDING
    if pending_document(folder) != document or not (pending / EVIDENCE).is_dir():
        discard(folder)
        (pending / EVIDENCE).mkdir(parents=True)
        write_bytes(pending / DOCUMENT, document)
    return pending


def discard(folder: Path) -> None:
    """Remove what waits."""
    pending = folder / PENDING
    if pending.is_dir() and not pending.is_symlink():
        import shutil

        shutil.rmtree(pending, ignore_errors=True)
    else:
        pending.unlink(missing_ok=True)


def promised(folder: Path, frozen: str, chain: bytes) -> dict[str, str]:
    """Return the files of an addition that was cut short, and their hashes, by name.

    They may lie in their places already, and belong to nothing until the chain names them.
    """
    document = pending_document(folder)
    if document is None or not document.startswith(chain) or document == chain:
        return {}
    try:
        entries = parse_chain(document, frozen, PENDING)
    except ToolkitError:
        return {}
    return {entry.name: entry.sha256 for entry in entries if len(entry.text) > len(chain)}


def is_left_over(name: str) -> bool:
    """Whether a file's name is one that a writer who was killed leaves behind."""
    last = name.rpartition("/")[2]
    return last.startswith(".") and last.endswith(".part")


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a registration for one command alone; the hold ends with the process, however that ends."""
    with hold(folder, LOCK, "registration"):
        for left in [path for path in folder.rglob(".*.part") if path.is_file()]:
            left.unlink()
        yield
