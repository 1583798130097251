"""What version control says of a folder, where it has a say; whether frozen files are those committed."""

import hashlib
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from toolkit.errors import IncompleteError, UsageError, VerificationError
from toolkit.prereg.chain import CHAIN
from toolkit.prereg.record import FROZEN
from toolkit.prereg.registration import load_registration

_TIMEOUT_S = 60
_SHA1_DIGITS = 40
_HEAD = ("rev-parse", "--verify", "--quiet", "HEAD")


def clean_commit(folder: Path, contents: Mapping[str, bytes]) -> str:
    """Return the commit that holds a folder's files, byte for byte; nothing without version control."""
    if not _is_in_repository(folder):
        return ""
    commit = _git(folder, *_HEAD, may_fail=True).strip()
    committed = _blobs(folder) if commit else {}
    stated = {name: _blob(raw, committed.get(name, "")) for name, raw in contents.items()}
    changed = [name for name, blob in stated.items() if committed.get(name) != blob]
    missing = [name for name in committed if name not in contents and not (folder / name).exists()]
    if changed or missing:
        raise UsageError(
            "the registration is not committed as it is",
            expected="every file in the last commit, byte for byte, so that anybody can find what was frozen",
            found=", ".join(sorted([*changed, *missing])[:5]),
            where=folder,
            remedy="commit the files, then freeze",
        )
    return commit


def ignored(folder: Path) -> list[str]:
    """Return the files of a folder that would not be committed with it; none without version control."""
    if not _is_in_repository(folder):
        return []
    names = _git(folder, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--", ".")
    return [name for name in names.split("\0") if name and not name.startswith(".")]


def rewritten(folder: Path, kept: Mapping[str, bool]) -> list[str]:
    """Return the files below a folder that are not as in the last commit; none without version control."""
    above = folder.resolve().parent
    if not (_is_in_repository(above) and _git(above, *_HEAD, may_fail=True)):
        return []
    found = []
    for name, blob in _blobs(above, folder.name).items():
        path = above / name
        if path.name in kept:
            now = path.read_bytes() if path.is_file() else b""
            size = int(_git(above, "cat-file", "-s", blob)) if kept[path.name] else None
            # What Git itself rewrote is refused, with its cause, where it is read.
            kinds = (now, now.replace(b"\r\n", b"\n"))
            is_kept = any(_blob(content[:size], blob) == blob for content in kinds)
            found += [] if is_kept else [name.removeprefix(f"{folder.name}/")]
    return found


def _blobs(folder: Path, below: str = ".") -> dict[str, str]:
    """Return what the last commit has of a folder: git's hash of each file, by name."""
    lines = _git(folder, "ls-tree", "-r", "-z", "HEAD", "--", below).split("\0")
    return {line.partition("\t")[2]: line.split()[2] for line in lines if line}


def _blob(content: bytes, like: str) -> str:
    """Return git's hash of a file's own bytes: no line end is taken for another."""
    raw = f"blob {len(content)}\0".encode() + content
    old = len(like) in {0, _SHA1_DIGITS}
    return (hashlib.sha1(raw, usedforsecurity=False) if old else hashlib.sha256(raw)).hexdigest()


def _is_in_repository(folder: Path) -> bool:
    parents = (folder.resolve(), *folder.resolve().parents)
    if shutil.which("git") is None or not any((parent / ".git").exists() for parent in parents):
        return False
    return _git(folder, "rev-parse", "--is-inside-work-tree").strip() == "true"


def _git(folder: Path, *arguments: str, may_fail: bool = False) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command
            ["git", *arguments],  # noqa: S607 - the user's own
            cwd=folder,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise IncompleteError("git does not answer", found=error, where=folder) from None
    if done.returncode and not may_fail:
        raise IncompleteError("git cannot tell", found=done.stderr.strip()[-300:], where=folder)
    return done.stdout


def check_unchanged(registrations: Path) -> list[str]:
    """Check that frozen registrations are as in the last commit, chains grown at most; drafts may change."""
    changed = rewritten(registrations, {FROZEN: False, CHAIN: True})
    if changed:
        raise VerificationError(
            "what is frozen was frozen anew, or taken away",
            expected="as in the last commit",
            found=", ".join(changed),
            where=registrations,
            remedy="git restore --source=HEAD --staged --worktree -- "
            f"{registrations.name}; rules that are frozen are amended: toolkit amend --template",
        )
    there = sorted(registrations.iterdir()) if registrations.is_dir() else []
    folders = [folder for folder in there if folder.is_dir()]
    frozen = [folder for folder in folders if (folder / FROZEN).exists() or (folder / CHAIN).exists()]
    return [load_registration(folder).name for folder in frozen]
