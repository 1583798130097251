"""The Hub's own client: how studies are named, what its failures mean, what it states of a commit."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from errno import ENOSPC
from http import HTTPStatus
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar
from urllib.parse import unquote

from toolkit.deadline import within
from toolkit.errors import DamagedError, IncompleteError, ToolkitError, UsageError, VerificationError
from toolkit.files import file_sha256, in_turn, read_text, write_text
from toolkit.registers.manifest import MANIFEST_NAME, Origin

if TYPE_CHECKING:
    from huggingface_hub import DatasetInfo, HfApi

T = TypeVar("T")

PUBLIC = "https://huggingface.co"
LIBRARY = "paired-rollouts-toolkit"
SCHEME = "hf://datasets/"
MAIN = "main"
PINS = "toolkit-pins.json"
PINS_LOCK = "toolkit-pins.lock"

TIMEOUT_S = 10.0
"""Seconds that the Hub may keep silent, as its own client has it."""
ANSWER = 6
"""How many times that long a whole answer may take, the client's own attempts included."""
SLOWEST = 8192
"""Bytes a second: a line that brings fewer brings no study."""
MOST_FILES = 100_000
"""Files and folders of a repository, for which the Hub itself advises against more."""
AGAIN = "try again later; what was pulled before is in the cache: --offline, or HF_HUB_OFFLINE=1"
RESUME = "give the same command again: what has arrived whole is kept"
PATIENCE = (
    "see that HF_ENDPOINT names a Hub and the connection holds; HF_HUB_DOWNLOAD_TIMEOUT=60 waits longer; "
    "--offline, or HF_HUB_OFFLINE=1, takes what was pulled before from the cache"
)
WRONG_HUB = "see that HF_ENDPOINT names a Hub, and that no proxy or log-in page answers in its place"
LOG_IN = "log in, `hf auth login`, or set HF_TOKEN to a token that may do it"
NOT_TRUSTED = f"{RESUME}; if it stays so, do not use it: ask its owner, or name another revision"

_PART = r"[A-Za-z0-9](?:[\w.-]{0,94}[A-Za-z0-9])?"
_REPOSITORY = re.compile(f"{_PART}/{_PART}", re.ASCII)
_REVISION = re.compile(r"[\w.+-][\w.+/-]{0,199}", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}", re.ASCII)
_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}", re.ASCII)


class UnreachableError(IncompleteError):
    """The Hub does not answer, or answers that it cannot (exit 3)."""


class RefusedError(IncompleteError):
    """The Hub has no such repository or revision, or does not show it (exit 3)."""


class NoRepositoryError(RefusedError):
    """The Hub has no such repository, or hides it (exit 3)."""


class NoRevisionError(RefusedError):
    """The Hub has the repository, and no such revision of it (exit 3)."""


class NoFileError(IncompleteError):
    """The Hub does not have a file (exit 3)."""


# Names of studies.


@dataclass(frozen=True)
class Reference:
    """A dataset repository at a revision: a branch, a tag, or a commit's SHA; `asked` is how it was given."""

    repository: str
    revision: str
    asked: str


def is_commit(sha: object) -> TypeGuard[str]:
    """Whether something is a commit's SHA: 40 hexadecimal digits, which can be a part of a path."""
    return isinstance(sha, str) and _COMMIT.fullmatch(sha) is not None


def looks_like_reference(text: str) -> bool:
    """Whether a text has the form of a study on the Hub: a scheme, or one slash between two names."""
    return text.startswith(SCHEME) or _REPOSITORY.fullmatch(text.partition("@")[0]) is not None


def parse_reference(text: str) -> Reference:
    """Parse `owner/name` or `owner/name@revision`, either also after `hf://datasets/`."""
    repository, at, revision = text.removeprefix(SCHEME).partition("@")
    revision = unquote(revision) if text.startswith(SCHEME) else revision
    is_odd = "--" in repository or ".." in repository
    if is_odd or not _REPOSITORY.fullmatch(repository) or (at and not _REVISION.fullmatch(revision)):
        raise UsageError(
            f"{text!r} names no study on the Hub",
            expected="OWNER/NAME or OWNER/NAME@REVISION, where REVISION is a branch, a tag or a commit's SHA",
        )
    return Reference(repository, revision or MAIN, text)


def parse_log(text: str) -> tuple[Reference, str]:
    """Parse `hf://datasets/OWNER/NAME[@REVISION][/PATH]`; slashes of a revision are written %2F."""
    owner, _, rest = text.removeprefix(SCHEME).partition("/")
    name, _, path = rest.partition("/")
    if not text.startswith(SCHEME) or ".." in path.split("/"):
        raise UsageError(f"{text!r} names no files on the Hub", expected=f"{SCHEME}OWNER/NAME@REVISION/PATH")
    return parse_reference(f"{SCHEME}{owner}/{name}"), path.strip("/")


# The Hub's client, as the environment is at the time of the call, and what its failures mean.


def endpoint() -> str:
    """Return the Hub's address: HF_ENDPOINT, else the public Hub."""
    return (os.environ.get("HF_ENDPOINT") or PUBLIC).rstrip("/")


def cache_folder() -> Path:
    """Return the folder for pulled studies: where the Hub's client keeps what belongs to other libraries."""
    assets = os.environ.get("HF_ASSETS_CACHE")
    home = os.environ.get("HF_HOME")
    base = Path(home) if home else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    return (Path(assets) if assets else base / "assets").expanduser().resolve() / LIBRARY


def repository_folder(repository: str) -> Path:
    """Return the folder of a dataset repository within the cache."""
    return cache_folder() / repository.replace("/", "--")


def study_folder(repository: str, commit: str) -> Path:
    """Return the place of a study that was pulled."""
    return repository_folder(repository) / "studies" / commit


def is_offline() -> bool:
    """Whether HF_HUB_OFFLINE is set."""
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}


def timeout_s() -> float:
    """Return how many seconds the Hub may keep silent: HF_HUB_DOWNLOAD_TIMEOUT, else ten."""
    try:
        seconds = float(os.environ.get("HF_HUB_DOWNLOAD_TIMEOUT", ""))
    except ValueError:
        return TIMEOUT_S
    return seconds if 0 < seconds < float("inf") else TIMEOUT_S


def client() -> HfApi:
    """Return the Hub's client for `endpoint`, with the token of HF_TOKEN or of `hf auth login`."""
    from huggingface_hub import HfApi

    return HfApi(endpoint=endpoint(), library_name=LIBRARY)


@contextmanager
def bars() -> Iterator[None]:
    """Show the client's progress bars on a terminal, and none elsewhere."""
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    hides = not sys.stderr.isatty() and not are_progress_bars_disabled()
    if hides:
        disable_progress_bars()
    try:
        yield
    finally:
        if hides:
            enable_progress_bars()


@contextmanager
def telling(what: str, doing: str) -> Iterator[None]:
    """Turn the client's failures into errors of this toolkit."""
    try:
        yield
    except ToolkitError:
        raise
    except Exception as error:  # what a client makes of an answer that makes no sense can be anything
        raise _meaning(error, f"{endpoint()}/datasets/{what}", f"{doing} failed") from error


def ask(what: str, doing: str, call: Callable[[], T], size: int = 0) -> T:
    """Call the Hub's client, which bounds no answer in time: `size` is how many bytes are expected."""
    with telling(what, doing):
        return within(ANSWER * timeout_s() + size / SLOWEST, call)


def _meaning(error: Exception, where: str, failed: str) -> ToolkitError:
    """Return what a failure means, or what led to it: the client wraps one in another."""
    from huggingface_hub import errors
    from huggingface_hub.utils import httpx

    causes: list[BaseException] = [error]
    while causes[-1].__cause__ is not None:
        causes.append(causes[-1].__cause__)
    for cause in causes:
        if isinstance(cause, errors.HfHubHTTPError):
            return _refused(cause, where, failed)
    first = _short(causes[-1])
    offline = (errors.OfflineModeIsEnabled, errors.LocalEntryNotFoundError)
    for cause in causes:
        if isinstance(cause, OSError) and cause.errno == ENOSPC:
            remedy = "make room, or set HF_HOME to another disk"
            return IncompleteError(f"{failed}: the disk is full", where=cache_folder(), remedy=remedy)
        if isinstance(cause, (TimeoutError, httpx.TimeoutException)):
            return UnreachableError(
                f"{failed}: the Hub does not answer in time",
                expected=f"a word every {timeout_s():g} s (HF_HUB_DOWNLOAD_TIMEOUT)",
                found=_short(cause),
                where=where,
                remedy=PATIENCE,
            )
        if isinstance(cause, (httpx.TransportError, ConnectionError, *offline)):
            problem = f"{failed}: the Hub cannot be reached"
            return UnreachableError(problem, found=first, where=where, remedy=AGAIN)
    is_broken_off = isinstance(error, (OSError, RuntimeError)) and not isinstance(error, RecursionError)
    return IncompleteError(
        failed if is_broken_off else f"{failed}: the answer makes no sense",
        found=first,
        where=getattr(causes[-1], "filename", None) or where,
        remedy=RESUME if is_broken_off else WRONG_HUB,
    )


def _refused(error: Exception, where: str, failed: str) -> ToolkitError:
    """Return the error for an answer with a status other than success."""
    from huggingface_hub import errors

    pages = "the repository's page lists its branches, tags and commits"
    absent = "there is no such dataset repository, or it is private"
    other = f"check the name; for a private one {LOG_IN}"
    meanings: tuple[tuple[type[Exception], type[IncompleteError], str, str], ...] = (
        (errors.GatedRepoError, RefusedError, "the repository is gated", f"ask for access; {LOG_IN}"),
        (errors.RevisionNotFoundError, NoRevisionError, "the repository has no such revision", pages),
        (errors.RepositoryNotFoundError, NoRepositoryError, absent, other),
        (errors.EntryNotFoundError, NoFileError, "the Hub does not have a file", AGAIN),
    )
    for kind, made, problem, remedy in meanings:
        if isinstance(error, kind):
            return made(f"{failed}: {problem}", found=_short(error), where=where, remedy=remedy)
    response = getattr(error, "response", None)
    status = 0 if response is None else int(response.status_code)
    if status == HTTPStatus.PRECONDITION_FAILED:
        return VerificationError(
            "somebody else has committed in the meantime; nothing was changed",
            where=where,
            remedy="pull what is there now, look at it, and push again",
        )
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        problem = f"{failed}: the Hub does not permit it"
        return RefusedError(problem, found=status, where=where, remedy=LOG_IN)
    if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return UnreachableError(f"{failed}: the Hub answers {status}", where=where, remedy=AGAIN)
    return IncompleteError(failed, found=_short(error), where=where)


def _short(error: BaseException) -> str:
    """Return the first words of a failure, on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


# From a revision to its commit. What a name meant is remembered: a tag must not move.


@dataclass(frozen=True)
class Pin:
    """A name's commit. A tag is not expected to move; a branch is."""

    commit: str
    is_tag: bool


def read_pins(repository: str) -> dict[str, Pin]:
    """Return what is remembered of a repository, by name of the branch or tag."""
    path = repository_folder(repository) / PINS
    if not path.exists():
        return {}
    try:
        pins = {name: Pin(**pin) for name, pin in json.loads(read_text(path)).items()}
    except (ValueError, TypeError, AttributeError, RecursionError):
        pins = {"": Pin("", is_tag=False)}
    if not all(is_commit(pin.commit) and isinstance(pin.is_tag, bool) for pin in pins.values()):
        raise DamagedError(
            "what was remembered of the repository's tags cannot be read",
            where=path,
            remedy="remove the file, and compare the next pull's commit with one that you know",
        )
    return pins


def change_pin(repository: str, name: str, changed: Callable[[Pin | None], Pin]) -> None:
    """Remember a name's commit, in view of what is remembered; commands that run at once take turns."""
    path = repository_folder(repository) / PINS
    old = read_pins(repository).get(name)
    if old is not None and changed(old) == old:
        return  # nothing to write, which a cache that cannot be written allows
    with in_turn(path.with_name(PINS_LOCK)):
        pins = read_pins(repository)
        pins[name] = changed(pins.get(name))
        document = {key: asdict(pin) for key, pin in pins.items()}
        write_text(path, json.dumps(document, indent=2, sort_keys=True) + "\n")


def checked_commit(sha: object, where: str) -> str:
    """Return a commit's SHA as the Hub states it, if it is one."""
    if not is_commit(sha):
        raise IncompleteError(
            "the Hub does not say which commit it is",
            expected="40 hexadecimal digits",
            found=repr(sha)[:100],
            where=where,
            remedy="see that HF_ENDPOINT names a Hub",
        )
    return sha


def commit_of(repository: str, revision: str) -> str:
    """Return the commit that a revision is now."""
    return checked_commit(info_of(repository, revision).sha, f"{repository}@{revision}")


def info_of(repository: str, revision: str = MAIN) -> DatasetInfo:
    """Return what the Hub states of a repository at a revision."""
    what = f"{repository}@{revision}"
    return ask(what, "asking for the revision", lambda: client().dataset_info(repository, revision=revision))


def names_of(repository: str) -> tuple[set[str], set[str]]:
    """Return the names of a repository's branches and of its tags."""
    doing = "asking for the tags"
    refs = ask(repository, doing, lambda: client().list_repo_refs(repository, repo_type="dataset"))
    return {ref.name for ref in refs.branches}, {ref.name for ref in refs.tags}


def resolve(
    reference: Reference, *, offline: bool, accept_moved: bool, say: Callable[[str], None]
) -> tuple[Origin, bool]:
    """Return a reference's commit, and whether the Hub can be asked for files; a moved tag is refused."""
    repository, revision, asked = reference.repository, reference.revision, reference.asked
    offline = offline or is_offline()
    if is_commit(revision):
        if offline:
            say(f"the Hub was not asked: {repository}@{revision} from the cache")
        return Origin(repository, revision, revision), not offline
    known = read_pins(repository).get(revision)
    try:
        now = _ask_revision(repository, revision, offline=offline)
    except UnreachableError as error:
        if known is None:
            raise error.restated(
                problem=f"{asked} was not pulled before, and the Hub cannot be asked now",
                found=error.found or error.problem,
                remedy="pull it once with a connection, or name the SHA of a commit that is in the cache",
            ) from None
        say(f"{error.problem}: {asked} is taken as commit {known.commit}, as when it was last asked")
        return Origin(repository, revision, known.commit), False
    except RefusedError as error:
        if known is None:
            raise
        was = f"when it was last asked it was another name for {known.commit}"
        again = f"{was}: name {repository}@{known.commit}"
        has_repository = isinstance(error, NoRevisionError)
        error = error.restated(remedy=again if has_repository else f"{error.remedy}; {was}")
        raise offering_cache(error, repository, known.commit) from None
    _remember(reference, now, accept_moved=accept_moved, say=say)
    return Origin(repository, revision, now.commit), True


def _ask_revision(repository: str, revision: str, *, offline: bool) -> Pin:
    if offline:
        raise UnreachableError("the Hub was not asked", where=repository_folder(repository))
    return Pin(commit_of(repository, revision), revision in names_of(repository)[1])


def _remember(reference: Reference, now: Pin, *, accept_moved: bool, say: Callable[[str], None]) -> None:
    """Remember what a name is now; a name that once was a tag is held to its commit, whatever it is now."""
    repository, revision = reference.repository, reference.revision
    became_branch = False

    def changed(known: Pin | None) -> Pin:
        nonlocal became_branch
        if known is None or not known.is_tag:
            return now
        if known.commit == now.commit:
            became_branch = not now.is_tag
            return known
        if accept_moved:
            return now
        raise VerificationError(
            f"the tag {revision} was moved",
            expected=f"commit {known.commit}, as when it was last asked",
            found=f"commit {now.commit}" + ("" if now.is_tag else ", and it is no tag any more"),
            where=repository,
            remedy=f"name a commit, such as {repository}@{known.commit}; "
            "or pull it with --accept-moved, which remembers the new one",
        )

    try:
        change_pin(repository, revision, changed)
    except IncompleteError as error:
        if not is_cached(repository, now.commit):
            raise
        say(f"{error.problem}: that {reference.asked} is commit {now.commit} is not remembered")
    if became_branch:
        say(f"{revision} was a tag and is none now: it is held to commit {now.commit} all the same")


def is_cached(repository: str, commit: str) -> bool:
    """Whether the study of a commit was pulled."""
    return (study_folder(repository, commit) / MANIFEST_NAME).is_file()


def offering_cache(error: RefusedError, repository: str, commit: str) -> RefusedError:
    """Return an error whose remedy is the cache too, where that has the commit."""
    if not is_cached(repository, commit):
        return error
    offer = f"take commit {commit} from the cache: --offline, or HF_HUB_OFFLINE=1"
    return error.restated(remedy=f"{error.remedy}; or {offer}")


# What the Hub states of a commit's files.


@dataclass(frozen=True)
class Stated:
    """A file as the Hub states it: the SHA-256 of a large one, git's name for any other, and its bytes."""

    sha256: str | None
    blob: str
    bytes: int

    def is_file(self, path: Path, sha256: str = "") -> bool:
        """Whether it is a file that lies here; its SHA-256 is computed where it is not known."""
        if not path.is_file() or path.stat().st_size != self.bytes:
            return False
        if self.sha256:
            return (sha256 or file_sha256(path)) == self.sha256
        git = hashlib.sha1(b"blob %d\0" % self.bytes, usedforsecurity=False)
        with path.open("rb") as opened:
            return hashlib.file_digest(opened, lambda: git).hexdigest() == self.blob


def list_files(repository: str, commit: str) -> dict[str, Stated]:
    """Return the visible files of a commit as the Hub states them, by path."""

    def read() -> list[Any]:
        tree = client().list_repo_tree(repository, recursive=True, revision=commit, repo_type="dataset")
        return list(islice(tree, MOST_FILES + 1))

    pinned, doing = f"{repository}@{commit}", "listing the files"
    entries = ask(pinned, doing, read)
    if len(entries) > MOST_FILES:
        raise too_much("the Hub lists files without end", f"{MOST_FILES} files at most", pinned)
    files = {}
    with telling(pinned, doing):
        for entry in entries:
            if not hasattr(entry, "blob_id"):  # a folder
                continue
            sha256 = None if entry.lfs is None else entry.lfs.sha256
            hashes = [entry.blob_id] if sha256 is None else [entry.blob_id, sha256]
            if type(entry.size) is not int or entry.size < 0 or not all(map(_HASH.fullmatch, hashes)):
                raise ValueError(f"the Hub states of a file {entry}"[:300])
            if not any(part.startswith(".") and part.strip(".") for part in entry.path.split("/")):
                files[entry.path] = Stated(sha256, entry.blob_id, entry.size)
    return files


def too_much(problem: str, expected: str, where: object, found: object = None) -> DamagedError:
    """Return the error for an answer beyond a bound."""
    remedy = "do not use it: see that HF_ENDPOINT names a Hub that you trust"
    return DamagedError(problem, expected=expected, found=found, where=where, remedy=remedy)
