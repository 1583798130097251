"""Line ends that Git rewrote: why a hash differs though nobody edited the file, and how to prevent it."""

import hashlib
from pathlib import Path

from toolkit.errors import ToolkitError
from toolkit.files import read_bytes, write_bytes

ATTRIBUTES = ".gitattributes"
PROTECTED = ("/prereg/** -text", "/registers/** -text", "/mappings/** -text", "/cards/** -text")
ADDED = f"{ATTRIBUTES}: Git converts no line ends of what is hashed"
REMEDY = (
    f"nothing is lost: put {' and '.join(f'`{line}`' for line in PROTECTED[:2])} into {ATTRIBUTES}, set "
    "`git config core.autocrlf false`, and check the files out anew: "
    "git rm -r -q --cached . && git reset --hard"
)
CAUSE = "its line ends were converted from LF to CRLF, as Git does with core.autocrlf; nothing else differs"
_BLOCK = 2**20


def is_converted(content: bytes, sha256: str) -> bool:
    """Whether bytes have this SHA-256 once every CRLF is LF again."""
    return b"\r\n" in content and hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest() == sha256


def is_converted_file(path: Path, sha256: str) -> bool:
    """Whether a file of any length has this SHA-256 once every CRLF is LF again."""
    digest, held, has_crlf = hashlib.sha256(), b"", False
    try:
        with path.open("rb") as stream:
            while block := stream.read(_BLOCK):
                block = held + block
                held = b"\r" if block.endswith(b"\r") else b""
                has_crlf |= b"\r\n" in block
                digest.update(block.removesuffix(held).replace(b"\r\n", b"\n"))
    except OSError:
        return False
    digest.update(held)
    return has_crlf and digest.hexdigest() == sha256


def refuse_converted(
    name: str, content: bytes | Path, sha256: str, error: type[ToolkitError], where: object
) -> None:
    """Raise, with the cause and the remedy, where only the line ends keep a file from its SHA-256."""
    is_it = is_converted_file(content, sha256) if isinstance(content, Path) else is_converted(content, sha256)
    if is_it:
        raise error(
            f"{name} is not as recorded: {CAUSE}", expected=f"SHA-256 {sha256}", where=where, remedy=REMEDY
        )


def refuse_converted_list(raw: bytes, error: type[ToolkitError], where: Path) -> None:
    """Raise where a list of hashes, which never has one, has a CRLF; what else differs is not known yet."""
    if b"\r\n" in raw:
        cause = CAUSE.replace("nothing else differs", "the rest is checked once they are LF again")
        remedy = REMEDY.removeprefix("nothing is lost: ")
        raise error(f"{where.name} is not as recorded: {cause}", where=where, remedy=remedy)


def protect(root: Path) -> bool:
    """Have Git leave the files of a project alone that are hashed; return whether a line was missing."""
    path = root / ATTRIBUTES
    text = read_bytes(path) if path.is_file() else b""
    missing = [line for line in PROTECTED if line.encode() not in text.splitlines()]
    if missing:
        begun = text if not text or text.endswith(b"\n") else text + b"\n"
        head = "# Hashed byte for byte: Git converts no line ends here.\n"
        write_bytes(path, begun + (head + "\n".join([*missing, ""])).encode())
    return bool(missing)
