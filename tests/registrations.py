"""Registrations as somebody would forge them who recomputes every hash."""

import hashlib
from pathlib import Path

from toolkit.prereg.chain import CHAIN, extend_chain
from toolkit.prereg.record import FROZEN


def chained(folder: Path) -> list[str]:
    """Return the names in a registration's chain, in order."""
    return [line.split("  ")[2] for line in (folder / CHAIN).read_text().splitlines()]


def rehash(folder: Path, later: list[str] | None = None) -> None:
    """Recompute the list of frozen files, and a chain over the later ones."""
    names = chained(folder) if later is None else later
    listed = [line.split("  ")[1] for line in (folder / FROZEN).read_text().splitlines()]
    hashes = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in listed}
    (folder / FROZEN).write_text("".join(f"{hashes[name]}  {name}\n" for name in listed))
    digest = hashlib.sha256((folder / FROZEN).read_bytes()).hexdigest()
    chain = b""
    for name in names:
        chain = extend_chain(chain, digest, name, (folder / name).read_bytes())
    (folder / CHAIN).write_bytes(chain)
