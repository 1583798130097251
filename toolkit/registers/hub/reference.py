"""How a study on the Hub is named: `owner/name`, or `owner/name@revision`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeGuard
from urllib.parse import unquote

from toolkit.errors import IncompleteError, UsageError

SCHEME = "hf://datasets/"
MAIN = "main"

_PART = r"[A-Za-z0-9](?:[\w.-]{0,94}[A-Za-z0-9])?"
_REPOSITORY = re.compile(f"{_PART}/{_PART}", re.ASCII)
_REVISION = re.compile(r"[\w.+-][\w.+/-]{0,199}", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}", re.ASCII)


@dataclass(frozen=True)
class Reference:
    """A dataset repository at a revision.

    Args:
        repository: `owner/name`.
        revision: a branch, a tag, or a commit's SHA.
        asked: the reference as it was given.
    """

    repository: str
    revision: str
    asked: str

    @property
    def is_commit(self) -> bool:
        """Whether the revision is a commit's SHA, which means the same for good."""
        return is_commit(self.revision)


def is_commit(sha: object) -> TypeGuard[str]:
    """Whether something is a commit's SHA: 40 hexadecimal digits, which can be a part of a path."""
    return isinstance(sha, str) and _COMMIT.fullmatch(sha) is not None


def checked_commit(sha: object, where: str) -> str:
    """Return the SHA of a commit as the Hub says it.

    Raises:
        IncompleteError: the Hub says none, or something else.
    """
    if not is_commit(sha):
        raise IncompleteError(
            "the Hub does not say which commit it is",
            expected="40 hexadecimal digits",
            found=repr(sha)[:100],
            where=where,
            remedy="see that HF_ENDPOINT names a Hub",
        )
    return sha


def looks_like_reference(text: str) -> bool:
    """Whether a text has the form of a study on the Hub: a scheme, or one slash between two names."""
    return text.startswith(SCHEME) or _REPOSITORY.fullmatch(text.partition("@")[0]) is not None


def parse_reference(text: str) -> Reference:
    """Return the reference that a text is.

    Args:
        text: `owner/name` or `owner/name@revision`, either also after `hf://datasets/`.

    Raises:
        UsageError: it is none.
    """
    repository, at, revision = text.removeprefix(SCHEME).partition("@")
    revision = unquote(revision) if text.startswith(SCHEME) else revision
    is_odd = "--" in repository or ".." in repository
    if is_odd or not _REPOSITORY.fullmatch(repository) or (at and not _REVISION.fullmatch(revision)):
        raise UsageError(
            f"{text!r} names no study on the Hub",
            expected="OWNER/NAME or OWNER/NAME@REVISION, where REVISION is a branch, a tag or a commit's SHA",
        )
    return Reference(repository, revision or MAIN, text)
