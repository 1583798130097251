"""Reading and writing files: errors that people understand, and no half-written file ever in place."""

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from errno import EISDIR
from pathlib import Path

from toolkit.errors import DamagedError, IncompleteError, UsageError

LARGEST_READ = 64 * 2**20
"""Bytes of a file that is read whole: pages, manifests and settings have a thousandth of it."""
LARGEST_ROWS = 4 * 2**30
"""Bytes of one run's table, checkpoint or adapter: what memory holds once, and twice while it is written."""


def read_bytes(path: Path, most: int = LARGEST_READ) -> bytes:
    """Return a file's bytes."""
    try:
        _check_regular(path)
        size = path.stat().st_size
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    # What says that it is empty, as files of a system's own do, may yet have no end.
    content = b"" if size > most else read_up_to(path, most + 1)
    if max(size, len(content)) > most:
        raise DamagedError(
            f"{path.name} is too long to be read",
            expected=f"{most} bytes at most",
            found=f"{size} bytes",
            where=path,
            remedy="restore the file, or give another path",
        )
    return content


def read_up_to(path: Path, limit: int) -> bytes:
    """Return a file's first bytes, and no more than `limit`."""
    try:
        _check_regular(path)
        with path.open("rb") as stream:
            return stream.read(limit)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


def read_text(path: Path) -> str:
    """Return a file's UTF-8 text."""
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise DamagedError(f"{path.name} is not UTF-8 text", found=error, where=path) from None


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, read in blocks."""
    try:
        _check_regular(path)
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


def sealed(payload: bytes) -> bytes:
    """Return bytes below a line that holds their SHA-256, so that a file says whether it is whole."""
    return hashlib.sha256(payload).hexdigest().encode() + b"\n" + payload


def unsealed(raw: bytes) -> bytes | None:
    """Return the bytes that `sealed` was given; None where what it returned was cut short, or changed."""
    payload = raw.partition(b"\n")[2]
    return payload if raw == sealed(payload) else None


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file beside its place and rename it there."""
    place = path.resolve()
    write_all(place.parent, {place.name: content})


def write_text(path: Path, content: str) -> None:
    """Write UTF-8 text as `write_bytes` does."""
    write_bytes(path, content.encode())


@contextlib.contextmanager
def writing(path: Path) -> Iterator[Path]:
    """Give a name beside a file's place, for what is too large to hold, and rename it if nothing failed."""
    check_target(path)
    beside = _beside(path)
    try:
        yield beside
        beside.replace(path)
    except OSError as error:
        raise _unwritable(path.name, error, path.parent) from None
    finally:
        _remove(beside)


def make_folder(folder: Path) -> None:
    """Make a folder, and those that it is in, where they are missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise IncompleteError("the folder cannot be made", found=error.strerror, where=folder) from None


def check_target(path: Path) -> None:
    """Check, before work whose result is to be written to a file, that it can be."""
    if path.name in {"", "-", ".."}:
        raise UsageError("a file is needed", found=str(path))
    problem = None
    if path.exists() and not path.is_file():
        problem = "it is there and is no file"
    elif not path.parent.is_dir():
        problem = "its folder is missing"
    else:
        try:
            _beside(path).write_bytes(b"")
            _beside(path).unlink()
        except OSError as error:
            problem = error.strerror
    if problem:
        raise IncompleteError(
            f"{path.name} cannot be written", found=problem, where=path, remedy="give another file"
        )


def write_all(folder: Path, contents: Mapping[str, bytes], first: Path | None = None) -> None:
    """Write files beside their places, and rename them only once all are written."""
    staged: dict[Path, Path] = {}
    try:
        for name, content in contents.items():
            path = folder / name
            staged[_beside(path)] = path
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and not path.is_file():
                raise IsADirectoryError(EISDIR, "is there and is no file", str(path))
            _beside(path).write_bytes(content)
        if first is not None:
            first.unlink(missing_ok=True)
        for beside, path in staged.items():
            beside.replace(path)
    except OSError as error:
        raise _unwritable(folder.name, error, error.filename or folder) from None
    finally:
        for beside in staged:
            _remove(beside)


@contextlib.contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Give a new folder beside another, and put it in the other's place if nothing failed."""
    folder = folder.resolve()  # where it is a link, what it leads to is replaced
    new, old = (folder.with_name(f".{folder.name}.{which}") for which in ("new", "old"))
    try:
        if old.exists() and not folder.exists():
            old.rename(folder)  # the one before was cut off between its two renamings
        for left in (new, old) if folder.exists() else (new,):
            if left.exists():
                shutil.rmtree(left)
        new.mkdir(parents=True)
        yield new
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        if old.exists() and not folder.exists():
            old.rename(folder)
        raise _unwritable(folder.name, error, error.filename or folder) from None
    finally:
        shutil.rmtree(new, ignore_errors=True)


def write_durably(path: Path, content: bytes) -> None:
    """Write a file as `write_bytes` does; neither a kill nor a power cut leaves half of it."""
    beside = _beside(path)
    try:
        with beside.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
        names = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(names)
        finally:
            os.close(names)
    except OSError as error:
        remedy = "make room on the disk or the folder writable, and give the same command again"
        raise _unwritable(path.name, error, path.parent, remedy) from None
    finally:
        _remove(beside)


@contextlib.contextmanager
def hold(folder: Path, name: str, what: str) -> Iterator[None]:
    """Hold a folder for one command alone; the hold ends with the process, however that ends."""
    import fcntl  # POSIX only; nothing that merely reads needs it

    path = folder / name
    try:
        stream = path.open("ab")
    except OSError as error:
        raise IncompleteError(f"the {what} cannot be written", found=error.strerror, where=folder) from None
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_held = True
        except BlockingIOError:
            is_held = False
        except OSError as error:
            raise IncompleteError(
                f"the {what} cannot be locked",
                found=error.strerror,
                where=folder,
                remedy="choose a folder on a file system that has locks",
            ) from None
        try:
            # The one before may have removed the file between our opening and our locking it.
            is_held = is_held and os.path.samestat(os.fstat(stream.fileno()), path.stat())
        except OSError:
            is_held = False
        if not is_held:
            raise UsageError(
                f"another command is at work on the {what}", where=folder, remedy="wait for it to end"
            )
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def in_turn(path: Path) -> Iterator[None]:
    """Wait until nobody else is between here and the end, for the same file; threads wait too."""
    try:
        import fcntl
    except ImportError:  # POSIX only: elsewhere nobody waits, and whoever writes last is right
        yield
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.open("ab")
    except OSError as error:
        raise _unwritable(path.name, error, path.parent) from None
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX)
        except OSError as error:
            raise IncompleteError(
                f"{path.name} cannot be locked", found=error.strerror or error, where=path.parent
            ) from None
        yield


def is_held(folder: Path, name: str) -> bool:
    """Whether a command holds a folder, as `hold` does, at this moment."""
    import fcntl

    try:
        with (folder / name).open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.part")


def _remove(beside: Path) -> None:
    with contextlib.suppress(OSError):
        beside.unlink()


def _unwritable(name: str, error: OSError, where: object, remedy: str | None = None) -> IncompleteError:
    found = error.strerror or error
    return IncompleteError(f"{name} cannot be written", found=found, where=where, remedy=remedy)


def _check_regular(path: Path) -> None:
    """Refuse what is there but is no file: a folder, and a pipe that would never end."""
    if path.exists() and not path.is_file():
        raise IsADirectoryError(EISDIR, "is no file", str(path))


def unreadable(path: Path, error: OSError | ValueError) -> IncompleteError:
    """Return the error for a file that is missing or cannot be read."""
    return IncompleteError(
        f"{path.name} cannot be read",
        expected="a readable file",
        found=getattr(error, "strerror", None) or error,
        where=path,
        remedy="restore the file, or give another path",
    )
