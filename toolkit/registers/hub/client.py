"""The Hub's own client, as the environment says at the time of the call, and what its failures mean."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import ENOSPC
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from toolkit.errors import IncompleteError, ToolkitError, VerificationError
from toolkit.registers.manifest import MANIFEST_NAME
from toolkit.registers.origin import Origin

if TYPE_CHECKING:
    from huggingface_hub import HfApi

PUBLIC = "https://huggingface.co"


def endpoint() -> str:
    """Return the Hub's address: HF_ENDPOINT, else the public Hub."""
    return (os.environ.get("HF_ENDPOINT") or PUBLIC).rstrip("/")


def cache_folder() -> Path:
    """Return the folder in which the Hub's client keeps what it downloaded."""
    cache = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    if cache:
        return Path(cache).expanduser().resolve()
    home = os.environ.get("HF_HOME")
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return (Path(home) if home else Path(base) / "huggingface").expanduser().resolve() / "hub"


def repository_cache(repository: str) -> Path:
    """Return the folder of a dataset repository within the cache."""
    return cache_folder() / f"datasets--{repository.replace('/', '--')}"


def snapshot(repository: str, commit: str) -> Path:
    """Return the folder of a commit within the cache."""
    return repository_cache(repository) / "snapshots" / commit


def is_cached(repository: str, commit: str) -> bool:
    """Whether the cache has a commit's manifest, without which nothing of it is of use."""
    return (snapshot(repository, commit) / MANIFEST_NAME).is_file()


def is_offline() -> bool:
    """Whether HF_HUB_OFFLINE says that the Hub is not to be asked."""
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}


def client() -> HfApi:
    """Return the Hub's client for `endpoint`, with the token of HF_TOKEN or of `hf auth login`."""
    from huggingface_hub import HfApi

    return HfApi(endpoint=endpoint(), library_name="paired-rollouts-toolkit")


@contextmanager
def bars() -> Iterator[None]:
    """Show the client's progress bars on a terminal, and none elsewhere."""
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    if sys.stderr.isatty() or are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()


AGAIN = "try again later; what was pulled before is in the cache: --offline, or HF_HUB_OFFLINE=1"


@contextmanager
def bar(total: int) -> Iterator[Callable[[int], object]]:
    """Show on a terminal how many bytes have arrived; give what is told of more."""
    from huggingface_hub import utils

    made: Any = utils.tqdm
    with bars(), made(total=total, unit="B", unit_scale=True) as shown:
        yield shown.update


PATIENCE = (
    "see that HF_ENDPOINT names a Hub and the connection holds; HF_HUB_DOWNLOAD_TIMEOUT=60 waits longer; "
    "--offline, or HF_HUB_OFFLINE=1, takes what was pulled before from the cache"
)
WRONG_HUB = "see that HF_ENDPOINT names a Hub, and that no proxy or log-in page answers in its place"
LOG_IN = "log in, `hf auth login`, or set HF_TOKEN to a token that may do it"


class UnreachableError(IncompleteError):
    """The Hub does not answer, or answers that it cannot (exit 3)."""


class RefusedError(IncompleteError):
    """The Hub has no such repository or revision, or does not show it (exit 3)."""

    has_repository: ClassVar[bool] = False


class NoRevisionError(RefusedError):
    """The Hub has the repository, and no such revision of it (exit 3)."""

    has_repository = True


class NoFileError(IncompleteError):
    """The Hub does not have a file (exit 3)."""


@contextmanager
def telling(what: str, doing: str) -> Iterator[None]:
    """Turn the client's failures into errors that people understand."""
    try:
        yield
    except ToolkitError:
        raise
    except Exception as error:  # what a client makes of an answer that makes no sense can be anything
        raise _meaning(error, what, doing) from error


def no_register(origin: Origin) -> IncompleteError:
    """Return the error for a repository without a manifest."""
    return IncompleteError(
        f"{origin.repository} is no register of this toolkit",
        expected=f"a dataset repository with {MANIFEST_NAME}",
        where=origin.pinned,
        remedy="use `load_dataset` for it, or `toolkit registers import` to make a study of it",
    )


def offering_cache(error: RefusedError, repository: str, commit: str) -> RefusedError:
    """Return an error that says how to go on with the cache, where that has the commit."""
    if not is_cached(repository, commit):
        return error
    offer = f"take commit {commit} from the cache: --offline, or HF_HUB_OFFLINE=1"
    return error.restated(remedy=f"{error.remedy}; or {offer}")


def _meaning(error: Exception, what: str, doing: str) -> ToolkitError:
    """Return what a failure means, or what led to it: the client wraps one in another."""
    from huggingface_hub import errors
    from huggingface_hub.utils import httpx

    unreachable = (
        httpx.TransportError,
        errors.OfflineModeIsEnabled,
        errors.LocalEntryNotFoundError,
        ConnectionError,
    )
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, errors.HfHubHTTPError):
            return _refused(cause, what, doing)
    for cause in causes:
        if isinstance(cause, OSError) and cause.errno == ENOSPC:
            return IncompleteError(
                f"{doing} failed: the disk is full",
                where=cache_folder(),
                remedy="make room, or set HF_HUB_CACHE to another disk",
            )
        if isinstance(cause, unreachable):
            return UnreachableError(
                f"{doing} failed: the Hub cannot be reached",
                found=_short(cause),
                where=place(what),
                remedy=AGAIN,
            )
    is_broken_off = isinstance(error, (httpx.TransportError, OSError, RuntimeError))
    is_broken_off = is_broken_off and not isinstance(error, RecursionError)
    return IncompleteError(
        f"{doing} failed" if is_broken_off else f"{doing} failed: the answer makes no sense",
        found=_short(causes[-1]),
        where=getattr(causes[-1], "filename", None) or place(what),
        remedy="give the same command again: what has arrived whole is kept" if is_broken_off else WRONG_HUB,
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Return an error and what led to it, in this order."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


def _refused(error: Exception, what: str, doing: str) -> ToolkitError:
    """Return the error for an answer of the Hub that is no success."""
    from huggingface_hub import errors

    meanings: tuple[tuple[type[Exception], type[IncompleteError], str, str], ...] = (
        (errors.GatedRepoError, RefusedError, "the repository is gated", f"ask for access; {LOG_IN}"),
        (
            errors.RevisionNotFoundError,
            NoRevisionError,
            "the repository has no such revision",
            "the repository's page lists its branches, tags and commits",
        ),
        (
            errors.RepositoryNotFoundError,
            RefusedError,
            "there is no such dataset repository, or it is private",
            f"check the name; for a private one {LOG_IN}",
        ),
        (errors.EntryNotFoundError, NoFileError, "the Hub does not have a file", AGAIN),
    )
    for kind, made, problem, remedy in meanings:
        if isinstance(error, kind):
            return made(f"{doing} failed: {problem}", found=_short(error), where=place(what), remedy=remedy)
    # No more is said than a status.
    where, response = place(what), getattr(error, "response", None)
    status = 0 if response is None else int(response.status_code)
    if status == HTTPStatus.PRECONDITION_FAILED:
        return VerificationError(
            "somebody else has committed in the meantime; nothing was changed",
            where=where,
            remedy="pull what is there now, look at it, and push again",
        )
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return RefusedError(
            f"{doing} failed: the Hub does not permit it", found=status, where=where, remedy=LOG_IN
        )
    if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return UnreachableError(f"{doing} failed: the Hub answers {status}", where=where, remedy=AGAIN)
    return IncompleteError(f"{doing} failed", found=_short(error), where=where)


def place(what: str) -> str:
    """Return the address of a dataset repository."""
    return f"{endpoint()}/datasets/{what}"


def _short(error: BaseException) -> str:
    """Return the first words of a failure, on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
