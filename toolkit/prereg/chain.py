"""The files of a registration: a list of those that were frozen, as of `sha256sum`, and a chain of later."""

import contextlib
import hashlib
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from toolkit.errors import DamagedError, ToolkitError, VerificationError
from toolkit.files import hold, read_bytes, write_bytes
from toolkit.line_ends import refuse_converted, refuse_converted_list
from toolkit.prereg.record import EVIDENCE, INSIDE

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


LARGEST_FROZEN = 8 * 2**20
"""Bytes of a frozen file: a thousand times the longest protocol here is text of a thousand pages."""
LARGEST_LIST = 2**20
"""Bytes of a list or a chain: ten thousand lines."""
LARGEST_REGISTRATION = 256 * 2**20
"""Bytes of all files that a list names: they are held at once."""
CACHED = "blobs"  # what the Hub's cache calls the folder of all contents

_LISTED = re.compile(rf"([0-9a-f]{{64}})  ({INSIDE}\w[\w./-]*)", re.ASCII)


def write_list(contents: Mapping[str, bytes]) -> bytes:
    """Return the list of files, given their bytes by name."""
    lines = [f"{hashlib.sha256(contents[name]).hexdigest()}  {name}\n" for name in sorted(contents)]
    raw = "".join(lines).encode()
    entries(raw, "the list of files")
    return raw


def read_listed(folder: Path, list_name: str) -> tuple[str, dict[str, bytes]]:
    """Read the files that a hash list names and check each one."""
    raw = read_bytes(folder / list_name, LARGEST_LIST)
    refuse_converted_list(raw, VerificationError, folder / list_name)
    recorded = entries(raw, folder / list_name)
    contents: dict[str, bytes] = {}
    for name, sha256 in recorded.items():
        contents[name] = read_recorded(folder, name, sha256)
        if sum(map(len, contents.values())) > LARGEST_REGISTRATION:
            raise DamagedError(
                "the files of the list are too long to be read",
                expected=f"{LARGEST_REGISTRATION} bytes together at most",
                where=folder / list_name,
                remedy="keep data out of the registration, and name its SHA-256 in the protocol",
            )
    return hashlib.sha256(raw).hexdigest(), contents


def read_recorded(folder: Path, name: str, recorded: str) -> bytes:
    """Read a file and check its hash."""
    # The Hub's cache keeps every file as a link to its content, which is held against its hash here.
    is_cached = (folder / name).resolve().parent.name == CACHED
    if (folder / name).is_symlink() and not is_cached:
        raise VerificationError(
            f"{name} is a link: what it leads to is not part of the registration",
            expected="a file",
            where=folder / name,
            remedy="put the recorded file there",
        )
    content = read_bytes(folder / name, LARGEST_FROZEN)
    sha256 = hashlib.sha256(content).hexdigest()
    if sha256 != recorded:
        refuse_converted(name, content, recorded, VerificationError, folder / name)
        raise VerificationError(
            f"{name} was changed after its hash was recorded",
            expected=f"SHA-256 {recorded}",
            found=f"SHA-256 {sha256}",
            where=folder / name,
            remedy="restore the recorded file; to change a frozen rule, amend it in a file of its own",
        )
    return content


def entries(raw: bytes, where: Path | str) -> dict[str, str]:
    """Return the hashes of a list by name."""
    hashes: dict[str, str] = {}
    text = raw.decode("utf-8", errors="replace")
    for number, line in enumerate(text.split("\n")[:-1], start=1):
        match = _LISTED.fullmatch(line)
        if match is None or match[2] in hashes:
            raise DamagedError(
                "a hash list has a line that it cannot have",
                expected="64 hexadecimal digits, two spaces, a file name inside the folder, once each",
                found=line[:100],
                where=f"{where} line {number}",
            )
        hashes[match[2]] = match[1]
    if not text.endswith("\n") or list(hashes) != sorted(hashes):
        raise DamagedError(
            "a hash list is not written the one way that it has",
            expected="lines sorted by file name, each with its end",
            where=where,
        )
    return hashes


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
        shutil.rmtree(pending, ignore_errors=True)
    else:
        pending.unlink(missing_ok=True)


def promised(folder: Path, frozen: str, chain: bytes) -> dict[str, str]:
    """Return the hashes of the files of an addition that was cut short, by name; some may be in place."""
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
