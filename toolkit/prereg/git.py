"""What version control says of a folder, where it has a say."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from toolkit.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

_TIMEOUT_S = 30
# What a command that was cut short left behind.
_OWN = (":(exclude).pending", ":(exclude).lock")


def clean_commit(folder: Path) -> str:
    """Return the commit that a folder's files stand at; nothing where it is under no version control.

    Raises:
        UsageError: a file in it was changed, or was never committed.
    """
    if shutil.which("git") is None or _git(folder, "rev-parse", "--is-inside-work-tree") != "true":
        return ""
    changed = _git(folder, "status", "--porcelain", "--untracked-files=all", "--", ".", *_OWN)
    if changed:
        raise UsageError(
            "the registration has changes that are not committed",
            expected="every file committed, so that anybody can find what was frozen",
            found="; ".join(line.strip() for line in changed.splitlines()[:5]),
            where=folder,
            remedy="commit them, then freeze",
        )
    return _git(folder, "rev-parse", "--verify", "--quiet", "HEAD")


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command
            ["git", *arguments],  # noqa: S607 - the user's own
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
