"""What came after the freeze: a chain of hashes to which lines can only be added.

A line holds a link, a file's SHA-256 and its name. The link is the SHA-256 of the link before, a line end,
and the rest of the line; the first one follows the digest of the frozen files. Whoever changes, drops or
reorders a line changes every link after it, and a timestamp over any of them.
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import DamagedError, VerificationError
from toolkit.files import read_bytes
from toolkit.line_ends import refuse_converted_list
from toolkit.prereg.hashlist import LARGEST_LIST, read_recorded

CHAIN = "LATER.chain"
NAMED = ("amendments", "deviations")
# What can come later, and where it has to lie: in another place it would be applied, and no token asked for.
_NAME = r"record\.toml|trust\.toml|(?:amendments|deviations|trust)/[A-Za-z]\w{0,39}\.toml"
_LINE = re.compile(rf"([0-9a-f]{{64}})  ([0-9a-f]{{64}})  ({_NAME})", re.ASCII)


@dataclass(frozen=True)
class Entry:
    """One line."""

    number: int  # from 1
    link: str  # the hash that binds it to everything before
    sha256: str  # of its file
    name: str  # of its file
    text: bytes  # the chain up to this line, this one included: what a timestamp of the entry is over

    @property
    def id(self) -> str:
        """Id of the amendment or deviation that it is for; empty for other files."""
        folder, _, name = self.name.rpartition("/")
        return name.removesuffix(".toml") if folder in NAMED else ""


def read_chain(folder: Path, frozen: str) -> tuple[tuple[Entry, ...], dict[str, bytes]]:
    """Read a registration's chain and the files that it names, checking each one."""
    raw = read_bytes(folder / CHAIN, LARGEST_LIST)
    refuse_converted_list(raw, VerificationError, folder / CHAIN)
    entries = parse_chain(raw, frozen, folder / CHAIN)
    return entries, {entry.name: read_recorded(folder, entry.name, entry.sha256) for entry in entries}


def parse_chain(raw: bytes, frozen: str, where: Path | str) -> tuple[Entry, ...]:
    """Return the entries of a chain."""
    entries: list[Entry] = []
    link = frozen
    lines = raw.split(b"\n")
    for number, line in enumerate(lines[:-1], start=1):
        match = _LINE.fullmatch(line.decode("utf-8", errors="replace"))
        names = {entry.name for entry in entries}
        if match is None or match[3] in names:
            raise DamagedError(
                "a chain has a line that it cannot have",
                expected="link, SHA-256 and name of a record, trust file, amendment or deviation, once each",
                found=line[:160].decode("utf-8", errors="replace"),
                where=f"{where} line {number}",
            )
        link = _link(link, match[2], match[3])
        if match[1] != link:
            raise VerificationError(
                "the chain of later files is broken: a line was changed, dropped or moved",
                expected=f"link {link}",
                found=f"link {match[1]}",
                where=f"{where} line {number}",
                remedy="restore the recorded chain"
                + (" and FROZEN.sha256, which the first line follows" if number == 1 else "")
                + "; what is new goes to the chain's end",
            )
        text = b"\n".join([*lines[:number], b""])
        entries.append(Entry(number, link, match[2], match[3], text))
    if lines[-1]:
        raise DamagedError("a chain ends within a line", found=lines[-1][:160], where=where)
    return tuple(entries)


def extend_chain(raw: bytes, frozen: str, name: str, content: bytes) -> bytes:
    """Return a chain with one more line."""
    entries = parse_chain(raw, frozen, CHAIN)
    sha256 = hashlib.sha256(content).hexdigest()
    link = _link(entries[-1].link if entries else frozen, sha256, name)
    longer = raw + f"{link}  {sha256}  {name}\n".encode()
    parse_chain(longer, frozen, CHAIN)
    return longer


def _link(before: str, sha256: str, name: str) -> str:
    return hashlib.sha256(f"{before}\n{sha256}  {name}\n".encode()).hexdigest()
