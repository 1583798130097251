"""From what names a study on the Hub, `owner/name@revision`, to the one commit that it means."""

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeGuard
from urllib.parse import quote, unquote

from toolkit.errors import DamagedError, IncompleteError, UsageError, VerificationError
from toolkit.files import in_turn, read_text, write_text
from toolkit.registers.hub import client as hub
from toolkit.registers.hub.answers import read_json
from toolkit.registers.origin import Origin

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
    """Return the SHA of a commit as the Hub says it."""
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
    """Return the reference that a text is."""
    repository, at, revision = text.removeprefix(SCHEME).partition("@")
    revision = unquote(revision) if text.startswith(SCHEME) else revision
    is_odd = "--" in repository or ".." in repository
    if is_odd or not _REPOSITORY.fullmatch(repository) or (at and not _REVISION.fullmatch(revision)):
        raise UsageError(
            f"{text!r} names no study on the Hub",
            expected="OWNER/NAME or OWNER/NAME@REVISION, where REVISION is a branch, a tag or a commit's SHA",
        )
    return Reference(repository, revision or MAIN, text)


PINS = "toolkit-pins.json"
PINS_LOCK = "toolkit-pins.lock"


@dataclass(frozen=True)
class Pin:
    """A name's commit. A tag is not expected to move; a branch is."""

    commit: str
    is_tag: bool


def read_pins(repository: str) -> dict[str, Pin]:
    """Return what is remembered of a repository, by name of the branch or tag."""
    path = _path(repository)
    if not path.exists():
        return {}
    try:
        return {name: _pin(pin) for name, pin in json.loads(read_text(path)).items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DamagedError(
            "what was remembered of the repository's tags cannot be read",
            where=path,
            remedy="remove the file, and compare the next pull's commit with one that you know",
        ) from None


def change_pin(repository: str, name: str, changed: Callable[[Pin | None], Pin]) -> None:
    """Remember a name's commit, in view of the one that is remembered.

    Commands that run at once take turns from the reading to the writing: none forgets what another
    remembered, and none overlooks it.
    """
    path = _path(repository)
    old = read_pins(repository).get(name)
    if old is not None and changed(old) == old:
        return  # nothing to write, which a cache that cannot be written allows
    with in_turn(path.with_name(PINS_LOCK)):
        pins = read_pins(repository)
        pins[name] = changed(pins.get(name))
        document = {key: asdict(pin) for key, pin in pins.items()}
        write_text(path, json.dumps(document, indent=2, sort_keys=True) + "\n")


def _pin(pin: dict[str, object]) -> Pin:
    commit, is_tag = pin["commit"], pin["is_tag"]
    if not is_commit(commit) or not isinstance(is_tag, bool):
        raise TypeError(pin)
    return Pin(commit, is_tag)


def _path(repository: str) -> Path:
    return hub.repository_cache(repository) / PINS


def resolve(
    reference: Reference, *, offline: bool, accept_moved: bool, say: Callable[[str], None]
) -> tuple[Origin, bool]:
    """Return the commit that a reference means, and whether the Hub can be asked for its files.

    1. A SHA means itself.
    2. The Hub is asked; where it does not answer, what it last said is taken, and this is said.
    3. A name that once was a tag and now is another commit is refused: what was decided on it was decided on
       other bytes. What the Hub said is remembered.
    """
    offline = offline or hub.is_offline()
    if reference.is_commit:  # 1
        if offline:
            say(f"the Hub was not asked: {reference.repository}@{reference.revision} from the cache")
        return _origin(reference, reference.revision), not offline
    known = read_pins(reference.repository).get(reference.revision)
    try:  # 2
        now = _ask(reference, offline=offline)
    except hub.UnreachableError as error:
        if known is None:
            raise _unknown(reference, error) from None
        say(
            f"{error.problem}: {reference.asked} is taken as commit {known.commit}, as when it was last asked"
        )
        return _origin(reference, known.commit), False
    except hub.RefusedError as error:
        if known is None:
            raise
        raise _gone(reference, known, error) from None
    _remember(reference, now, accept_moved=accept_moved, say=say)  # 3
    return _origin(reference, now.commit), True


def _remember(reference: Reference, now: Pin, *, accept_moved: bool, say: Callable[[str], None]) -> None:
    """Remember what the Hub says; a name that once was a tag is held to its commit, whatever it is now."""
    became_branch: list[Pin] = []

    def changed(known: Pin | None) -> Pin:
        if known is None or not known.is_tag:
            return now
        if known.commit == now.commit:
            became_branch[:] = [] if now.is_tag else [known]
            return known
        if accept_moved:
            return now
        raise _moved(reference, known, now)

    try:
        change_pin(reference.repository, reference.revision, changed)
    except IncompleteError as error:
        if not hub.is_cached(reference.repository, now.commit):
            raise
        say(f"{error.problem}: that {reference.asked} is commit {now.commit} is not remembered")
    if became_branch:
        say(f"{reference.revision} was a tag and is none now: it is held to commit {now.commit} all the same")


def _moved(reference: Reference, known: Pin, now: Pin) -> VerificationError:
    return VerificationError(
        f"the tag {reference.revision} was moved",
        expected=f"commit {known.commit}, as when it was last asked",
        found=f"commit {now.commit}" + ("" if now.is_tag else ", and it is no tag any more"),
        where=reference.repository,
        remedy=f"name a commit, such as {reference.repository}@{known.commit}; "
        "or pull it with --accept-moved, which remembers the new one",
    )


def _ask(reference: Reference, *, offline: bool) -> Pin:
    """Ask the Hub which commit a revision is, and whether it is a tag."""
    if offline:
        raise hub.UnreachableError("the Hub was not asked", where=hub.repository_cache(reference.repository))
    with hub.telling(f"{reference.repository}@{reference.revision}", "asking for the revision"):
        api = f"datasets/{reference.repository}"
        commit = read_json(f"{api}/revision/{quote(reference.revision, safe='')}")["sha"]
        is_tag = any(tag["name"] == reference.revision for tag in read_json(f"{api}/refs")["tags"])
    return Pin(checked_commit(commit, reference.asked), is_tag)


def _unknown(reference: Reference, error: hub.UnreachableError) -> hub.UnreachableError:
    return hub.UnreachableError(
        f"{reference.asked} was not pulled before, and the Hub cannot be asked now",
        expected=error.expected,
        found=error.found or error.problem,
        where=error.where,
        remedy="pull it once with a connection, or name the SHA of a commit that is in the cache",
    )


def _gone(reference: Reference, known: Pin, error: hub.RefusedError) -> hub.RefusedError:
    was = f"when it was last asked it was another name for {known.commit}"
    again = f"{was}: name {reference.repository}@{known.commit}"
    error = error.restated(remedy=again if error.has_repository else f"{error.remedy}; {was}")
    return hub.offering_cache(error, reference.repository, known.commit)


def _origin(reference: Reference, commit: str) -> Origin:
    return Origin(reference.repository, reference.revision, commit, reference.asked)
